/*
 * Patterns of /find: letter case, syntax errors, any bytes, and the limit for slow patterns.
 */
#include "app/common/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static struct pattern *open_pattern(const char *text)
{
    struct pattern *p = NULL;
    struct bn_error err;
    if (!pattern_open(bn_str_of(text), &p, &err))
        fail_msg("%s", err.text);
    return p;
}

static bool has_hit(struct pattern *p, struct bn_str line)
{
    struct pattern_hit hit = {0};
    return pattern_next(p, line, &hit);
}

static bool matches(const char *pattern, const char *line)
{
    struct pattern *p = open_pattern(pattern);
    const bool yes = has_hit(p, bn_str_of(line));
    pattern_close(p);
    return yes;
}

static void small_letters_ignore_case(void **state)
{
    (void)state;
    assert_true(matches("answer", "the Answer"));
    assert_false(matches("Answer", "the answer"));
    assert_true(matches("\\Sb", "xB")); /* the S of \S is not a capital letter of the pattern */
    assert_true(matches("colou?r", "Color"));
    assert_true(matches("\xc3\xa9t\xc3\xa9", "\xc3\x89T\xc3\x89")); /* not only ASCII */
    assert_true(matches("^$", ""));
    assert_false(matches("x", ""));
}

static void syntax_errors_name_the_position(void **state)
{
    struct pattern *p = NULL;
    struct bn_error err = {0};
    (void)state;
    assert_false(pattern_open(bn_str_of("ab("), &p, &err));
    assert_int_equal(err.code, BN_EARG);
    assert_non_null(strstr(err.text, "character 3"));
    assert_false(pattern_open(bn_str_of("\xc3\xa9\xc3\xa9("), &p, &err));
    assert_non_null(strstr(err.text, "character 3"));
    assert_false(pattern_open(bn_str_of("\xff"), &p, &err));
    assert_false(pattern_open(bn_str_of("\\C"), &p, &err)); /* a byte, perhaps of a character */
    assert_null(p);
}

static void lines_may_hold_any_bytes(void **state)
{
    (void)state;
    assert_true(matches("end", "\xff\xc3 broken \x1b end"));
    assert_false(matches("\xc3\xa9", "\xc3 \xa9"));
}

/* The hits of a line as "begin-end begin-end ". */
static void expect_hits(const char *pattern, const char *line, const char *wanted)
{
    struct pattern *p = open_pattern(pattern);
    char text[200] = "";
    struct pattern_hit hit = {0};
    for (size_t n = 0; pattern_next(p, bn_str_of(line), &hit) && n < sizeof(text);)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%zu-%zu ", hit.begin, hit.end);
    assert_string_equal(text, wanted);
    pattern_close(p);
}

static void all_hits_of_a_line_are_found(void **state)
{
    (void)state;
    expect_hits("fox", "a fox, a Fox and foxfox", "2-5 9-12 17-20 20-23 ");
    expect_hits("^a", "a a", "0-1 ");
    expect_hits("\\bb", "ab b", "3-4 ");
    expect_hits("\xc3\xa9+", "\xc3\xa9\xc3\xa9 \xff\xc3\xa9", "0-4 6-8 ");
    expect_hits("x*", "axx x", "0-0 1-3 4-5 "); /* only the first one may be empty */
    expect_hits("$", "abc", "3-3 ");
    expect_hits("x", "", "");
}

static void the_number_of_hits_is_limited(void **state)
{
    static char line[PATTERN_MAX_HITS + 10];
    struct pattern *p = open_pattern("a");
    struct pattern_hit hit = {0};
    (void)state;
    memset(line, 'a', sizeof(line));
    while (pattern_next(p, (struct bn_str){line, sizeof(line)}, &hit))
        assert_true(hit.n <= PATTERN_MAX_HITS);
    assert_int_equal(hit.n, PATTERN_MAX_HITS);
    assert_false(has_hit(p, bn_str_of("a")));
    assert_false(pattern_gave_up(p));
    pattern_close(p);
}

/* All hits in a long line are found soon: the time of a hit does not depend on the length of the
 * line. If the line is not valid UTF-8, it does, and the search in the line ends early. */
static void a_long_line_is_not_checked_at_each_hit(void **state)
{
    enum { N_BYTES = 16000000 }; /* with a check at each hit, the test takes minutes */
    char *line = malloc(N_BYTES);
    const clock_t started = clock(); /* processor time: on a busy machine, elapsed time is longer */
    (void)state;
    assert_non_null(line);
    memset(line, '1', N_BYTES);
    for (size_t is_valid = 0; is_valid < 2; is_valid++) {
        struct pattern *p = open_pattern("1");
        struct pattern_hit hit = {0};
        line[N_BYTES - 1] = is_valid ? '1' : '\xff';
        while (pattern_next(p, (struct bn_str){line, N_BYTES}, &hit))
            assert_true(hit.n <= PATTERN_MAX_HITS);
        assert_int_equal(pattern_gave_up(p), !is_valid);
        assert_int_equal(hit.n == PATTERN_MAX_HITS, is_valid);
        pattern_close(p);
    }
    assert_true((clock() - started) / CLOCKS_PER_SEC < 60);
    free(line);
}

/* The line ends in b, so nothing matches, and there are very many ways to divide the letters a. */
static void a_slow_pattern_gives_up_soon(void **state)
{
    static char line[4096];
    struct pattern *p = open_pattern("(a+)+(a+)+(a+)+$");
    const clock_t started = clock();
    (void)state;
    memset(line, 'a', sizeof(line) - 1);
    line[sizeof(line) - 2] = 'b';
    assert_false(pattern_gave_up(p));
    for (size_t i = 0; i < 10000; i++)
        assert_false(has_hit(p, (struct bn_str){line, sizeof(line) - 1}));
    assert_true(pattern_gave_up(p));
    assert_true((clock() - started) / CLOCKS_PER_SEC < 60); /* without a limit, one takes years */
    pattern_close(p);
}

/* Every start position needs 90,000 steps, which is far below PCRE2's own limit. */
static void many_start_positions_count_together(void **state)
{
    static char line[20000];
    struct pattern *p = open_pattern(".{1,300}.{1,300}[bc]");
    (void)state;
    memset(line, 'a', sizeof(line));
    assert_false(has_hit(p, (struct bn_str){line, sizeof(line)}));
    assert_true(pattern_gave_up(p));
    pattern_close(p);
    assert_true(matches("x.*y", "a long line with x, then much text, then y"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_letters_ignore_case),
        cmocka_unit_test(syntax_errors_name_the_position),
        cmocka_unit_test(lines_may_hold_any_bytes),
        cmocka_unit_test(all_hits_of_a_line_are_found),
        cmocka_unit_test(the_number_of_hits_is_limited),
        cmocka_unit_test(a_long_line_is_not_checked_at_each_hit),
        cmocka_unit_test(a_slow_pattern_gives_up_soon),
        cmocka_unit_test(many_start_positions_count_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
