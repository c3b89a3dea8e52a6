/*
 * Unicode NFC: the function itself, and the families that apply it before they split text.
 */
#include "tokenizer/bpe/nfc.h"

#include "engine/base/memory.h"
#include "tests/tokenizer/token_expect.h"

#define E_ACUTE "\xC3\xA9"   /* U+00E9 */
#define ACUTE "\xCC\x81"     /* U+0301 */
#define DOT_BELOW "\xCC\xA3" /* U+0323 */

static void becomes(const char *text, const char *expected)
{
    const size_t n = strlen(text);
    struct bn_error err;
    size_t n_out;
    char *out = mem_alloc(n + 1, NFC_GROWTH); /* the exact need, for the sanitizers */
    assert_true(nfc_write((struct bn_str){text, n}, out, &n_out, &err));
    assert_int_equal(n_out, strlen(expected));
    assert_memory_equal(out, expected, n_out);
    mem_free(out);
}

static void characters_are_composed(void **state)
{
    (void)state;
    becomes("", "");
    becomes("caf" E_ACUTE, "caf" E_ACUTE);
    becomes("cafe" ACUTE "s", "caf" E_ACUTE "s");
    becomes(ACUTE "e", ACUTE "e"); /* a mark without a letter before it */
    /* Hangul: U+1112 U+1161 U+11AB become U+D55C, and U+1100 U+1161 become U+AC00. */
    becomes("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB\xE1\x84\x80\xE1\x85\xA1",
            "\xED\x95\x9C\xEA\xB0\x80");
    /* The angstrom sign U+212B becomes U+00C5, the kelvin sign U+212A a letter K. */
    becomes("\xE2\x84\xAB\xE2\x84\xAA", "\xC3\x85K");
    /* Marks are put in canonical order, then composed: e, U+0301, U+0323 become U+1EB9 U+0301. */
    becomes("e" ACUTE DOT_BELOW, "\xE1\xBA\xB9" ACUTE);
}

/* U+0958 is excluded from composition; U+1D160 has the largest growth, from 4 to 12 bytes. */
static void characters_that_stay_apart_are_decomposed(void **state)
{
    (void)state;
    becomes("\xE0\xA5\x98", "\xE0\xA4\x95\xE0\xA4\xBC");
    becomes("\xF0\x9D\x85\xA0\xF0\x9D\x85\xA0", "\xF0\x9D\x85\x98\xF0\x9D\x85\xA5\xF0\x9D\x85\xAE"
                                                "\xF0\x9D\x85\x98\xF0\x9D\x85\xA5\xF0\x9D\x85\xAE");
}

static void ill_formed_bytes_are_copied_and_separate(void **state)
{
    (void)state;
    becomes("e\xFF" ACUTE, "e\xFF" ACUTE);
    becomes("\xCC", "\xCC");
    becomes("e" ACUTE "\xED\xA0\x80"
            "e" ACUTE "\xE2\x82",
            E_ACUTE "\xED\xA0\x80" E_ACUTE "\xE2\x82");
}

static void long_runs_of_marks_are_sorted(void **state)
{
    (void)state;
    enum { N = 20000 };
    char *text = mem_alloc(2 * N + 1, 1), *out = mem_alloc(2 * N + 1, NFC_GROWTH);
    struct bn_error err;
    size_t n_out;
    text[0] = 'q'; /* composes with none of them */
    for (size_t i = 0; i < N; i++)
        memcpy(text + 1 + 2 * i, i % 2 ? ACUTE : DOT_BELOW, 2);
    assert_true(nfc_write((struct bn_str){text, 2 * N + 1}, out, &n_out, &err));
    assert_int_equal(n_out, 2 * N + 1);
    assert_memory_equal(out + 1, DOT_BELOW, 2);
    assert_memory_equal(out + n_out - 2, ACUTE, 2);
    mem_free(text);
    mem_free(out);
}

static void text_below_the_first_mark_is_plain(void **state)
{
    (void)state;
    assert_true(nfc_is_plain(bn_str_of("")));
    assert_true(nfc_is_plain(bn_str_of("Stra\xC3\x9F"
                                       "e caf" E_ACUTE " \xCB\xBF"))); /* U+02FF */
    assert_false(nfc_is_plain(bn_str_of("e" ACUTE)));
    assert_false(nfc_is_plain(bn_str_of("\xE1\x84\x92")));
}

/* A token for U+00E9, whose bytes are written as U+00C3 U+00A9, and one with a decomposed name. */
static const struct made_token words[] = {
    {"<|endoftext|>", TOKEN_CONTROL, 0},
    {"<|im_end|>", TOKEN_CONTROL, 0},
    {"<e\xCC\x81>", TOKEN_USER, 0},
    {"\xC3\x83\xC2\xA9", TOKEN_NORMAL, 0},
};
static const char *const merges[] = {"\xC3\x83 \xC2\xA9"};

static struct tokenizer *open_family(const char *pre, enum vocab_switch add_bos)
{
    const struct made_vocab made = {
        .model = "gpt2",
        .pre = pre,
        .tokens = words,
        .n_tokens = sizeof(words) / sizeof(words[0]),
        .merges = merges,
        .n_merges = 1,
        .marks = {[MARK_BOS] = "<|endoftext|>", [MARK_EOS] = "<|im_end|>"},
        .add_bos = add_bos,
    };
    return expect_tokenizer(&made);
}

static void only_the_qwen_families_normalise(void **state)
{
    (void)state;
    static const char *const pres[] = {"qwen2", "qwen35", "llama-bpe", "gpt-2", "default"};
    for (size_t i = 0; i < 5; i++) {
        struct tokenizer *t = open_family(pres[i], SWITCH_UNSET);
        expect_message(t, "xe" ACUTE, i < 2 ? "x " E_ACUTE : "x e \xCC \x81");
        expect_message(t, "x" E_ACUTE, "x " E_ACUTE);
        tokenizer_close(t);
    }
}

static void special_tokens_are_found_before_normalisation(void **state)
{
    (void)state;
    struct tokenizer *t = open_family("qwen2", SWITCH_UNSET);
    expect_message(t, "e" ACUTE "<e" ACUTE ">" ACUTE "e" ACUTE,
                   E_ACUTE " <e" ACUTE "> \xCC \x81 " E_ACUTE);
    expect_message(t, "<" E_ACUTE ">", "< " E_ACUTE " >"); /* composed: another text */
    tokenizer_close(t);
}

static void encoded(const struct tokenizer *t, const struct segment *segments, size_t n,
                    enum tokenizer_bos bos, const char *expected)
{
    struct bn_error err;
    struct token_list ids = {0};
    assert_true(tokenizer_encode(t, segments, n, bos, &ids, &err));
    expect_ids(t, &ids, expected);
}

/* Text of the template and of messages is one text; answers are separate. */
static void characters_compose_across_joined_segments_only(void **state)
{
    (void)state;
    struct tokenizer *t = open_family("qwen2", SWITCH_UNSET);
    const struct segment joined[] = {
        {.kind = SEGMENT_TEMPLATE, .text = bn_str_of("<|im_end|>e")},
        {.kind = SEGMENT_MESSAGE, .text = bn_str_of(ACUTE "e")},
        {.kind = SEGMENT_MESSAGE, .text = bn_str_of(ACUTE)},
        {.kind = SEGMENT_TEMPLATE, .text = bn_str_of("<|im_end|>" ACUTE)}};
    encoded(t, joined, 4, TOKENIZER_BOS_NEVER,
            "<|im_end|> " E_ACUTE " " E_ACUTE " <|im_end|> \xCC \x81");
    const struct segment separate[] = {{.kind = SEGMENT_MESSAGE, .text = bn_str_of("e")},
                                       {.kind = SEGMENT_ANSWER, .text = bn_str_of(ACUTE "e" ACUTE)},
                                       {.kind = SEGMENT_MESSAGE, .text = bn_str_of(ACUTE)}};
    encoded(t, separate, 3, TOKENIZER_BOS_NEVER, "e \xCC \x81 " E_ACUTE " \xCC \x81");
    tokenizer_close(t);
}

static void ill_formed_bytes_become_byte_tokens(void **state)
{
    (void)state;
    struct tokenizer *t = open_family("qwen2", SWITCH_UNSET);
    expect_message(t, "e\xFF" ACUTE "e" ACUTE "\xCC", "e \xFF \xCC \x81 " E_ACUTE " \xCC");
    tokenizer_close(t);
}

/* Families without a BOS of their own: the key is absent or false. */
static void a_prompt_gets_no_bos_unless_the_family_adds_one(void **state)
{
    (void)state;
    static const enum vocab_switch none[] = {SWITCH_UNSET, SWITCH_OFF};
    const struct segment hi = {.kind = SEGMENT_MESSAGE, .text = bn_str_of("hi")};
    for (size_t i = 0; i < 2; i++) {
        struct tokenizer *t = open_family("qwen2", none[i]);
        assert_false(tokenizer_info(t)->add_bos);
        encoded(t, &hi, 1, TOKENIZER_BOS_AUTO, "h i");
        tokenizer_close(t);
    }
    struct tokenizer *t = open_family("qwen2", SWITCH_ON);
    encoded(t, &hi, 1, TOKENIZER_BOS_AUTO, "<|endoftext|> h i");
    tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_composed),
        cmocka_unit_test(characters_that_stay_apart_are_decomposed),
        cmocka_unit_test(ill_formed_bytes_are_copied_and_separate),
        cmocka_unit_test(long_runs_of_marks_are_sorted),
        cmocka_unit_test(text_below_the_first_mark_is_plain),
        cmocka_unit_test(only_the_qwen_families_normalise),
        cmocka_unit_test(special_tokens_are_found_before_normalisation),
        cmocka_unit_test(characters_compose_across_joined_segments_only),
        cmocka_unit_test(ill_formed_bytes_become_byte_tokens),
        cmocka_unit_test(a_prompt_gets_no_bos_unless_the_family_adds_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
