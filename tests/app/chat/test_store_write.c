/*
 * Failed writes of a saved chat lose no turn, also if the failed write cannot be undone. MODEL is a
 * file with a vocabulary of bytes.
 */
#include "app/chat/conversation/store.h"
#include "engine/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static char work[] = "/tmp/test_store_write_XXXXXX";
static char path[200], journal[220], aside[240];
static struct tokenizer *tokenizer;

static bool truncation_fails, renaming_fails;

/* These two replace functions of the C library, which they call unless they shall fail. */
int ftruncate(int fd, off_t n_bytes)
{
    if (!truncation_fails)
        return (int)syscall(SYS_ftruncate, fd, n_bytes);
    errno = EIO;
    return -1;
}

int rename(const char *from, const char *to)
{
    if (!renaming_fails)
        return renameat(AT_FDCWD, from, AT_FDCWD, to);
    errno = EIO;
    return -1;
}

static int make_work(void **state)
{
    (void)state;
    (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit fails instead */
    if (!mkdtemp(work))
        return -1;
    (void)snprintf(path, sizeof(path), "%s/chat.json", work);
    (void)snprintf(journal, sizeof(journal), "%s.journal", path);
    (void)snprintf(aside, sizeof(aside), "%s.old", journal);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    truncation_fails = renaming_fails = false;
    (void)unlink(journal); /* after a test that failed */
    (void)unlink(aside);   /* of one test */
    return unlink(path);
}

static int remove_work(void **state)
{
    (void)state;
    return rmdir(work);
}

/* Set the soft limit, and return the one before. */
static rlim_t set_limit(int resource, rlim_t soft)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(resource, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = soft;
    assert_int_equal(setrlimit(resource, &limit), 0);
    return before;
}

static size_t file_bytes(const char *name)
{
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    const long n = ftell(f);
    assert_int_equal(fclose(f), 0);
    return (size_t)n;
}

/* File and journal together have this number of turns, and none of their lines is damaged. */
static void expect_turns(const struct store *s, size_t n_turns)
{
    struct transcript read = {0};
    struct store_reading reading;
    struct bn_error err;
    assert_true(store_read(s, path, &read, &reading, &err));
    assert_int_equal(read.now.n, n_turns);
    assert_true(reading.journal == JOURNAL_NONE || reading.journal == JOURNAL_READ);
    transcript_finish(&read);
}

static void a_partly_written_line_destroys_no_later_turn(void **state)
{
    const struct store s = {.tokenizer = tokenizer, .model_name = "m"};
    struct store_file f = {0};
    struct transcript t = {0};
    struct bn_error err;
    (void)state;
    assert_true(store_open(&f, path, NULL));
    for (int i = 0; i < 2; i++) { /* the second turn is in the journal */
        assert_true(transcript_add_question(&t, bn_str_of("a")));
        assert_true(store_save(&s, &f, &t.now, &err));
    }
    assert_true(transcript_add_question(&t, bn_str_of("b")));
    truncation_fails = true;
    const rlim_t before = set_limit(RLIMIT_FSIZE, file_bytes(journal) + 10);
    const bool ok = store_save(&s, &f, &t.now, &err);
    (void)set_limit(RLIMIT_FSIZE, before);
    assert_false(ok);
    assert_non_null(strstr(err.text, strerror(EFBIG)));
    expect_turns(&s, 2);
    assert_true(transcript_add_question(&t, bn_str_of("c")));
    assert_true(store_save(&s, &f, &t.now, &err));
    expect_turns(&s, 4);
    assert_true(store_close(&s, &f, &t.now, &err));
    transcript_finish(&t);
}

/* A chat of two questions, the second one in the journal, whose program was killed after it had
 * written `tail` to the journal. */
static void make_killed_chat(const struct store *s, const char *tail)
{
    struct store_file f = {0};
    struct transcript t = {0};
    struct bn_error err;
    assert_true(store_open(&f, path, NULL));
    for (int i = 0; i < 2; i++) {
        assert_true(transcript_add_question(&t, bn_str_of("a")));
        assert_true(store_save(s, &f, &t.now, &err));
    }
    store_forget(&f);
    transcript_finish(&t);
    FILE *out = fopen(journal, "ab");
    assert_non_null(out);
    assert_true(fputs(tail, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

/* Open the chat and add a question, but fail to replace its file, and end as if killed. */
static void fail_to_replace(const struct store *s)
{
    struct store_file f = {0};
    struct transcript t = {0};
    struct store_reading reading;
    struct bn_error err;
    assert_true(store_read(s, path, &t, &reading, &err));
    assert_true(store_open(&f, path, NULL));
    store_continue(&f, &t.now, &reading);
    assert_true(transcript_add_question(&t, bn_str_of("b")));
    renaming_fails = true;
    assert_false(store_save(s, &f, &t.now, &err));
    renaming_fails = false;
    store_forget(&f);
    transcript_finish(&t);
}

static void an_incomplete_line_is_not_continued(void **state)
{
    const struct store s = {.tokenizer = tokenizer, .model_name = "m"};
    (void)state;
    make_killed_chat(&s, "{\"keep\": 1, \"mess");
    expect_turns(&s, 2);
    fail_to_replace(&s); /* after it has marked the journal */
    expect_turns(&s, 2);
}

static void a_damaged_journal_stays_until_its_turns_are_in_the_file(void **state)
{
    const struct store s = {.tokenizer = tokenizer, .model_name = "m"};
    struct store_file f = {0};
    struct transcript t = {0};
    struct store_reading reading;
    struct bn_error err;
    (void)state;
    make_killed_chat(&s, "[]\n");
    fail_to_replace(&s);
    assert_true(store_read(&s, path, &t, &reading, &err));
    assert_int_equal(reading.journal, JOURNAL_DAMAGED);
    assert_int_equal(t.now.n, 2);
    assert_true(store_open(&f, path, NULL));
    store_continue(&f, &t.now, &reading);
    assert_true(store_close(&s, &f, &t.now, &err));
    expect_turns(&s, 2);
    assert_int_equal(access(aside, F_OK), 0);
    assert_int_equal(access(journal, F_OK), -1);
    transcript_finish(&t);
}

static void an_emptied_chat_is_written_after_a_write_without_a_hash(void **state)
{
    const struct store s = {.tokenizer = tokenizer, .model_name = "m"};
    struct store_file f = {0};
    struct transcript t = {0};
    struct bn_error err;
    (void)state;
    assert_true(store_open(&f, path, NULL));
    assert_true(transcript_add_question(&t, bn_str_of("a")));
    /* One more descriptor is enough for the new file, but not for reading it for its hash. */
    const int next = open("/dev/null", O_RDONLY);
    assert_true(next >= 0);
    assert_int_equal(close(next), 0);
    const rlim_t before = set_limit(RLIMIT_NOFILE, (rlim_t)next + 1);
    const bool ok = store_save(&s, &f, &t.now, &err);
    (void)set_limit(RLIMIT_NOFILE, before);
    assert_true(ok);
    assert_false(f.base_is_known);
    expect_turns(&s, 1);
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    assert_true(store_save(&s, &f, &t.now, &err));
    expect_turns(&s, 0);
    assert_true(store_close(&s, &f, &t.now, &err));
    transcript_finish(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_partly_written_line_destroys_no_later_turn, remove_files),
        cmocka_unit_test_teardown(an_incomplete_line_is_not_continued, remove_files),
        cmocka_unit_test_teardown(a_damaged_journal_stays_until_its_turns_are_in_the_file,
                                  remove_files),
        cmocka_unit_test_teardown(an_emptied_chat_is_written_after_a_write_without_a_hash,
                                  remove_files),
    };
    const struct tokenizer_config cfg = {0};
    struct bn_file *file;
    struct bn_error err;
    if (argc != 2 || !bn_file_open(argv[1], &file, &err) ||
        !tokenizer_open(file, &cfg, &tokenizer, &err))
        return 1;
    const int failed = cmocka_run_group_tests(tests, make_work, remove_work);
    tokenizer_close(tokenizer);
    bn_file_close(file);
    return failed;
}
