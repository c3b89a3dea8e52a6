/*
 * Directories from the environment, creating directories, reading whole files.
 */
#include "app/common/env.h"
#include "app/common/file/paths.h"
#include "engine/base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char work[] = "/tmp/test_paths_XXXXXX";

static int make_work(void **state)
{
    (void)state;
    return mkdtemp(work) ? 0 : -1;
}

static int remove_work(void **state)
{
    static const char *const names[] = {"a/b", "a", "text", ""};
    char path[PATH_BYTES];
    int failed = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", work, names[i]);
        failed |= remove(path);
    }
    return failed;
}

static void xdg_variables_come_before_home(void **state)
{
    char path[PATH_BYTES];
    struct bn_error err;
    (void)state;
    setenv("HOME", "/home/me", 1);
    unsetenv("XDG_STATE_HOME");
    setenv("XDG_CONFIG_HOME", "/else/where", 1);
    setenv("XDG_DATA_HOME", "not/absolute", 1);
    setenv("XDG_CACHE_HOME", "", 1);
    assert_true(path_of(PATH_CONFIG, "config", path, &err));
    assert_string_equal(path, "/else/where/bitnet-chat/config");
    assert_true(path_of(PATH_STATE, "history", path, &err));
    assert_string_equal(path, "/home/me/.local/state/bitnet-chat/history");
    assert_true(path_of(PATH_DATA, "sessions/a.json", path, &err));
    assert_string_equal(path, "/home/me/.local/share/bitnet-chat/sessions/a.json");
    assert_true(path_of(PATH_CACHE, "kv", path, &err));
    assert_string_equal(path, "/home/me/.cache/bitnet-chat/kv");
}

static void a_missing_home_is_an_error(void **state)
{
    char path[PATH_BYTES];
    struct bn_error err;
    (void)state;
    unsetenv("HOME");
    unsetenv("XDG_STATE_HOME");
    assert_false(path_of(PATH_STATE, "history", path, &err));
    assert_string_equal(err.text, "neither XDG_STATE_HOME nor HOME is set");
    assert_int_equal(err.code, BN_EIO); /* there is no place for a file */
    setenv("HOME", "rel", 1);           /* the files would be below the working directory */
    assert_false(path_of(PATH_STATE, "history", path, &err));
    assert_string_equal(err.text, "HOME is not an absolute path: 'rel'");
    path_expand_home("~/a", path);
    assert_string_equal(path, "~/a");
}

static void a_tilde_before_a_slash_is_the_home_directory(void **state)
{
    char path[PATH_BYTES], longest[PATH_BYTES + 1];
    (void)state;
    setenv("HOME", "/home/me", 1);
    path_expand_home("~/a/~/b", path);
    assert_string_equal(path, "/home/me/a/~/b");
    static const char *const same[] = {"~", "~me/a", "a~/b", "/~/a", ""};
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        path_expand_home(same[i], path);
        assert_string_equal(path, same[i]);
    }
    memset(longest, 'x', PATH_BYTES);
    longest[PATH_BYTES] = '\0';
    path_expand_home(longest, path);
    assert_int_equal(strlen(path), PATH_BYTES - 1);
    unsetenv("HOME");
    path_expand_home("~/a", path);
    assert_string_equal(path, "~/a");
}

static void an_empty_variable_counts_as_unset(void **state)
{
    (void)state;
    setenv("BITNET_CHAT_MODEL", "", 1);
    assert_null(env_get(ENV_MODEL));
    setenv("BITNET_CHAT_MODEL", "m.gguf", 1);
    assert_string_equal(env_get(ENV_MODEL), "m.gguf");
    for (int v = 0; v < ENV_N; v++)
        (void)env_get((enum env_var)v); /* every variable has a name */
}

static void parents_are_created_with_mode_0700(void **state)
{
    char path[PATH_BYTES];
    struct stat st;
    struct bn_error err;
    (void)state;
    (void)snprintf(path, sizeof(path), "%s/a/b/file", work);
    assert_true(path_make_parents(path, &err));
    assert_true(path_make_parents(path, &err));
    *strrchr(path, '/') = '\0';
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_false(path_make_parents("/proc/no/such", &err));
    assert_int_equal(err.code, BN_EIO);
}

static void a_path_has_a_name_and_a_parent(void **state)
{
    static const struct {
        const char *path, *name, *parent;
    } cases[] = {
        {"a/b.json", "b.json", "a/"}, {"/b.json", "b.json", "/"}, {"/a/b/c", "c", "/a/b/"},
        {"b.json", "b.json", "."},    {"a/", "", "a/"},           {"", "", "."},
    };
    char parent[PATH_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        path_parent(cases[i].path, parent);
        assert_string_equal(path_name(cases[i].path), cases[i].name);
        assert_string_equal(parent, cases[i].parent);
    }
}

static void reads_a_whole_file_up_to_a_limit(void **state)
{
    char path[PATH_BYTES], *text;
    size_t n;
    struct bn_error err;
    (void)state;
    (void)snprintf(path, sizeof(path), "%s/text", work);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (size_t i = 0; i < 10000; i++)
        fputc((int)(i % 256), f);
    fclose(f);
    assert_true(path_read_all(path, 10000, &text, &n, &err));
    assert_int_equal(n, 10000);
    assert_int_equal((unsigned char)text[9999], 9999 % 256);
    assert_int_equal(text[10000], 0);
    mem_free(text);
    assert_false(path_read_all(path, 9999, &text, &n, &err));
    assert_int_equal(err.code, BN_EIO);
    assert_non_null(strstr(err.text, "is larger than 9999 bytes"));
}

static void unreadable_files_are_errors(void **state)
{
    char *text;
    size_t n;
    struct bn_error err;
    (void)state;
    assert_false(path_read_all(work, 100, &text, &n, &err));
    assert_int_equal(err.code, BN_EIO);
    assert_false(path_read_all("/no/such/file", 100, &text, &n, &err));
    assert_string_equal(err.text, "cannot open '/no/such/file': No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xdg_variables_come_before_home),
        cmocka_unit_test(a_missing_home_is_an_error),
        cmocka_unit_test(a_tilde_before_a_slash_is_the_home_directory),
        cmocka_unit_test(an_empty_variable_counts_as_unset),
        cmocka_unit_test(parents_are_created_with_mode_0700),
        cmocka_unit_test(a_path_has_a_name_and_a_parent),
        cmocka_unit_test(reads_a_whole_file_up_to_a_limit),
        cmocka_unit_test(unreadable_files_are_errors),
    };
    return cmocka_run_group_tests(tests, make_work, remove_work);
}
