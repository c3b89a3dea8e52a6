/*
 * Options: parsing, ranges, precedence, spelling and help, with tables of the test.
 */
#include "app/options/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define EVERYWHERE (OPTION_ON_COMMAND | OPTION_IN_CONFIG | OPTION_BY_SET)

static const struct option talk_rows[] = {
    {.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .help = "only errors"},
    {.name = "verbose", .letter = 'v', .kind = OPTION_FLAG, .help = "print more"},
    {.name = "wrap",
     .kind = OPTION_FLAG,
     .places = EVERYWHERE,
     .fallback = "on",
     .help = "do not break lines"},
};

static const struct option number_rows[] = {
    {.name = "max-tokens",
     .letter = 'n',
     .kind = OPTION_INT,
     .places = EVERYWHERE,
     .ints = {-1, 4096},
     .fallback = "-1",
     .arg = "N",
     .help = "most tokens of an answer"},
    {.name = "seed", .kind = OPTION_INT, .ints = {0, INT64_MAX}, .help = "seed"},
    {.name = "temp",
     .kind = OPTION_REAL,
     .places = EVERYWHERE,
     .reals = {0, 100, false},
     .fallback = "0.7",
     .help = "temperature"},
    {.name = "top-p",
     .kind = OPTION_REAL,
     .places = EVERYWHERE,
     .reals = {0, 1, true},
     .fallback = "0.95",
     .help = "nucleus"},
};

static const struct option other_rows[] = {
    {.name = "isa",
     .kind = OPTION_CHOICE,
     .choices = "ref|avx2|amx",
     .fallback = "avx2",
     .help = "instruction set"},
    {.name = "stop",
     .kind = OPTION_TEXT,
     .repeats = true,
     .places = EVERYWHERE,
     .arg = "TEXT",
     .help = "end the answer before TEXT"},
    {.name = "depths",
     .letter = 'd',
     .kind = OPTION_INTS,
     .advanced = true,
     .ints = {0, 100000},
     .fallback = "0,2048",
     .help = "depths"},
    {.name = "colour", .kind = OPTION_TEXT, .places = OPTION_BY_SET, .help = "x"},
    {.name = "ink",
     .kind = OPTION_CHOICE,
     .places = EVERYWHERE,
     .choices = "auto|never",
     .help = "coloured text"},
    {.name = "ids", .kind = OPTION_INTS, .ints = {0, INT32_MAX}, .help = "tokens"},
    {.name = "no-glue", .kind = OPTION_TEXT, .arg = "NAME", .help = "repairs that are left out"},
    {.name = "file",
     .kind = OPTION_TEXT,
     .repeats = true,
     .places = EVERYWHERE,
     .paths = OPTION_PATH,
     .help = "x"},
    {.name = "system",
     .kind = OPTION_TEXT,
     .places = EVERYWHERE,
     .paths = OPTION_AT_PATH,
     .help = "x"},
};
static const struct option_table talk = OPTION_TABLE("Talk", talk_rows);
static const struct option_table numbers = OPTION_TABLE("Numbers", number_rows);
static const struct option_table others = OPTION_TABLE("Other", other_rows);

struct fixture {
    struct options *o;
    struct bn_error err;
};

static int set_up(void **state)
{
    const struct option_table *tables[] = {&talk, &numbers, &others};
    struct fixture *f = calloc(1, sizeof(*f));
    *state = f;
    return f && options_open(tables, 3, &f->o, &f->err) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    options_close(f->o);
    free(f);
    return 0;
}

/* Parse a command line, split at blanks. */
static bool parse(struct fixture *f, const char *line)
{
    static char copy[400];
    static char program[] = "program";
    char *argv[40] = {program};
    int argc = 1;
    assert_true(strlen(line) < sizeof(copy));
    memcpy(copy, line, strlen(line) + 1);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    f->err = (struct bn_error){0};
    return options_parse(f->o, argc, argv, &f->err);
}

static void refuses(struct fixture *f, const char *line, const char *sentence)
{
    assert_false(parse(f, line));
    assert_string_equal(f->err.text, sentence);
    assert_int_equal(f->err.code, BN_EARG);
}

static void defaults_are_parsed_like_values(void **state)
{
    struct fixture *f = *state;
    size_t n;
    assert_true(options_flag(f->o, "wrap"));
    assert_false(options_flag(f->o, "quiet"));
    assert_int_equal(options_int(f->o, "max-tokens"), -1);
    assert_true(options_real(f->o, "temp") == 0.7);
    assert_string_equal(options_text(f->o, "isa"), "avx2");
    assert_int_equal(options_choice(f->o, "isa"), 1);
    assert_int_equal(options_ints(f->o, "depths", &n)[1], 2048);
    assert_int_equal(n, 2);
    assert_false(options_given(f->o, "temp"));
    assert_null(options_text(f->o, "stop"));
}

static void reads_every_form_of_a_value(void **state)
{
    struct fixture *f = *state;
    assert_true(parse(f, "--max-tokens 32 --temp=1.5e-1 -d1,2,3 --isa ref -qv"));
    size_t n;
    assert_int_equal(options_int(f->o, "max-tokens"), 32);
    assert_true(options_real(f->o, "temp") == 0.15);
    assert_int_equal(options_ints(f->o, "depths", &n)[2], 3);
    assert_int_equal(n, 3);
    assert_int_equal(options_choice(f->o, "isa"), 0);
    assert_true(options_flag(f->o, "quiet") && options_flag(f->o, "verbose"));
    assert_true(parse(f, "-n 7 -n8 -qn9"));
    assert_int_equal(options_int(f->o, "max-tokens"), 9);
}

static void value_in_next_word_may_begin_with_a_dash(void **state)
{
    struct fixture *f = *state;
    assert_true(parse(f, "--max-tokens -1 --stop --temp"));
    assert_int_equal(options_int(f->o, "max-tokens"), -1);
    assert_string_equal(options_text(f->o, "stop"), "--temp");
}

static void words_and_options_mix_until_two_dashes(void **state)
{
    struct fixture *f = *state;
    assert_true(parse(f, "model.gguf -q - hello -- --temp -x"));
    size_t n;
    const char *const *words = options_words(f->o, &n);
    assert_int_equal(n, 5);
    assert_string_equal(words[0], "model.gguf");
    assert_string_equal(words[1], "-");
    assert_string_equal(words[2], "hello");
    assert_string_equal(words[3], "--temp");
    assert_string_equal(words[4], "-x");
}

static void repeated_texts_are_kept_in_order(void **state)
{
    struct fixture *f = *state;
    assert_true(parse(f, "--stop a --stop=b --stop= --stop c"));
    size_t n;
    const char *const *stops = options_list(f->o, "stop", &n);
    assert_int_equal(n, 4);
    assert_string_equal(stops[0], "a");
    assert_string_equal(stops[1], "b");
    assert_string_equal(stops[2], "");
    assert_string_equal(options_text(f->o, "stop"), "c");
}

static void refuses_invalid_numbers(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"nan",   "inf", "-inf", "",    "0x10", "1e",
                                      "1e999", "1,5", ".",    "abc", "1.5x", "infinity",
                                      "--",    "1e+", "+-1",  "101", "-0.1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char arg[40], expected[120];
        snprintf(arg, sizeof(arg), "--temp=%s", bad[i]);
        snprintf(expected, sizeof(expected), "--temp '%s': expected a number from 0 to 100",
                 bad[i]);
        refuses(f, arg, expected);
    }
    assert_true(options_real(f->o, "temp") == 0.7);
}

static void refuses_invalid_whole_numbers(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"nan", "1.0", "4097", "-2", "99999999999999999999", "1e3",
                                      "0x1", "1k",  "",     "-",  "-9223372036854775809"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char arg[60], expected[120];
        snprintf(arg, sizeof(arg), "--max-tokens=%s", bad[i]);
        snprintf(expected, sizeof(expected),
                 "--max-tokens '%s': expected a whole number from -1 to 4096", bad[i]);
        refuses(f, arg, expected);
    }
    assert_true(parse(f, "--seed 9223372036854775807"));
    assert_true(options_int(f->o, "seed") == INT64_MAX);
    refuses(f, "--seed 9223372036854775808",
            "--seed '9223372036854775808': expected a whole number from 0 to 9223372036854775807");
}

static void excluded_minimum_is_refused_and_named(void **state)
{
    struct fixture *f = *state;
    refuses(f, "--top-p 0", "--top-p '0': expected a number above 0, at most 1");
    refuses(f, "--top-p 1e-50", "--top-p '1e-50': expected a number above 0, at most 1");
    refuses(f, "--top-p 7", "--top-p '7': expected a number above 0, at most 1");
    assert_true(parse(f, "--top-p 1"));
}

static void one_bad_number_refuses_the_list(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"", "1,", ",1", "1,,2", "1,x", "1,-1", "1 2"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(options_set(f->o, "depths", bad[i], OPTION_FROM_COMMAND, &f->err));
    assert_string_equal(
        f->err.text, "depths '1 2': expected whole numbers from 0 to 100000, separated by commas");
    size_t n;
    assert_int_equal(options_ints(f->o, "depths", &n)[1], 2048);
}

static void an_error_names_both_ends_of_a_large_range(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {
        "9223372036854775808",  "99999999999999999999999", "-1", "x", "", "+",
        "9223372036854775808x", "-99999999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(options_set(f->o, "seed", bad[i], OPTION_FROM_COMMAND, &f->err));
        assert_non_null(
            strstr(f->err.text, "': expected a whole number from 0 to 9223372036854775807"));
    }
    assert_true(options_set(f->o, "seed", "9223372036854775807", OPTION_FROM_COMMAND, &f->err));
    assert_false(options_set(f->o, "ids", "1,3000000000", OPTION_FROM_COMMAND, &f->err));
    assert_string_equal(f->err.text,
                        "ids '1,3000000000': expected whole numbers from 0 to 2147483647, "
                        "separated by commas");
}

static void errors_name_option_value_and_choice(void **state)
{
    struct fixture *f = *state;
    refuses(f, "--isa sse", "--isa 'sse': expected ref, avx2 or amx");
    refuses(f, "--isa", "--isa needs a value: ref, avx2 or amx");
    refuses(f, "-n", "-n needs a value: a whole number from -1 to 4096");
    refuses(f, "-nx", "-n 'x': expected a whole number from -1 to 4096");
    refuses(f, "--quiet=1", "--quiet takes no value, got '1'");
    refuses(f, "--max-token 1", "unknown option --max-token (did you mean --max-tokens?)");
    refuses(f, "--bogus", "unknown option --bogus (--help lists them)");
    refuses(f, "-qz", "unknown option -z in '-qz' (--help lists them)");
    refuses(f, "--max-tokesn 1", "unknown option --max-tokesn (did you mean --max-tokens?)");
    refuses(f, "--no-wrpa", "unknown option --no-wrpa (did you mean --no-wrap?)");
    refuses(f, "--no-quiet", "unknown option --no-quiet (--help lists them)");
    refuses(f, "--no-queit", "unknown option --no-queit (--help lists them)");
    refuses(f, "--no-ink", "unknown option --no-ink (did you mean --ink never?)");
    refuses(f, "--no-inks", "unknown option --no-inks (did you mean --ink never?)");
    refuses(f, "--no-gleu", "unknown option --no-gleu (did you mean --no-glue?)");
    refuses(f, "--no-temp", "unknown option --no-temp (--help lists them)");
    refuses(f, "--colour red", "unknown option --colour (--help lists them)");
}

static void a_long_name_needs_two_dashes(void **state)
{
    struct fixture *f = *state;
    refuses(f, "-quiet", "unknown option -quiet (did you mean --quiet?)");
    assert_false(options_flag(f->o, "quiet")); /* no letter was read */
    refuses(f, "-depths 5", "unknown option -depths (did you mean --depths?)");
    refuses(f, "-depths=5", "unknown option -depths (did you mean --depths?)");
    refuses(f, "-max_tokens 5", "unknown option -max_tokens (did you mean --max_tokens?)");
    refuses(f, "-no-wrap", "unknown option -no-wrap (did you mean --no-wrap?)");
    refuses(f, "-temp 1", "unknown option -temp (did you mean --temp?)");
    refuses(f, "-temo 1", "unknown option -t in '-temo' (--help lists them)");
    refuses(f, "-colour red", "unknown option -c in '-colour' (--help lists them)"); /* only /set */
    assert_false(parse(f, "-d epths")); /* two words: a value */
    assert_non_null(strstr(f->err.text, "-d 'epths': expected whole numbers"));
    assert_true(parse(f, "--stop -quiet -- -quiet")); /* a value, and a word */
    assert_false(options_flag(f->o, "quiet"));
}

static void no_prefix_turns_a_default_flag_off(void **state)
{
    struct fixture *f = *state;
    char spelling[60];
    option_spelling(options_find(f->o, "wrap"), spelling, sizeof(spelling));
    assert_string_equal(spelling, "--no-wrap");
    assert_true(parse(f, "--no-wrap"));
    assert_false(options_flag(f->o, "wrap"));
    assert_true(parse(f, "--wrap"));
    assert_true(options_flag(f->o, "wrap"));
}

static void no_prefix_of_a_setting_is_its_opposite(void **state)
{
    struct fixture *f = *state;
    assert_true(options_set(f->o, "no-wrap", "on", OPTION_FROM_CONFIG, &f->err));
    assert_false(options_flag(f->o, "wrap"));
    assert_true(options_set(f->o, "no_wrap", "off", OPTION_FROM_SET, &f->err));
    assert_true(options_flag(f->o, "wrap"));
    assert_false(options_set(f->o, "no-wrap", "perhaps", OPTION_FROM_SET, &f->err));
    assert_string_equal(f->err.text, "no-wrap 'perhaps': expected on or off");
    assert_false(options_set(f->o, "no-temp", "on", OPTION_FROM_SET, &f->err));
    assert_false(options_set(f->o, "no-quiet", "on", OPTION_FROM_SET, &f->err));
    assert_ptr_equal(options_find(f->o, "no-wrap"), options_find(f->o, "wrap"));
    assert_null(options_find(f->o, "no-temp"));
}

static void a_near_name_has_the_spelling_of_its_place(void **state)
{
    struct fixture *f = *state;
    char near[OPTION_NEAR_BYTES];
    assert_true(options_near(f->o, bn_str_of("no-wrpa"), OPTION_IN_CONFIG, near));
    assert_string_equal(near, "no-wrap");
    assert_true(options_near(f->o, bn_str_of("tmep"), OPTION_BY_SET, near));
    assert_string_equal(near, "temp");
    assert_true(options_near(f->o, bn_str_of("no-ink"), OPTION_IN_CONFIG, near));
    assert_string_equal(near, "ink = never");
    assert_true(options_near(f->o, bn_str_of("no-ink"), OPTION_BY_SET, near));
    assert_string_equal(near, "ink never");
    assert_false(options_near(f->o, bn_str_of("quiet"), OPTION_IN_CONFIG, near));
}

static void a_near_name_may_lack_the_dash_of_no(void **state)
{
    struct fixture *f = *state;
    refuses(f, "--nowrap", "unknown option --nowrap (did you mean --no-wrap?)");
    refuses(f, "--no_wrpa", "unknown option --no_wrpa (did you mean --no-wrap?)");
    refuses(f, "--noink", "unknown option --noink (did you mean --ink never?)");
    refuses(f, "--noglue", "unknown option --noglue (did you mean --no-glue?)");
    refuses(f, "--wrpa", "unknown option --wrpa (did you mean --wrap?)");
    refuses(f, "--n", "unknown option --n (did you mean --no-glue?)"); /* a name begins so */
}

static void a_mistyped_name_of_other_programs_is_near(void **state)
{
    struct fixture *f = *state;
    refuses(f, "--temprature 1", "unknown option --temprature (did you mean --temp?)");
    refuses(f, "--num_predict 1", "unknown option --num_predict (did you mean --max-tokens?)");
    refuses(f, "--num-threads 1", "unknown option --num-threads (--help lists them)");
    assert_string_equal(option_translate_name("num_predict"), "max-tokens");
    assert_string_equal(option_translate_name("temprature"), "temprature");
}

static void a_tilde_that_begins_a_path_is_the_home_directory(void **state)
{
    struct fixture *f = *state;
    size_t n;
    struct bn_error err;
    assert_int_equal(setenv("HOME", "/home/anna", 1), 0);
    assert_true(parse(f, "--file=~/a --file ~b --file x/~/c --system=@~/s --stop ~/t"));
    const char *const *files = options_list(f->o, "file", &n);
    assert_int_equal(n, 3);
    assert_string_equal(files[0], "/home/anna/a");
    assert_string_equal(files[1], "~b");
    assert_string_equal(files[2], "x/~/c");
    assert_string_equal(options_text(f->o, "system"), "@/home/anna/s");
    assert_string_equal(options_text(f->o, "stop"), "~/t"); /* not a path */
    assert_true(options_set(f->o, "system", "~/s", OPTION_FROM_SET, &err));
    assert_string_equal(options_text(f->o, "system"), "~/s"); /* a message */
    assert_int_equal(unsetenv("HOME"), 0);
    assert_true(parse(f, "--file=~/d"));
    assert_string_equal(options_text(f->o, "file"), "~/d");
}

static void a_weaker_source_never_wins(void **state)
{
    struct fixture *f = *state;
    assert_true(parse(f, "--temp 0.5 --stop x"));
    assert_true(options_set(f->o, "temp", "0.9", OPTION_FROM_CONFIG, &f->err));
    assert_true(options_real(f->o, "temp") == 0.5);
    assert_true(options_set(f->o, "stop", "y", OPTION_FROM_CONFIG, &f->err));
    assert_string_equal(options_text(f->o, "stop"), "x");
    assert_true(options_set(f->o, "top_p", "0.5", OPTION_FROM_MODEL, &f->err));
    assert_true(options_set(f->o, "top-p", "0.6", OPTION_FROM_CONFIG, &f->err));
    assert_true(options_real(f->o, "top-p") == 0.6);
    assert_int_equal(options_source(f->o, "top-p"), OPTION_FROM_CONFIG);
    assert_true(options_set(f->o, "temp", "0.1", OPTION_FROM_SET, &f->err));
    assert_true(options_real(f->o, "temp") == 0.1);
    assert_true(options_reset(f->o, "temp", &f->err));
    assert_true(options_real(f->o, "temp") == 0.7);
    assert_false(options_given(f->o, "temp"));
}

static void a_bad_setting_changes_nothing(void **state)
{
    struct fixture *f = *state;
    assert_false(options_set(f->o, "temp", "hot", OPTION_FROM_SET, &f->err));
    assert_string_equal(f->err.text, "temp 'hot': expected a number from 0 to 100");
    assert_true(options_real(f->o, "temp") == 0.7);
    assert_false(options_set(f->o, "quiet", "on", OPTION_FROM_CONFIG, &f->err));
    assert_string_equal(f->err.text, "'quiet' cannot be set by the configuration");
    assert_false(options_set(f->o, "isa", "ref", OPTION_FROM_SET, &f->err));
    assert_string_equal(f->err.text, "'isa' cannot be set by /set");
    assert_false(options_set(f->o, "nothing", "1", OPTION_FROM_SET, &f->err));
    assert_false(options_set(f->o, "wrap", "maybe", OPTION_FROM_CONFIG, &f->err));
    assert_string_equal(f->err.text, "wrap 'maybe': expected on or off");
    assert_true(options_set(f->o, "wrap", "no", OPTION_FROM_CONFIG, &f->err));
    assert_false(options_flag(f->o, "wrap"));
}

static void a_copy_has_all_values_exactly(void **state)
{
    struct fixture *f = *state;
    struct options *copy;
    size_t n;
    assert_true(options_set(f->o, "top-p", "0.949999988", OPTION_FROM_MODEL, &f->err));
    assert_true(options_set(f->o, "temp", "0.123456789", OPTION_FROM_CONFIG, &f->err));
    assert_true(options_set(f->o, "top-p", "0.5", OPTION_FROM_COMMAND, &f->err));
    assert_true(options_set(f->o, "stop", "x", OPTION_FROM_COMMAND, &f->err));
    assert_true(options_set(f->o, "stop", "y", OPTION_FROM_COMMAND, &f->err));
    assert_true(options_copy(f->o, &copy, &f->err));
    assert_true(options_set(f->o, "stop", "z", OPTION_FROM_COMMAND, &f->err));
    assert_true(options_real(copy, "temp") == 0.123456789);
    assert_int_equal(options_source(copy, "temp"), OPTION_FROM_CONFIG);
    assert_string_equal(options_list(copy, "stop", &n)[1], "y");
    assert_int_equal(n, 2);
    assert_true(options_reset(copy, "top-p", &f->err)); /* to the value of the model */
    assert_true(options_real(copy, "top-p") == 0.949999988);
    options_close(copy);
}

static void values_are_formatted_as_accepted(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *name, *text;
    } shown[] = {{"wrap", "on"},  {"max-tokens", "-1"}, {"temp", "0.7"},
                 {"isa", "avx2"}, {"depths", "0,2048"}, {"stop", ""}};
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        char text[40];
        options_format(f->o, shown[i].name, text, sizeof(text));
        assert_string_equal(text, shown[i].text);
    }
    char texts[40], shown_texts[80];
    assert_true(parse(f, "--stop a, --stop b"));
    options_format(f->o, "stop", texts, sizeof(texts));
    assert_string_equal(texts, "\"a,\", \"b\"");
    assert_true(options_set(f->o, "stop", "\n\t\x1b\xc2\x9b\xff", OPTION_FROM_SET, &f->err));
    assert_true(options_set(f->o, "stop", "\\n \xc3\xb6", OPTION_FROM_SET, &f->err));
    options_format(f->o, "stop", shown_texts, sizeof(shown_texts));
    assert_string_equal(shown_texts, "\"a,\", \"b\", \"\\n\\t\\x1B\\xC2\\x9B\\xFF\", "
                                     "\"\\\\n \xc3\xb6\"");
    char cut[4];
    options_format(f->o, "depths", cut, sizeof(cut));
    assert_string_equal(cut, "0,2");
}

/* Write --help to `out`. */
static void print_help(struct fixture *f, enum option_help extent, const char *const *only,
                       char *out, size_t cap)
{
    FILE *mem = fmemopen(out, cap, "w");
    assert_non_null(mem);
    options_print_help(f->o, mem, extent, only);
    fclose(mem);
}

static void help_lists_groups_and_defaults(void **state)
{
    struct fixture *f = *state;
    static char text[4000];
    print_help(f, OPTION_HELP_SHORT, NULL, text, sizeof(text));
    assert_non_null(strstr(text, "\nTalk:\n  -q, --quiet  "));
    assert_non_null(strstr(text, "\n      --no-wrap  "));
    assert_non_null(strstr(text, "-n, --max-tokens N"));
    assert_non_null(strstr(text, "temperature [0.7]\n"));
    assert_null(strstr(text, "--depths"));
    assert_null(strstr(text, "--colour"));
    print_help(f, OPTION_HELP_ALL, NULL, text, sizeof(text));
    assert_non_null(strstr(text, "-d, --depths N"));
    static const char *const only[] = {"temp", NULL};
    print_help(f, OPTION_HELP_ALL, only, text, sizeof(text));
    assert_string_equal(text, "\nNumbers:\n      --temp N                temperature [0.7]\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(defaults_are_parsed_like_values),
        TEST(reads_every_form_of_a_value),
        TEST(value_in_next_word_may_begin_with_a_dash),
        TEST(words_and_options_mix_until_two_dashes),
        TEST(repeated_texts_are_kept_in_order),
        TEST(refuses_invalid_numbers),
        TEST(refuses_invalid_whole_numbers),
        TEST(excluded_minimum_is_refused_and_named),
        TEST(one_bad_number_refuses_the_list),
        TEST(errors_name_option_value_and_choice),
        TEST(an_error_names_both_ends_of_a_large_range),
        TEST(a_long_name_needs_two_dashes),
        TEST(no_prefix_turns_a_default_flag_off),
        TEST(no_prefix_of_a_setting_is_its_opposite),
        TEST(a_near_name_has_the_spelling_of_its_place),
        TEST(a_near_name_may_lack_the_dash_of_no),
        TEST(a_mistyped_name_of_other_programs_is_near),
        TEST(a_tilde_that_begins_a_path_is_the_home_directory),
        TEST(a_weaker_source_never_wins),
        TEST(a_bad_setting_changes_nothing),
        TEST(a_copy_has_all_values_exactly),
        TEST(values_are_formatted_as_accepted),
        TEST(help_lists_groups_and_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
