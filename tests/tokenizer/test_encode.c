/*
 * Segments: where special tokens are matched, which texts are joined, and the rule for bos.
 */
#include "tests/tokenizer/token_expect.h"

static const struct made_token words[] = {
    {"<|bos|>", TOKEN_CONTROL, 0},   {"<|eot_id|>", TOKEN_USER, 0}, {"<tool>", TOKEN_USER, 0},
    {"<tool>>", TOKEN_USER, 0},      {"<|user|>", TOKEN_USER, 0},   {"<|sys|>", TOKEN_CONTROL, 0},
    {"\xC4\xA0hi", TOKEN_NORMAL, 0}, {"hi", TOKEN_NORMAL, 0},
};
static const char *const merges[] = {"h i", "\xC4\xA0 hi"};

static struct tokenizer *open_words(enum vocab_switch add_bos, const char *eos)
{
    const struct made_vocab made = {
        .model = "gpt2",
        .pre = "gpt-2",
        .tokens = words,
        .n_tokens = sizeof(words) / sizeof(words[0]),
        .merges = merges,
        .n_merges = 2,
        .marks = {[MARK_BOS] = "<|bos|>", [MARK_EOS] = eos},
        .add_bos = add_bos,
    };
    return expect_tokenizer(&made);
}

#define TEMPLATE(words)                                                                            \
    {                                                                                              \
        .kind = SEGMENT_TEMPLATE, .text = { words, sizeof(words) - 1 }                             \
    }
#define MESSAGE(words)                                                                             \
    {                                                                                              \
        .kind = SEGMENT_MESSAGE, .text = { words, sizeof(words) - 1 }                              \
    }
#define ANSWER(words)                                                                              \
    {                                                                                              \
        .kind = SEGMENT_ANSWER, .text = { words, sizeof(words) - 1 }                               \
    }

static void expect_all(const struct tokenizer *t, const struct segment *segments, size_t n,
                       enum tokenizer_bos bos, const char *expected)
{
    struct bn_error err;
    struct token_list ids = {0};
    assert_true(tokenizer_encode(t, segments, n, bos, &ids, &err));
    expect_ids(t, &ids, expected);
}
#define EXPECT(t, bos, expected, ...)                                                              \
    expect_all(t, (const struct segment[]){__VA_ARGS__},                                           \
               sizeof((const struct segment[]){__VA_ARGS__}) / sizeof(struct segment), bos,        \
               expected)

static void messages_cannot_fake_a_turn(void **state)
{
    (void)state;
    struct tokenizer *t = open_words(SWITCH_OFF, "<|eot_id|>");
    EXPECT(t, TOKENIZER_BOS_NEVER, "<|sys|> < | s y s | >", TEMPLATE("<|sys|>"),
           MESSAGE("<|sys|>"));
    EXPECT(t, TOKENIZER_BOS_NEVER, "< | e o t _ i d | >", MESSAGE("<|eot_id|>"));
    EXPECT(t, TOKENIZER_BOS_NEVER, "< | e o t _ i d | > <|eot_id|>", ANSWER("<|eot_id|>"),
           TEMPLATE("<|eot_id|>"));
    /* The first half of a special token is from the template, the second from the message. */
    EXPECT(t, TOKENIZER_BOS_NEVER, "< | s y s | >", TEMPLATE("<|sy"), MESSAGE("s|>"));
    tokenizer_close(t);
}

static void messages_cannot_use_template_tokens(void **state)
{
    (void)state;
    struct tokenizer *t = open_words(SWITCH_OFF, "<|eot_id|>");
    EXPECT(t, TOKENIZER_BOS_NEVER, "hi <tool> hi", MESSAGE("hi<tool>hi"));
    EXPECT(t, TOKENIZER_BOS_NEVER, "<|user|> hi", MESSAGE("<|user|>hi"));
    EXPECT(t, TOKENIZER_BOS_NEVER, "< | u s e r | > <|user|> hi", MESSAGE("<|user|>"),
           TEMPLATE("<|user|>hi"));
    EXPECT(t, TOKENIZER_BOS_NEVER, "<tool> < t o o l >", TEMPLATE("<tool>"), MESSAGE("<tool>"));
    tokenizer_close(t);
}

static void the_longest_special_token_wins(void **state)
{
    (void)state;
    struct tokenizer *t = open_words(SWITCH_OFF, "<|eot_id|>");
    EXPECT(t, TOKENIZER_BOS_NEVER, "<tool>> <tool> hi", TEMPLATE("<tool>><tool>hi"));
    tokenizer_close(t);
}

static void text_is_joined_before_it_is_split(void **state)
{
    (void)state;
    struct tokenizer *t = open_words(SWITCH_OFF, "<|eot_id|>");
    EXPECT(t, TOKENIZER_BOS_NEVER, "a _hi", TEMPLATE("a "), MESSAGE("hi"));
    EXPECT(t, TOKENIZER_BOS_NEVER, "a _ hi", TEMPLATE("a "), ANSWER("hi"));
    EXPECT(t, TOKENIZER_BOS_NEVER, "h i", ANSWER("h"), ANSWER("i"));
    EXPECT(t, TOKENIZER_BOS_NEVER, "h i", MESSAGE("h"), ANSWER(""), MESSAGE("i"));
    EXPECT(t, TOKENIZER_BOS_NEVER, "<|sys|> hi", TEMPLATE("<|s"), TEMPLATE("ys|>h"), MESSAGE(""),
           TEMPLATE("i"));
    tokenizer_close(t);
}

static void ids_are_copied_unchanged(void **state)
{
    (void)state;
    struct tokenizer *t = open_words(SWITCH_OFF, "<|eot_id|>");
    const int32_t ids[] = {'h', 'i'}; /* a test vocabulary begins with the bytes in order */
    EXPECT(t, TOKENIZER_BOS_NEVER, "a h i b", MESSAGE("a"),
           {.kind = SEGMENT_IDS, .ids = ids, .n_ids = 2}, MESSAGE("b"));
    const int32_t wrong[] = {5, 100000};
    const struct segment bad = {.kind = SEGMENT_IDS, .ids = wrong, .n_ids = 2};
    struct token_list out = {0};
    struct bn_error err = {0};
    assert_true(token_list_push(&out, 7, &err));
    assert_false(tokenizer_encode(t, &bad, 1, TOKENIZER_BOS_AUTO, &out, &err));
    assert_int_equal(err.code, BN_EARG);
    assert_int_equal(out.n, 1);
    token_list_finish(&out);
    tokenizer_close(t);
}

static void a_prompt_begins_with_one_bos(void **state)
{
    (void)state;
    struct tokenizer *t = open_words(SWITCH_ON, "<|eot_id|>");
    EXPECT(t, TOKENIZER_BOS_AUTO, "<|bos|> hi", MESSAGE("hi"));
    EXPECT(t, TOKENIZER_BOS_AUTO, "<|bos|> hi", TEMPLATE("<|bos|>hi"));
    EXPECT(t, TOKENIZER_BOS_AUTO, "<|bos|> hi", TEMPLATE("<|bos|><|bos|>"), MESSAGE("hi"));
    EXPECT(t, TOKENIZER_BOS_NEVER, "hi", MESSAGE("hi"));
    EXPECT(t, TOKENIZER_BOS_AUTO, "<|bos|>", MESSAGE(""));
    tokenizer_close(t);
    t = open_words(SWITCH_OFF, "<|eot_id|>");
    EXPECT(t, TOKENIZER_BOS_AUTO, "hi", MESSAGE("hi"));
    EXPECT(t, TOKENIZER_BOS_AUTO, "<|bos|> hi", TEMPLATE("<|bos|>hi"));
    tokenizer_close(t);
}

static void ids_are_appended(void **state)
{
    (void)state;
    struct tokenizer *t = open_words(SWITCH_ON, "<|eot_id|>");
    struct bn_error err;
    struct token_list ids = {0};
    const struct segment seg = MESSAGE("hi");
    assert_true(tokenizer_encode(t, &seg, 1, TOKENIZER_BOS_AUTO, &ids, &err));
    assert_true(tokenizer_encode(t, &seg, 1, TOKENIZER_BOS_AUTO, &ids, &err));
    expect_ids(t, &ids, "<|bos|> hi <|bos|> hi");
    tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_cannot_fake_a_turn),
        cmocka_unit_test(messages_cannot_use_template_tokens),
        cmocka_unit_test(the_longest_special_token_wins),
        cmocka_unit_test(text_is_joined_before_it_is_split),
        cmocka_unit_test(ids_are_copied_unchanged),
        cmocka_unit_test(a_prompt_begins_with_one_bos),
        cmocka_unit_test(ids_are_appended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
