/*
 * The table of pre-tokenizers: names and regular expressions.
 *
 * White space is written out as Unicode's White_Space property, because \s of PCRE2 also matches
 * U+180E.
 */
#include "tokenizer/bpe/pretok.h"

#include <string.h>

#define N_ITEMS(array) (sizeof(array) / sizeof((array)[0]))

#define SPACES "\\t-\\r\\x{85}\\p{Z}" /* inside a class */
#define SPACE "[" SPACES "]"
#define NOT_SPACE "[^" SPACES "]"

#define WORDS_LIKE_LLAMA3(numbers)                                                                 \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers "| ?[^" SPACES           \
    "\\p{L}\\p{N}]+[\\r\\n]*|" SPACE "*[\\r\\n]+|" SPACE "+(?!" NOT_SPACE ")|" SPACE "+"
#define WORDS_LIKE_GPT2                                                                            \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACES "\\p{L}\\p{N}]+|" SPACE              \
    "+(?!" NOT_SPACE ")"
#define THREE_DIGITS "[0-9][0-9][0-9]"

static const char *const llama3[] = {WORDS_LIKE_LLAMA3("\\p{N}{1,3}")};
static const char *const qwen2[] = {WORDS_LIKE_LLAMA3("\\p{N}")};
static const char *const gpt2[] = {WORDS_LIKE_GPT2};
static const char *const plain[] = {
    "[\\p{P}\\$\\+<=>\\^~\\|]+",
    WORDS_LIKE_GPT2,
    "\\p{N}+",
    THREE_DIGITS,
};
static const char *const falcon[] = {"[\\p{P}\\$\\+<=>\\^~\\|`]+", WORDS_LIKE_GPT2, THREE_DIGITS};
static const char *const digits[] = {"\\p{N}", WORDS_LIKE_GPT2};

static const struct pretok_rule rules[] = {
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 falcon_e bitnet", llama3, N_ITEMS(llama3), true,
     true},
    {"glm4 dbrx smaug-bpe", llama3, N_ITEMS(llama3), false, false},
    {"qwen2", qwen2, N_ITEMS(qwen2), false, false},
    {"gpt-2 phi-2 mpt olmo jais gigachat mellum modern-bert jina-es jina-de jina-v1-en jina-v2-* "
     "roberta-bpe exaone4 trillion granite-docling",
     gpt2, N_ITEMS(gpt2), false, false},
    {"default", plain, N_ITEMS(plain), false, false},
    {"falcon", falcon, N_ITEMS(falcon), false, false},
    {"smollm starcoder refact command-r", digits, N_ITEMS(digits), false, false},
};

static bool name_fits(struct bn_str name, struct bn_str pattern)
{
    if (pattern.n_bytes > 0 && pattern.ptr[pattern.n_bytes - 1] == '*') {
        pattern.n_bytes--;
        return bn_str_starts(name, pattern);
    }
    return bn_str_equal(name, pattern);
}

const struct pretok_rule *pretok_rule_find(struct bn_str name)
{
    for (size_t i = 0; i < N_ITEMS(rules); i++) {
        for (const char *at = rules[i].names; *at;) {
            const size_t n = strcspn(at, " ");
            if (name_fits(name, (struct bn_str){at, n}))
                return &rules[i];
            at += n + (at[n] == ' ');
        }
    }
    return NULL;
}
