/*
 * The history file: escapes, which entries are added, trimming.
 */
#include "app/common/file/file_lock.h"
#include "app/terminal/line/history.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void entries_survive_the_escapes(void **state)
{
    static const char *const entries[] = {
        "plain",           "two\nlines", "back\\slash", "\\n is no newline",
        "#123 is no time", "ends\n",     "\\",          "\xe6\xbc\xa2"};
    (void)state;
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        struct strbuf line = {0}, back = {0};
        history_escape(bn_str_of(entries[i]), &line);
        assert_null(strchr(strbuf_text(&line), '\n'));
        history_unescape(strbuf_str(&line), &back);
        assert_string_equal(strbuf_text(&back), entries[i]);
        strbuf_finish(&line);
        strbuf_finish(&back);
    }
}

static void count_entry(void *ud, const char *entry)
{
    size_t *n = ud;
    assert_true(strlen(entry) > 0);
    ++*n;
}

static void open_file(struct history *h)
{
    (void)snprintf(h->path, sizeof(h->path), "/tmp/test_history.XXXXXX");
    const int fd = mkstemp(h->path);
    assert_true(fd >= 0);
    close(fd);
}

static void leaves_out_blank_secret_and_repeated_entries(void **state)
{
    static const struct {
        const char *entry;
        bool kept;
    } cases[] = {{"one", true},      {"one", false},       {"", false},
                 {" secret", false}, {"two\nlines", true}, {"one", true}};
    struct history h = {0};
    struct bn_error err;
    size_t n = 0;
    (void)state;
    open_file(&h);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool kept;
        assert_true(history_add(&h, bn_str_of(cases[i].entry), &kept, &err));
        assert_int_equal(kept, cases[i].kept);
    }
    assert_true(history_load(&h, count_entry, &n, &err));
    assert_int_equal(n, 3);
    unlink(h.path);
    history_finish(&h);
}

static void trims_to_the_newest_thousand(void **state)
{
    struct history h = {0};
    struct bn_error err;
    size_t n = 0;
    (void)state;
    open_file(&h);
    FILE *f = fopen(h.path, "w");
    assert_non_null(f);
    for (int i = 0; i < 1500; i++)
        fprintf(f, "entry %d\n", i);
    fclose(f);
    assert_true(history_load(&h, count_entry, &n, &err));
    assert_int_equal(n, HISTORY_MAX_ENTRIES);
    assert_string_equal(strbuf_text(&h.last), "entry 1499");
    n = 0;
    assert_true(history_load(&h, count_entry, &n, &err)); /* the file itself was trimmed */
    assert_int_equal(n, HISTORY_MAX_ENTRIES);
    unlink(h.path);
    history_finish(&h);
}

static size_t count_entries(const char *path)
{
    struct history h = {0};
    struct bn_error err;
    size_t n = 0;
    (void)snprintf(h.path, sizeof(h.path), "%s", path);
    assert_true(history_load(&h, count_entry, &n, &err));
    history_finish(&h);
    return n;
}

static void very_long_entries_are_not_written_to_the_file(void **state)
{
    struct history h = {0};
    struct strbuf entry = {0};
    struct bn_error err;
    struct stat st;
    bool added;
    (void)state;
    open_file(&h);
    for (size_t i = 0; i < HISTORY_ENTRY_BYTES; i++)
        strbuf_add_char(&entry, 'x');
    assert_true(history_add(&h, strbuf_str(&entry), &added, &err) && added);
    assert_int_equal(stat(h.path, &st), 0);
    assert_int_equal(st.st_size, HISTORY_ENTRY_BYTES + 1);
    strbuf_add_char(&entry, 'x');
    assert_true(history_add(&h, strbuf_str(&entry), &added, &err) && added); /* for the editor */
    assert_int_equal(stat(h.path, &st), 0);
    assert_int_equal(st.st_size, HISTORY_ENTRY_BYTES + 1);
    strbuf_finish(&entry);
    unlink(h.path);
    history_finish(&h);
}

static void entries_wait_for_a_lock_and_the_program_does_not(void **state)
{
    struct history h = {0};
    struct file_lock lock;
    struct bn_error err;
    bool kept;
    (void)state;
    open_file(&h);
    assert_int_equal(file_lock_take(&lock, h.path, NULL), FILE_LOCK_TAKEN);
    assert_true(history_add(&h, bn_str_of("one"), &kept, &err) && kept);
    assert_int_equal(count_entries(h.path), 0);
    file_lock_release(&lock);
    assert_true(history_add(&h, bn_str_of("two"), &kept, &err) && kept);
    assert_int_equal(count_entries(h.path), 2);
    assert_int_equal(file_lock_take(&lock, h.path, NULL), FILE_LOCK_TAKEN);
    assert_true(history_add(&h, bn_str_of("three"), &kept, &err) && kept);
    char path[PATH_BYTES];
    memcpy(path, h.path, sizeof(path));
    history_finish(&h); /* the last chance to write it */
    assert_int_equal(count_entries(path), 3);
    file_lock_release(&lock);
    unlink(path);
}

static void only_a_regular_file_is_used(void **state)
{
    struct history h = {0};
    struct bn_error err;
    bool kept;
    size_t n = 0;
    (void)state;
    open_file(&h);
    unlink(h.path);
    assert_int_equal(mkfifo(h.path, 0600), 0);
    assert_false(history_load(&h, count_entry, &n, &err));
    assert_non_null(strstr(err.text, "not a regular file"));
    assert_false(history_add(&h, bn_str_of("one"), &kept, &err));
    assert_non_null(strstr(err.text, "not a regular file"));
    unlink(h.path);
    h.path[0] = 0;
    history_finish(&h);
}

static void only_the_end_of_a_very_large_file_is_read(void **state)
{
    struct history h = {0};
    struct bn_error err;
    struct stat st;
    size_t n = 0;
    (void)state;
    open_file(&h);
    FILE *f = fopen(h.path, "w");
    assert_non_null(f);
    assert_int_equal(fseek(f, 40 << 20, SEEK_SET), 0); /* a hole */
    fputs("\nfirst\nlast\n", f);
    fclose(f);
    assert_true(history_load(&h, count_entry, &n, &err));
    assert_int_equal(n, 2);
    assert_string_equal(strbuf_text(&h.last), "last");
    assert_int_equal(stat(h.path, &st), 0);
    assert_int_equal(st.st_size, strlen("first\nlast\n"));
    unlink(h.path);
    history_finish(&h);
}

static void a_missing_file_is_an_empty_history(void **state)
{
    struct history h = {.path = "/tmp/no-such-directory/history"};
    struct bn_error err;
    size_t n = 0;
    (void)state;
    assert_true(history_load(&h, count_entry, &n, &err));
    assert_int_equal(n, 0);
}

static void a_full_disk_is_named_and_leaves_no_part_of_an_entry(void **state)
{
    struct history h = {0};
    struct bn_error err;
    struct rlimit before;
    bool kept;
    (void)state;
    open_file(&h);
    assert_true(history_add(&h, bn_str_of("one"), &kept, &err));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    const struct rlimit small = {.rlim_cur = 8, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    errno = 0;
    const bool ok = history_add(&h, bn_str_of("an entry of more bytes"), &kept, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(ok);
    assert_non_null(strstr(err.text, strerror(EFBIG)));
    assert_int_equal(count_entries(h.path), 1);
    unlink(h.path);
    h.path[0] = 0;
    history_finish(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_survive_the_escapes),
        cmocka_unit_test(leaves_out_blank_secret_and_repeated_entries),
        cmocka_unit_test(trims_to_the_newest_thousand),
        cmocka_unit_test(very_long_entries_are_not_written_to_the_file),
        cmocka_unit_test(entries_wait_for_a_lock_and_the_program_does_not),
        cmocka_unit_test(only_a_regular_file_is_used),
        cmocka_unit_test(only_the_end_of_a_very_large_file_is_read),
        cmocka_unit_test(a_missing_file_is_an_empty_history),
        cmocka_unit_test(a_full_disk_is_named_and_leaves_no_part_of_an_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
