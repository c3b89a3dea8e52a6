/*
 * Replacing a file atomically, or not at all.
 */
#include "app/common/new_file.h"
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

static void a_kept_file_replaces_the_old_one(void **state)
{
    struct stat st;
    (void)state;
    assert_true(write_file("one", NEW_FILE_SYNC)); /* also creates the directory */
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
    expect_only_file("two");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kept_file_replaces_the_old_one),
        cmocka_unit_test(a_dropped_file_leaves_the_old_one),
        cmocka_unit_test(error_names_the_file),
    };
    return cmocka_run_group_tests(tests, make_work, remove_work);
}
