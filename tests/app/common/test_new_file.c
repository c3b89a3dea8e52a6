/*
 * Replacing a file atomically, or not at all.
 */
#include "app/common/file/new_file.h"
#include "engine/base/memory.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char work[] = "/tmp/test_new_file_XXXXXX";
static char path[200];

static int make_work(void **state)
{
    (void)state;
    if (!mkdtemp(work))
        return -1;
    (void)snprintf(path, sizeof(path), "%s/below/file", work);
    return 0;
}

static int remove_work(void **state)
{
    char below[200];
    (void)state;
    (void)snprintf(below, sizeof(below), "%s/below", work);
    return unlink(path) == 0 && rmdir(below) == 0 && rmdir(work) == 0 ? 0 : -1;
}

/* The file has this text, and there is no other file in the folder. */
static void expect_only_file(const char *text)
{
    char below[200], *bytes;
    size_t n_bytes, n_entries = 0;
    struct bn_error err;
    (void)snprintf(below, sizeof(below), "%s/below", work);
    DIR *dir = opendir(below);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        n_entries += e->d_name[0] != '.';
    (void)closedir(dir);
    assert_int_equal(n_entries, 1);
    assert_true(path_read_all(path, 100, &bytes, &n_bytes, &err));
    assert_string_equal(bytes, text);
    mem_free(bytes);
}

static bool write_file(const char *text, enum new_file_end end)
{
    struct new_file n;
    struct bn_error err;
    assert_true(new_file_open(&n, path, &err));
    assert_true(fputs(text, n.f) >= 0);
    return new_file_close(&n, end, &err);
}

/* Before each test the file has the text "old". Before the first one this creates its directory. */
static int write_old(void **state)
{
    (void)state;
    return write_file("old", NEW_FILE_KEEP) ? 0 : -1;
}

static void a_kept_file_replaces_the_old_one(void **state)
{
    struct stat st;
    (void)state;
    expect_only_file("old");
    assert_true(write_file("one", NEW_FILE_SYNC));
    expect_only_file("one");
    assert_true(write_file("two", NEW_FILE_KEEP));
    expect_only_file("two");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void a_dropped_file_leaves_the_old_one(void **state)
{
    (void)state;
    assert_false(write_file("three", NEW_FILE_DROP));
    expect_only_file("old");
}

static void error_names_the_file(void **state)
{
    struct new_file n;
    struct bn_error err;
    char within[250];
    (void)state;
    (void)snprintf(within, sizeof(within), "%s/more", path); /* "path" is a file, not a directory */
    assert_false(new_file_open(&n, within, &err));
    assert_int_equal(err.code, BN_EIO);
    assert_non_null(strstr(err.text, within));
}

static bool exists(const char *name)
{
    return access(name, F_OK) == 0;
}

static void make_file(const char *name)
{
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    fclose(f);
}

static void files_of_killed_programs_are_removed(void **state)
{
    static const struct {
        const char *name;
        bool stays;
    } cases[] = {{"a.json.tmp-abcdef", false}, {"a.json.notes1", true}, {"a.kv.a1b2c3", true},
                 {"a.json.backup", true},      {"a.json", true},        {".tmp-abcdef", true},
                 {"a.json.tmp-abc-ef", false}, {"a.json.tmp-ab", true}, {"a", true}};
    enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };
    char names[N_CASES][250], below[200];
    struct new_file n;
    struct bn_error err;
    (void)state;
    (void)snprintf(below, sizeof(below), "%s/below", work);
    for (size_t i = 0; i < N_CASES; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%s/%s", below, cases[i].name);
        make_file(names[i]);
    }
    assert_true(new_file_open(&n, path, &err)); /* is being written, so it must stay */
    new_file_clean(below);
    assert_true(exists(n.temp_path));
    assert_false(new_file_close(&n, NEW_FILE_DROP, &err));
    for (size_t i = 0; i < N_CASES; i++) {
        if (exists(names[i]) != cases[i].stays)
            fail_msg("%s", cases[i].name);
        unlink(names[i]);
    }
}

static void writing_removes_what_a_killed_program_left(void **state)
{
    char left[250], other[250];
    (void)state;
    (void)snprintf(left, sizeof(left), "%s.tmp-abcdef", path);
    (void)snprintf(other, sizeof(other), "%s2.tmp-abcdef", path);
    make_file(left);
    make_file(other);
    assert_true(write_file("four", NEW_FILE_KEEP));
    assert_false(exists(left));
    assert_true(exists(other)); /* of another file */
    unlink(other);
}

static void a_symbolic_link_stays(void **state)
{
    char name[250];
    struct stat st;
    struct new_file n;
    struct bn_error err;
    (void)state;
    (void)snprintf(name, sizeof(name), "%s/link", work);
    assert_int_equal(symlink(path, name), 0);
    assert_true(new_file_open(&n, name, &err));
    assert_true(fputs("five", n.f) >= 0);
    assert_true(new_file_close(&n, NEW_FILE_SYNC, &err));
    assert_true(lstat(name, &st) == 0 && S_ISLNK(st.st_mode));
    unlink(name);
    expect_only_file("five");
}

static void other_kinds_of_files_are_not_replaced(void **state)
{
    struct new_file n;
    struct bn_error err;
    (void)state;
    assert_false(new_file_open(&n, "/dev/null", &err));
    assert_non_null(strstr(err.text, "not a regular file"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, write_old)
    const struct CMUnitTest tests[] = {
        TEST(a_kept_file_replaces_the_old_one),
        TEST(a_dropped_file_leaves_the_old_one),
        TEST(error_names_the_file),
        TEST(files_of_killed_programs_are_removed),
        TEST(writing_removes_what_a_killed_program_left),
        TEST(a_symbolic_link_stays),
        TEST(other_kinds_of_files_are_not_replaced),
    };
    return cmocka_run_group_tests(tests, make_work, remove_work);
}
