/*
 * SentencePiece: scores, the leading space, byte fallback, and equality with a simple
 * implementation.
 */
#include "tests/tokenizer/token_expect.h"

#include "engine/base/memory.h"

#define SP "\xE2\x96\x81" /* U+2581, which stands for a space in SentencePiece vocabularies */

/* The last number is the score: of two possible merges, the one with the higher score is made. */
static const struct made_token words[] = {
    {SP, TOKEN_NORMAL, -9},        {"h", TOKEN_NORMAL, -9},          {"e", TOKEN_NORMAL, -9},
    {"l", TOKEN_NORMAL, -9},       {"o", TOKEN_NORMAL, -9},          {"he", TOKEN_NORMAL, -3},
    {"ll", TOKEN_NORMAL, -2},      {"el", TOKEN_NORMAL, -1},         {"ell", TOKEN_NORMAL, -4},
    {SP "h", TOKEN_NORMAL, -2.5f}, {"lo", TOKEN_NORMAL, -2},         {SP SP, TOKEN_NORMAL, -1},
    {"<tool>", TOKEN_USER, 0},     {"<|eot_id|>", TOKEN_CONTROL, 0},
};

static struct made_vocab small(enum vocab_switch prefix)
{
    return (struct made_vocab){
        .model = "llama",
        .tokens = words,
        .n_tokens = sizeof(words) / sizeof(words[0]),
        .marks = {[MARK_BOS] = "<s>", [MARK_EOS] = "</s>", [MARK_UNK] = "<unk>"},
        .add_space_prefix = prefix,
    };
}

static void merges_by_score_leftmost_first(void **state)
{
    (void)state;
    const struct made_vocab made = small(SWITCH_OFF);
    struct tokenizer *t = expect_tokenizer(&made);
    expect_message(t, "hello", "h el lo");
    expect_message(t, "hll", "h ll");
    /* "ll" and "lo" have the same score: the left one is joined. */
    expect_message(t, "llo", "ll o");
    expect_message(t, "he", "he");
    tokenizer_close(t);
}

static void a_space_is_added_in_front(void **state)
{
    (void)state;
    const struct made_vocab made = small(SWITCH_UNSET);
    struct tokenizer *t = expect_tokenizer(&made);
    assert_true(tokenizer_info(t)->add_space_prefix);
    expect_message(t, "hh", "_h h");
    expect_message(t, " h", "__ h"); /* "two spaces" has a higher score than "space, letter" */
    expect_message(t, "h<tool>h", "_h <tool> _h");
    expect_message(t, "", "");
    tokenizer_close(t);
}

static void the_space_follows_special_tokens_only(void **state)
{
    (void)state;
    const struct made_vocab made = small(SWITCH_UNSET);
    struct tokenizer *t = expect_tokenizer(&made);
    struct bn_error err;
    const int32_t answer[] = {made_find(t, bn_str_of("o"))};
    const struct segment segments[] = {
        {.kind = SEGMENT_TEMPLATE, .text = bn_str_of("<s>h")},
        {.kind = SEGMENT_ANSWER, .text = bn_str_of("e")},
        {.kind = SEGMENT_TEMPLATE, .text = bn_str_of("<|eot_id|>")},
        {.kind = SEGMENT_ANSWER, .text = bn_str_of("e")},
        {.kind = SEGMENT_IDS, .ids = answer, .n_ids = 1},
        {.kind = SEGMENT_MESSAGE, .text = bn_str_of("l")},
    };
    struct token_list ids = {0};
    assert_true(tokenizer_encode(t, segments, 6, TOKENIZER_BOS_AUTO, &ids, &err));
    expect_ids(t, &ids, "<s> _h e <|eot_id|> _ e o l");
    tokenizer_close(t);
}

static void unknown_characters_become_bytes(void **state)
{
    enum { BYTE_0 = MADE_FIRST_LLAMA - 256 }; /* the token of byte 0 */
    (void)state;
    const struct made_vocab made = small(SWITCH_OFF);
    struct tokenizer *t = expect_tokenizer(&made);
    struct token_list ids = made_encode(t, SEGMENT_MESSAGE, bn_str_of("\xC3\xA4h\xFF"));
    assert_int_equal(ids.n, 4);
    assert_int_equal(ids.ids[0], BYTE_0 + 0xC3);
    assert_int_equal(ids.ids[1], BYTE_0 + 0xA4);
    assert_int_equal(ids.ids[3], BYTE_0 + 0xFF);
    token_list_finish(&ids);
    tokenizer_close(t);
}

static void text_survives_the_round_trip(void **state)
{
    (void)state;
    uint32_t seed = 3;
    for (int prefix = SWITCH_UNSET; prefix <= SWITCH_ON; prefix++) {
        const struct made_vocab made = small((enum vocab_switch)prefix);
        struct tokenizer *t = expect_tokenizer(&made);
        for (size_t round = 0; round < 200; round++) {
            char text[80];
            const size_t n = made_random(&seed, sizeof(text));
            for (size_t i = 0; i < n; i++)
                text[i] = "hello  \xC3\xA4\xFF"[made_random(&seed, 10)];
            struct token_list ids = made_encode(t, SEGMENT_MESSAGE, (struct bn_str){text, n});
            size_t n_back;
            char *back = made_decode(t, &ids, &n_back);
            assert_int_equal(n_back, n);
            assert_memory_equal(back, text, n);
            mem_free(back);
            token_list_finish(&ids);
        }
        tokenizer_close(t);
    }
}

/* The simple implementation: join the pair with the highest score, the leftmost such pair. A part
 * is the text of a token, at most 8 bytes. Returns the number of parts that are left of n. */
static size_t plain_encode(const struct made_token *tokens, size_t n_tokens, char parts[][9],
                           size_t n)
{
    for (;;) {
        const struct made_token *best = NULL;
        size_t best_at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            char joined[17];
            (void)snprintf(joined, sizeof(joined), "%.8s%.8s", parts[i], parts[i + 1]);
            for (size_t k = 0; k < n_tokens; k++) {
                if (strcmp(tokens[k].text, joined) == 0 &&
                    (!best || tokens[k].score > best->score)) {
                    best = &tokens[k];
                    best_at = i;
                }
            }
        }
        if (!best)
            return n;
        memcpy(parts[best_at], best->text, strlen(best->text) + 1);
        memmove(parts[best_at + 1], parts[best_at + 2], (n - best_at - 2) * sizeof(parts[0]));
        n--;
    }
}

/* Where tokens have spaces. If only in front, the tokenizer cuts a text at its spaces (spm.c). */
enum spaces { SPACES_IN_FRONT, SPACES_ANYWHERE };

/* Random token texts of 2 to 4 letters; "_" becomes U+2581 in the vocabulary. Single letters come
 * first; no merge makes one, so their score is never used. */
static size_t make_tokens(struct made_token tokens[64], char texts[64][9], enum spaces spaces,
                          uint32_t *seed)
{
    static const char *const letters[] = {"a", "b", "c", "_"};
    size_t n = 0;
    for (; n < 4; n++)
        tokens[n] = (struct made_token){letters[n], TOKEN_NORMAL, -100};
    while (n < 40) {
        const size_t n_letters = 2 + made_random(seed, 3);
        bool known = false;
        for (size_t i = 0; i < n_letters; i++) {
            const bool inside = i > 0 && texts[n][i - 1] != '_';
            texts[n][i] = "abc_"[made_random(seed, inside && spaces == SPACES_IN_FRONT ? 3 : 4)];
        }
        texts[n][n_letters] = '\0';
        for (size_t k = 0; k < n; k++)
            known = known || strcmp(tokens[k].text, texts[n]) == 0;
        if (known)
            continue;
        tokens[n] = (struct made_token){texts[n], TOKEN_NORMAL, -(float)made_random(seed, 20)};
        n++;
    }
    return n;
}

static void equals_the_definition_on_random_vocabularies(void **state)
{
    (void)state;
    uint32_t seed = 5;
    for (size_t round = 0; round < 60; round++) {
        struct made_token tokens[64], marked[64];
        char texts[64][9], in_file[64][16];
        const size_t n_tokens =
            make_tokens(tokens, texts, round % 2 ? SPACES_ANYWHERE : SPACES_IN_FRONT, &seed);
        for (size_t i = 0; i < n_tokens; i++) {
            in_file[i][0] = '\0';
            for (const char *c = tokens[i].text; *c; c++)
                (void)strcat(in_file[i], *c == '_' ? SP : (const char[]){*c, '\0'});
            marked[i] = (struct made_token){in_file[i], TOKEN_NORMAL, tokens[i].score};
        }
        const struct made_vocab made = {.model = "llama",
                                        .tokens = marked,
                                        .n_tokens = n_tokens,
                                        .add_space_prefix = SWITCH_OFF};
        struct tokenizer *t = expect_tokenizer(&made);
        for (size_t k = 0; k < 20; k++) {
            char text[41], parts[41][9], expected[128] = "";
            const size_t n = 1 + made_random(&seed, 40);
            for (size_t i = 0; i < n; i++) {
                parts[i][0] = "abc_"[made_random(&seed, 4)];
                parts[i][1] = '\0';
                text[i] = parts[i][0] == '_' ? ' ' : parts[i][0];
            }
            text[n] = '\0';
            const size_t n_parts = plain_encode(tokens, n_tokens, parts, n);
            for (size_t i = 0, at = 0; i < n_parts; i++)
                at += (size_t)snprintf(expected + at, sizeof(expected) - at, "%s%s", i ? " " : "",
                                       parts[i]);
            expect_message(t, text, expected);
        }
        tokenizer_close(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_by_score_leftmost_first),
        cmocka_unit_test(a_space_is_added_in_front),
        cmocka_unit_test(the_space_follows_special_tokens_only),
        cmocka_unit_test(unknown_characters_become_bytes),
        cmocka_unit_test(text_survives_the_round_trip),
        cmocka_unit_test(equals_the_definition_on_random_vocabularies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
