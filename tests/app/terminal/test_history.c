/*
 * The history file: escapes, which entries are added, trimming.
 */
#define _GNU_SOURCE /* flock */
#include "app/terminal/line/history.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
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

/* Without the lock, an entry is lost if another chat trims the file at the same time. */
static void waits_for_the_lock(void **state)
{
    struct history h = {0};
    int status;
    (void)state;
    open_file(&h);
    const int fd = open(h.path, O_RDWR);
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    const pid_t child = fork();
    if (child == 0) {
        struct bn_error err;
        bool kept;
        (void)signal(SIGALRM, SIG_DFL);
        (void)alarm(1);
        _exit(history_add(&h, bn_str_of("one"), &kept, &err) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    close(fd);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_survive_the_escapes),
        cmocka_unit_test(leaves_out_blank_secret_and_repeated_entries),
        cmocka_unit_test(trims_to_the_newest_thousand),
        cmocka_unit_test(waits_for_the_lock),
        cmocka_unit_test(a_missing_file_is_an_empty_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
