/*
 * Exit codes for scripts, and any bytes printed on one safe line, also in the log.
 */
#include "app/common/log_file.h"
#include "app/common/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void exit_codes_depend_on_the_error_and_the_stage(void **state)
{
    static const struct {
        enum bn_errcode code;
        int load, run;
    } rows[] = {
        {BN_EARG, 2, 2},   {BN_EFORMAT, 3, 1},  {BN_EUNSUPPORTED, 3, 1},   {BN_EIO, 3, 5},
        {BN_ENOMEM, 3, 1}, {BN_ECONTEXT, 4, 4}, {BN_ECANCELLED, 130, 130}, {BN_EDEVICE, 3, 1},
        {BN_ELOST, 3, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct bn_error err = {.code = rows[i].code};
        assert_int_equal(report_code(STAGE_LOAD, &err), rows[i].load);
        assert_int_equal(report_code(STAGE_RUN, &err), rows[i].run);
    }
}

static void any_bytes_become_one_safe_line(void **state)
{
    static const char bytes[] = "a\033[31m\nb\tc \xff \xc2\x9b \xe2\x80\xae d\0e";
    static const char expected[] = "a\xef\xbf\xbd[31m b c \xef\xbf\xbd \xef\xbf\xbd \xef\xbf\xbd d"
                                   "\xef\xbf\xbd"
                                   "e";
    char out[200] = "";
    (void)state;
    FILE *f = fmemopen(out, sizeof(out), "w");
    assert_non_null(f);
    report_safe(f, (struct bn_str){bytes, sizeof(bytes) - 1});
    fclose(f);
    assert_string_equal(out, expected);
}

/* A socket of this type keeps the writes apart: each recv returns the bytes of one write. */
static void each_line_is_one_write(void **state)
{
    static const struct bn_error err = {.code = BN_EIO, .text = "cannot open 'a\nb\xff'"};
    char sentence[701], seen[REPORT_BLOCK_BYTES];
    struct bn_notes notes = {0};
    int ends[2];
    (void)state;
    memset(sentence, 0xff, sizeof(sentence) - 1); /* each byte becomes one of three bytes */
    sentence[sizeof(sentence) - 1] = 0;
    bn_notes_add(&notes, BN_NOTE_WARNING, "a", "first");
    bn_notes_add(&notes, BN_NOTE_WARNING, "b", "second");
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    const int saved = dup(STDERR_FILENO);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    report_line("prog", "%s", sentence);
    (void)report_error("prog", STAGE_RUN, &err);
    report_warnings("prog", &notes);
    report_notice("label: ", bn_str_of("one\ntwo"), TERM_KEEP_LINES, REPORT_WRAP);
    report_notice("", bn_str_of("three"), TERM_KEEP_LINES, REPORT_NO_WRAP);
    assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    close(saved);
    close(ends[1]);
    assert_int_equal(recv(ends[0], seen, sizeof(seen), 0), strlen("prog: ") + 3 * 699 + 1);
    static const char *const expected[] = {"prog: cannot open 'a b\xef\xbf\xbd'\n",
                                           "prog: warning: first\n", "prog: warning: second\n",
                                           "label: one\ntwo\n", "three\n"};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        const ssize_t n = recv(ends[0], seen, sizeof(seen) - 1, 0);
        assert_true(n >= 0);
        seen[n] = 0;
        assert_string_equal(seen, expected[i]);
    }
    assert_int_equal(recv(ends[0], seen, sizeof(seen), 0), 0); /* the end */
    close(ends[0]);
}

/* Texts for the log may contain names from a model file. */
static void a_text_with_newlines_is_one_line_of_the_log(void **state)
{
    char path[] = "/tmp/bitnet_log_XXXXXX", text[200] = "";
    struct bn_error err;
    struct log_file log;
    (void)state;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_true(log_file_open(&log, path, &err));
    log_file_line(&log, "left out: x\n    0.000 forged\033[2J");
    log_file_close(&log);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    unlink(path);
    const char *end = strchr(text, '\n');
    assert_non_null(end);
    assert_int_equal(end[1], 0);
    assert_non_null(strstr(text, " left out: x     0.000 forged\xef\xbf\xbd[2J\n"));
}

static void the_version_is_three_numbers(void **state)
{
    int major, minor, patch;
    char rest;
    (void)state;
    assert_int_equal(sscanf(report_version(), "%d.%d.%d%c", &major, &minor, &patch, &rest), 3);
}

static void sizes_have_the_unit_that_fits(void **state)
{
    static const struct {
        uint64_t n_bytes;
        const char *text;
    } rows[] = {
        {0, "0 bytes"},
        {999, "999 bytes"},
        {1000, "1.0 kB"},
        {999949, "999.9 kB"},
        {999950, "1.0 MB"},
        {53200000, "53.2 MB"},
        {1077512345, "1.08 GB"},
        {7000000000, "7.00 GB"},
        {2500000000000, "2.50 TB"},
        {UINT64_MAX, "18446744.07 TB"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char out[REPORT_SIZE_BYTES];
        report_size(rows[i].n_bytes, out);
        assert_string_equal(out, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes_depend_on_the_error_and_the_stage),
        cmocka_unit_test(any_bytes_become_one_safe_line),
        cmocka_unit_test(each_line_is_one_write),
        cmocka_unit_test(a_text_with_newlines_is_one_line_of_the_log),
        cmocka_unit_test(sizes_have_the_unit_that_fits),
        cmocka_unit_test(the_version_is_three_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
