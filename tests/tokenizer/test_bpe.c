/*
 * Byte-level BPE: merge order, whole pieces, unusual vocabularies, and equality with a simple
 * implementation.
 */
#include "tests/tokenizer/token_expect.h"

#include "engine/base/memory.h"

#include <time.h>

static const struct made_token words[] = {
    {"he", TOKEN_NORMAL, 0},    {"ll", TOKEN_NORMAL, 0}, {"lo", TOKEN_NORMAL, 0},
    {"hell", TOKEN_NORMAL, 0},  {"el", TOKEN_NORMAL, 0}, {"\xC4\xA0he", TOKEN_NORMAL, 0},
    {"hello", TOKEN_NORMAL, 0}, {"aa", TOKEN_NORMAL, 0}, {"aaaa", TOKEN_NORMAL, 0},
};
static const char *const merges[] = {"l l",         "h e", "l o",   "he ll", "e l", "l o",
                                     "\xC4\xA0 he", "a a", "aa aa", "q qq",  "z z", "zz y"};

static struct made_vocab hello(const char *pre)
{
    return (struct made_vocab){
        .model = "gpt2",
        .pre = pre,
        .tokens = words,
        .n_tokens = sizeof(words) / sizeof(words[0]),
        .merges = merges,
        .n_merges = sizeof(merges) / sizeof(merges[0]),
    };
}

static void merges_by_rank_leftmost_first(void **state)
{
    (void)state;
    const struct made_vocab made = hello("gpt-2");
    struct tokenizer *t = expect_tokenizer(&made);
    expect_message(t, "hello", "hell o");
    expect_message(t, "helo", "he lo");
    expect_message(t, " hello", "_ hell o"); /* "he ll" comes before " he" */
    expect_message(t, " he", "_he");
    expect_message(t, "lllo", "ll lo");
    expect_message(t, "aaaaa", "aaaa a");
    expect_message(t, "aaaaaaa", "aaaa aa a");
    tokenizer_close(t);
}

static void whole_pieces_need_no_merges(void **state)
{
    (void)state;
    const struct made_vocab made = hello("llama-bpe");
    struct tokenizer *t = expect_tokenizer(&made);
    expect_message(t, "hello", "hello");
    expect_message(t, " hello", "_ hell o");
    tokenizer_close(t);
}

static void the_result_of_a_merge_without_a_token_is_split(void **state)
{
    (void)state;
    const struct made_token token = {"zzy", TOKEN_NORMAL, 0};
    struct made_vocab made = hello("gpt-2");
    made.tokens = &token;
    made.n_tokens = 1;
    struct tokenizer *t = expect_tokenizer(&made);
    expect_message(t, "zz", "z z");
    expect_message(t, "zzy", "zzy");
    tokenizer_close(t);
}

static void special_tokens_are_never_merged(void **state)
{
    (void)state;
    const struct made_token marks[] = {{"he", TOKEN_CONTROL, 0}, {"ll", TOKEN_USER, 0}};
    struct made_vocab made = hello("llama-bpe");
    made.tokens = marks;
    made.n_tokens = 2;
    struct tokenizer *t = expect_tokenizer(&made);
    expect_message(t, "he", "h e");
    expect_message(t, "hell", "h e ll"); /* user-defined tokens are matched, not merged */
    tokenizer_close(t);
}

static void random_bytes_survive_the_round_trip(void **state)
{
    (void)state;
    const char *const pres[] = {"llama-bpe", "glm4", "gpt-2", "default", "falcon", "starcoder"};
    uint32_t seed = 7;
    for (size_t k = 0; k < sizeof(pres) / sizeof(pres[0]); k++) {
        const struct made_vocab made = hello(pres[k]);
        struct tokenizer *t = expect_tokenizer(&made);
        for (size_t round = 0; round < 60; round++) {
            char text[200];
            const size_t n = made_random(&seed, sizeof(text));
            for (size_t i = 0; i < n; i++) /* even rounds: mostly letters and spaces */
                text[i] = round % 2 ? (char)made_random(&seed, 256)
                                    : "hello a1!\n\xC3\xA4"[made_random(&seed, 12)];
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

/* The simple implementation: search the best of all pairs, join it, repeat. Merge k joins left[k]
 * and right[k] to tokens[k], of at most 8 letters; a lower k comes first. */
struct plain_bpe {
    char tokens[64][9];
    char left[64][9], right[64][9];
    size_t n_merges;
};

static size_t plain_encode(const struct plain_bpe *b, const char *text, char parts[][9])
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++) {
        parts[i][0] = text[i];
        parts[i][1] = '\0';
    }
    for (;;) {
        size_t best = b->n_merges, best_at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            for (size_t k = 0; k < best; k++) {
                if (strcmp(b->left[k], parts[i]) == 0 && strcmp(b->right[k], parts[i + 1]) == 0) {
                    best = k;
                    best_at = i;
                }
            }
        }
        if (best == b->n_merges)
            return n;
        memcpy(parts[best_at] + strlen(parts[best_at]), parts[best_at + 1],
               strlen(parts[best_at + 1]) + 1);
        memmove(parts[best_at + 1], parts[best_at + 2], (n - best_at - 2) * sizeof(parts[0]));
        n--;
    }
}

/* Add random merges of existing tokens. */
static void make_plain(struct plain_bpe *b, uint32_t *seed)
{
    char symbols[68][9] = {"a", "b", "c", "d"};
    size_t n_symbols = 4;
    b->n_merges = 0;
    while (b->n_merges < 40) {
        const char *left = symbols[made_random(seed, (uint32_t)n_symbols)];
        const char *right = symbols[made_random(seed, (uint32_t)n_symbols)];
        if (strlen(left) + strlen(right) > 8)
            continue;
        (void)snprintf(b->left[b->n_merges], 9, "%s", left);
        (void)snprintf(b->right[b->n_merges], 9, "%s", right);
        char joined[17];
        (void)snprintf(joined, sizeof(joined), "%s%s", left, right);
        memcpy(b->tokens[b->n_merges], joined, strlen(joined) + 1);
        memcpy(symbols[n_symbols++], joined, strlen(joined) + 1);
        b->n_merges++;
    }
}

static struct tokenizer *open_plain(const struct plain_bpe *b)
{
    struct made_token tokens[64];
    char lines[64][20];
    const char *lines_at[64];
    for (size_t i = 0; i < b->n_merges; i++) {
        tokens[i] = (struct made_token){b->tokens[i], TOKEN_NORMAL, 0};
        (void)snprintf(lines[i], sizeof(lines[i]), "%s %s", b->left[i], b->right[i]);
        lines_at[i] = lines[i];
    }
    const struct made_vocab made = {.model = "gpt2",
                                    .pre = "gpt-2",
                                    .tokens = tokens,
                                    .n_tokens = b->n_merges,
                                    .merges = lines_at,
                                    .n_merges = b->n_merges};
    return expect_tokenizer(&made);
}

static void equals_the_definition_on_random_vocabularies(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (size_t round = 0; round < 60; round++) {
        struct plain_bpe plain;
        make_plain(&plain, &seed);
        struct tokenizer *t = open_plain(&plain);
        for (size_t k = 0; k < 20; k++) {
            char text[61] = "", parts[61][9], expected[200] = "";
            const size_t n = 1 + made_random(&seed, 60);
            for (size_t i = 0; i < n; i++)
                text[i] = "abcd"[made_random(&seed, 4)];
            text[n] = '\0';
            const size_t n_parts = plain_encode(&plain, text, parts);
            for (size_t i = 0, at = 0; i < n_parts; i++)
                at += (size_t)snprintf(expected + at, sizeof(expected) - at, "%s%s", i ? " " : "",
                                       parts[i]);
            expect_message(t, text, expected);
        }
        tokenizer_close(t);
    }
}

/* 300 kB of one letter and of letters without merges. A quadratic algorithm would need minutes. */
static void long_runs_take_no_quadratic_time(void **state)
{
    (void)state;
    const struct made_vocab made = hello("llama-bpe");
    struct tokenizer *t = expect_tokenizer(&made);
    const size_t n = 300000;
    char *text = mem_alloc(n, 1);
    const clock_t start = clock(); /* processor time: on a busy machine, elapsed time is longer */
    for (const char *letter = "a \n!7\xFF"; *letter; letter++) {
        memset(text, *letter, n);
        struct token_list ids = made_encode(t, SEGMENT_MESSAGE, (struct bn_str){text, n});
        assert_int_equal(ids.n, *letter == 'a' ? n / 4 : n);
        token_list_finish(&ids);
    }
    assert_true((clock() - start) / CLOCKS_PER_SEC < 20); /* about 2 s with a sanitizer */
    mem_free(text);
    tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_by_rank_leftmost_first),
        cmocka_unit_test(whole_pieces_need_no_merges),
        cmocka_unit_test(the_result_of_a_merge_without_a_token_is_split),
        cmocka_unit_test(special_tokens_are_never_merged),
        cmocka_unit_test(random_bytes_survive_the_round_trip),
        cmocka_unit_test(equals_the_definition_on_random_vocabularies),
        cmocka_unit_test(long_runs_take_no_quadratic_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
