/*
 * The streaming detokeniser: whole characters only, stop strings across tokens, control tokens.
 */
#include "tests/tokenizer/token_expect.h"

#include "engine/base/memory.h"
#include "engine/base/utf8.h"

static const struct made_token words[] = {
    {"hello", TOKEN_NORMAL, 0},
    {"\xC4\xA0wor", TOKEN_NORMAL, 0},
    {"END", TOKEN_NORMAL, 0},
    {"<tool>", TOKEN_USER, 0},
    {"<|sys|>", TOKEN_CONTROL, 0},
    {"\xC3\xB0\xC5\x81\xC4\xBA", TOKEN_NORMAL, 0}, /* the bytes F0 9F 98 */
};
enum { HELLO = MADE_FIRST_GPT2, WOR, END, TOOL, SYS, THREE_BYTES };

static struct tokenizer *open_words(void)
{
    const struct made_vocab made = {.model = "gpt2",
                                    .pre = "gpt-2",
                                    .tokens = words,
                                    .n_tokens = sizeof(words) / sizeof(words[0])};
    return expect_tokenizer(&made);
}

struct run {
    struct tokenizer *t;
    struct detok *d;
    bool stopped;
};

static struct run start(const char *const *stops, size_t n_stops, enum tokenizer_special special)
{
    struct run run = {.t = open_words()};
    struct bn_error err;
    const struct detok_config cfg = {.stops = stops, .n_stops = n_stops, .special = special};
    assert_true(detok_open(run.t, &cfg, &run.d, &err));
    return run;
}

static void finish(struct run *run, const char *expected)
{
    const struct bn_str rest = detok_flush(run->d);
    assert_int_equal(rest.n_bytes, strlen(expected));
    assert_memory_equal(rest.ptr, expected, rest.n_bytes);
    assert_int_equal(detok_flush(run->d).n_bytes, 0);
    detok_close(run->d);
    tokenizer_close(run->t);
}

static void push(struct run *run, int32_t id, const char *expected)
{
    struct bn_error err;
    struct bn_str text;
    assert_true(detok_push(run->d, id, &text, &run->stopped, &err));
    assert_int_equal(text.n_bytes, strlen(expected));
    assert_memory_equal(text.ptr, expected, text.n_bytes);
}

static void characters_stay_whole(void **state)
{
    (void)state;
    struct run run = start(NULL, 0, TOKENIZER_SPECIAL_HIDE);
    push(&run, HELLO, "hello");
    push(&run, THREE_BYTES, "");
    push(&run, 0x80, "\xF0\x9F\x98\x80");
    push(&run, 0xC3, "");
    push(&run, 'x', "\xC3x"); /* C3 begins no character here and is returned unchanged */
    push(&run, 0xFF, "\xFF");
    push(&run, 0xE2, "");
    finish(&run, "\xE2");
}

static void control_tokens_are_shown_on_request(void **state)
{
    (void)state;
    struct run run = start(NULL, 0, TOKENIZER_SPECIAL_HIDE);
    push(&run, SYS, "");
    push(&run, TOOL, "<tool>");
    push(&run, -1, "");
    push(&run, 1 << 30, "");
    push(&run, WOR, " wor");
    finish(&run, "");
    run = start(NULL, 0, TOKENIZER_SPECIAL_SHOW);
    push(&run, SYS, "<|sys|>");
    finish(&run, "");
}

static void stop_strings_end_the_text_before_them(void **state)
{
    (void)state;
    const char *const stops[] = {"END!", "ll\n"};
    struct run run = start(stops, 2, TOKENIZER_SPECIAL_HIDE);
    push(&run, HELLO, "hello");
    push(&run, END, "");
    push(&run, '.', "END.");
    push(&run, END, "");
    push(&run, END, "END");
    assert_false(run.stopped);
    push(&run, '!', "");
    assert_true(run.stopped);
    push(&run, HELLO, "");
    assert_true(run.stopped);
    finish(&run, "");
}

static void flush_returns_the_held_text(void **state)
{
    (void)state;
    const char *const stops[] = {"lolo"};
    struct run run = start(stops, 1, TOKENIZER_SPECIAL_HIDE);
    push(&run, HELLO, "hel");
    push(&run, 'l', "");
    finish(&run, "lol");
}

static void a_stop_inside_a_token_cuts_it(void **state)
{
    (void)state;
    const char *const stops[] = {"el", "hel"};
    struct run run = start(stops, 2, TOKENIZER_SPECIAL_HIDE);
    push(&run, 'x', "x");
    push(&run, HELLO, ""); /* two stop strings end together: the longer one counts */
    assert_true(run.stopped);
    finish(&run, "");
}

static void an_empty_stop_string_is_refused(void **state)
{
    (void)state;
    const char *const stops[] = {"a", ""};
    const struct detok_config cfg = {.stops = stops, .n_stops = 2};
    struct tokenizer *t = open_words();
    struct detok *d = NULL;
    struct bn_error err;
    assert_false(detok_open(t, &cfg, &d, &err));
    assert_int_equal(err.code, BN_EARG);
    assert_null(d);
    tokenizer_close(t);
}

static bool inside_character(const char *text, size_t n, size_t at)
{
    for (size_t back = 1; back <= 3 && back <= at; back++) {
        if (utf8_decode(text + at - back, n - (at - back), NULL) > back)
            return true;
    }
    return false;
}

static const char *const random_stops[] = {"abab", "bba", "END\xC3\xA4"};

/* Detokenise the text until a stop string. Each byte is a token, or END if end_is_one_token.
 * Returns the number of bytes in `out`. */
static size_t stream(const struct tokenizer *t, const char *text, size_t n, bool end_is_one_token,
                     char *out)
{
    const struct detok_config cfg = {.stops = random_stops, .n_stops = 3};
    struct detok *d;
    struct bn_error err;
    struct bn_str part;
    bool stopped = false;
    size_t n_out = 0;
    assert_true(detok_open(t, &cfg, &d, &err));
    for (size_t at = 0; at < n && !stopped;) {
        const bool is_end = end_is_one_token && n - at >= 3 && memcmp(text + at, "END", 3) == 0;
        const int32_t id = is_end ? (int32_t)END : (int32_t)(uint8_t)text[at];
        at += is_end ? 3 : 1;
        assert_true(detok_push(d, id, &part, &stopped, &err));
        memcpy(out + n_out, part.ptr, part.n_bytes);
        n_out += part.n_bytes;
        assert_true(stopped || !inside_character(text, n, n_out));
    }
    part = detok_flush(d);
    memcpy(out + n_out, part.ptr, part.n_bytes);
    detok_close(d);
    return n_out + part.n_bytes;
}

/* The simple implementation: the offset of the stop string that ends first, or n. No stop string is
 * the end of another one. */
static size_t offset_of_stop(const char *text, size_t n)
{
    for (size_t end = 1; end <= n; end++) {
        for (size_t k = 0; k < 3; k++) {
            const size_t n_stop = strlen(random_stops[k]);
            if (end >= n_stop && memcmp(text + end - n_stop, random_stops[k], n_stop) == 0)
                return end - n_stop;
        }
    }
    return n;
}

static void the_text_does_not_depend_on_the_tokens(void **state)
{
    (void)state;
    struct tokenizer *t = open_words();
    uint32_t seed = 11;
    for (size_t round = 0; round < 2000; round++) {
        char text[64], bytes[64], tokens[64];
        size_t n = 0;
        while (n < 50) {
            static const char *const pieces[] = {"a",   "b", "END", "\xC3\xA4", "\xF0\x9F\x98\x80",
                                                 "\xE2"};
            const char *piece = pieces[made_random(&seed, 6)];
            memcpy(text + n, piece, strlen(piece));
            n += strlen(piece);
        }
        const size_t n_expected = offset_of_stop(text, n);
        assert_int_equal(stream(t, text, n, false, bytes), n_expected);
        assert_int_equal(stream(t, text, n, true, tokens), n_expected);
        assert_memory_equal(bytes, text, n_expected);
        assert_memory_equal(tokens, text, n_expected);
    }
    tokenizer_close(t);
}

static void the_added_first_space_is_removed(void **state)
{
    (void)state;
    const struct made_token tokens[] = {{"\xE2\x96\x81hi", TOKEN_NORMAL, 0}};
    const struct made_vocab made = {.model = "llama", .tokens = tokens, .n_tokens = 1};
    struct bn_error err;
    struct tokenizer *t = expect_tokenizer(&made);
    const int32_t hi = MADE_FIRST_LLAMA;
    for (int at_start = 0; at_start <= 1; at_start++) {
        const struct detok_config cfg = {.at_start = at_start == 1};
        struct detok *d;
        struct bn_str text;
        bool stopped;
        assert_true(detok_open(t, &cfg, &d, &err));
        assert_true(detok_push(d, 1, &text, &stopped, &err)); /* <s>: no text */
        assert_int_equal(text.n_bytes, 0);
        assert_true(detok_push(d, hi, &text, &stopped, &err));
        assert_true(bn_str_is(text, at_start ? "hi" : " hi"));
        assert_true(detok_push(d, hi, &text, &stopped, &err));
        assert_true(bn_str_is(text, " hi"));
        detok_close(d);
    }
    tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_stay_whole),
        cmocka_unit_test(control_tokens_are_shown_on_request),
        cmocka_unit_test(stop_strings_end_the_text_before_them),
        cmocka_unit_test(flush_returns_the_held_text),
        cmocka_unit_test(a_stop_inside_a_token_cuts_it),
        cmocka_unit_test(an_empty_stop_string_is_refused),
        cmocka_unit_test(the_text_does_not_depend_on_the_tokens),
        cmocka_unit_test(the_added_first_space_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
