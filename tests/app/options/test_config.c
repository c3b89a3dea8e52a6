/*
 * The config file: comments, quotes, names, and files that are no plain text, with a table of the
 * test.
 */
#include "app/options/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct option rows[] = {
    {.name = "temp", .kind = OPTION_REAL, .places = OPTION_IN_CONFIG, .reals = {0, 100, false}},
    {.name = "wrap", .kind = OPTION_FLAG, .places = OPTION_IN_CONFIG, .fallback = "off"},
    {.name = "color", .kind = OPTION_CHOICE, .places = OPTION_IN_CONFIG, .choices = "auto|never"},
    {.name = "system", .kind = OPTION_TEXT, .places = OPTION_IN_CONFIG},
};
static const struct option_table table = OPTION_TABLE("Test", rows);

struct fixture {
    struct options *o;
    struct bn_error err;
    size_t n_warnings;
    char warning[400];  /* the last one */
    char remarks[4000]; /* all, each with a newline */
    size_t n_errors;
    char errors[4000]; /* those that config_apply has not returned, each with a newline */
};

static int set_up(void **state)
{
    static struct fixture f;
    const struct option_table *const tables[] = {&table};
    f = (struct fixture){0};
    *state = &f;
    return options_open(tables, 1, &f.o, &f.err) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    options_close(f->o);
    return 0;
}

static void keep_remark(void *ud, enum config_remark kind, const char *sentence)
{
    struct fixture *f = ud;
    const size_t n = strlen(f->errors), n_all = strlen(f->remarks);
    (void)snprintf(f->remarks + n_all, sizeof(f->remarks) - n_all, "%s\n", sentence);
    if (kind == CONFIG_ERROR) {
        f->n_errors++;
        (void)snprintf(f->errors + n, sizeof(f->errors) - n, "%s\n", sentence);
        return;
    }
    f->n_warnings++;
    (void)snprintf(f->warning, sizeof(f->warning), "%s", sentence);
}

static bool apply_bytes(struct fixture *f, const char *text, size_t n_bytes)
{
    f->n_warnings = f->n_errors = 0;
    f->errors[0] = f->remarks[0] = 0;
    f->err = (struct bn_error){0};
    return config_apply(f->o, "file", (struct bn_str){text, n_bytes}, keep_remark, f, &f->err);
}

static bool apply(struct fixture *f, const char *text)
{
    return apply_bytes(f, text, strlen(text));
}

/* Apply a text that sets "system". */
static void sets_system(struct fixture *f, const char *text, const char *value, size_t n_warnings)
{
    assert_true(apply(f, text));
    assert_string_equal(options_text(f->o, "system"), value);
    assert_int_equal(f->n_warnings, n_warnings);
}

static void a_comment_may_follow_a_value(void **state)
{
    struct fixture *f = *state;
    assert_true(apply(f, "# first\n  # second\ntemp = 0.5   # colder\nwrap = on\t#x\r\n"
                         "color = never # as at night\n"));
    assert_true(options_real(f->o, "temp") == 0.5);
    assert_true(options_flag(f->o, "wrap"));
    assert_string_equal(options_text(f->o, "color"), "never");
    assert_int_equal(f->n_warnings, 0);
    assert_false(apply(f, "temp = 0.5#colder\n"));
    assert_string_equal(f->err.text, "file:1: temp '0.5#colder': expected a number from 0 to 100");
}

static void a_text_keeps_what_is_in_quotes(void **state)
{
    static const char *const cases[][2] = {
        {"system = \"You are # nice\"\n", "You are # nice"},
        {"system = \" a # b \"  # c\n", " a # b "},
        {"system = \"a\"# b\n", "a"},
        {"system = \"\"\n", ""},
        {"system = say \"a\"\n", "say \"a\""},
        {"system = \"a\" or \"b\"\n", "\"a\" or \"b\""},
        {"system = C#\n", "C#"},
        {"system =###\n", "###"},
        {"temp = \"1\"\nsystem = it's\n", "it's"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        sets_system(f, cases[i][0], cases[i][1], 0);
}

static void a_quote_that_is_not_closed_is_a_warning(void **state)
{
    struct fixture *f = *state;
    sets_system(f, "system = \"\n", "\"", 1);
    sets_system(f, "system = \"say this\n", "\"say this", 1);
    sets_system(f, "system = say \"this\n", "say \"this", 0); /* the value does not begin with it */
}

static void a_text_that_loses_a_comment_is_a_warning(void **state)
{
    static const char *const cases[][2] = {
        {"\nsystem = You are # nice\n", "You are"},
        {"\nsystem = ### Rules\n", ""},
        {"\nsystem = \"a # b\n", "\"a"},
        {"\nsystem = \"a\" or \"b # c\"\n", "\"a\" or \"b"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sets_system(f, cases[i][0], cases[i][1], 1);
        assert_string_equal(f->warning, "file:2: '#' starts a comment; if it is part of the text, "
                                        "put the text in double quotes");
    }
}

static void a_byte_order_mark_is_skipped_and_a_nul_refused(void **state)
{
    struct fixture *f = *state;
    assert_true(apply(f, "\xEF\xBB\xBFtemp = 3\n"));
    assert_int_equal(f->n_warnings, 0);
    assert_true(options_real(f->o, "temp") == 3);
    assert_false(apply_bytes(f, "\0temp = 4\n", 10));
    assert_string_equal(f->err.text, "file:1: a NUL byte, so this is no UTF-8 text");
    assert_false(apply_bytes(f, "wrap = on\ntemp = 4 \0\n", 21));
    assert_string_equal(f->err.text, "file:2: a NUL byte, so this is no UTF-8 text");
    assert_true(options_real(f->o, "temp") == 3);
}

static void the_name_of_a_flag_may_begin_with_no(void **state)
{
    struct fixture *f = *state;
    assert_true(apply(f, "wrap = on\nno-wrap = on\n"));
    assert_false(options_flag(f->o, "wrap"));
    assert_true(apply(f, "no-wrap = off\n"));
    assert_true(options_flag(f->o, "wrap"));
    assert_int_equal(f->n_warnings, 0);
}

static void an_unknown_name_is_a_warning_with_a_near_name(void **state)
{
    struct fixture *f = *state;
    assert_true(apply(f, "temo = 1\n"));
    assert_string_equal(f->warning, "file:1: there is no option 'temo'; did you mean temp?");
    assert_true(apply(f, "\nno-color = on\n"));
    assert_string_equal(f->warning,
                        "file:2: there is no option 'no-color'; did you mean color = never?");
    assert_true(apply(f, "nonsense = 1\n"));
    assert_string_equal(f->warning, "file:1: there is no option 'nonsense'");
}

static void all_wrong_lines_are_reported(void **state)
{
    struct fixture *f = *state;
    assert_false(apply(f, "temp = hot\nwrap = on\nnonsense = 1\ncolor = red\nno equals\n"));
    assert_string_equal(f->errors, "file:1: temp 'hot': expected a number from 0 to 100\n"
                                   "file:4: color 'red': expected auto or never\n");
    assert_string_equal(f->err.text, "file:5: expected name = value");
    assert_int_equal(f->n_warnings, 1); /* of the unknown name */
    assert_true(options_flag(f->o, "wrap"));
}

static void remarks_are_in_the_order_of_the_lines(void **state)
{
    struct fixture *f = *state;
    assert_false(apply(f, "aa = 1\nno equals\nbb = 1\ncc = 1\nno equals\ndd = 1\n"));
    assert_string_equal(f->remarks, "file:1: there is no option 'aa'\n"
                                    "file:2: expected name = value\n"
                                    "file:3: there is no option 'bb'\n"
                                    "file:4: there is no option 'cc'\n"
                                    "file:5: expected name = value\n"
                                    "file:6: there is no option 'dd'\n");
    assert_string_equal(f->err.text, "file has 2 wrong lines");
}

static void a_file_that_is_no_config_file_has_few_errors(void **state)
{
    struct fixture *f = *state;
    assert_false(apply(f, "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n"));
    assert_int_equal(f->n_errors, CONFIG_MAX_ERRORS);
    assert_string_equal(f->err.text, "file: further lines were not read");
    assert_false(apply(f, "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"));
    assert_int_equal(f->n_errors, CONFIG_MAX_ERRORS - 1);
    assert_string_equal(f->err.text, "file:10: expected name = value");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_comment_may_follow_a_value),
        TEST(a_text_keeps_what_is_in_quotes),
        TEST(a_quote_that_is_not_closed_is_a_warning),
        TEST(a_text_that_loses_a_comment_is_a_warning),
        TEST(the_name_of_a_flag_may_begin_with_no),
        TEST(all_wrong_lines_are_reported),
        TEST(remarks_are_in_the_order_of_the_lines),
        TEST(a_file_that_is_no_config_file_has_few_errors),
        TEST(an_unknown_name_is_a_warning_with_a_near_name),
        TEST(a_byte_order_mark_is_skipped_and_a_nul_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
