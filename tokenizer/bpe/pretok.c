/*
 * The table of pre-tokenizers, and splitting with PCRE2. Expressions are compiled once, to machine
 * code where the system allows it.
 *
 * Every expression takes linear time on every text (each run of letters, digits or white space is
 * scanned a constant number of times), so the match limit only limits the cost of a mistake in an
 * expression. Ill-formed UTF-8 never reaches PCRE2: the text is cut around it, and a white-space
 * run ends at the cut as at the end of the text.
 */
#include "tokenizer/bpe/pretok.h"

#include "engine/base/memory.h"
#include "engine/base/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <assert.h>
#include <pcre2.h>
#include <string.h>

/* ---- rules: docs/formats.md, "Vocabularies", describes them in words ---- */

#define N_ITEMS(array) (sizeof(array) / sizeof((array)[0]))

/* White space is written out as Unicode's White_Space property, because \s of PCRE2 also matches
 * U+180E. */
#define SPACES "\\t-\\r\\x{85}\\p{Z}" /* inside a class */
#define SPACE "[" SPACES "]"
#define NOT_SPACE "[^" SPACES "]"

#define WORDS_LIKE_LLAMA3(numbers)                                                                 \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers "| ?[^" SPACES           \
    "\\p{L}\\p{N}]+[\\r\\n]*|" SPACE "*[\\r\\n]+|" SPACE "+(?!" NOT_SPACE ")|" SPACE "+"
/* A last alternative SPACE+ as in Llama 3 would change nothing: white space that no alternative
 * matches is a single character, and split_level makes it a piece. */
#define WORDS_LIKE_GPT2                                                                            \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACES "\\p{L}\\p{N}]+|" SPACE              \
    "+(?!" NOT_SPACE ")"
#define THREE_DIGITS "[0-9][0-9][0-9]"

static const char *const llama3[] = {WORDS_LIKE_LLAMA3("\\p{N}{1,3}")};
static const char *const qwen2[] = {WORDS_LIKE_LLAMA3("\\p{N}")};
/* As qwen2, but combining marks (\p{M}) belong to the letters before them. */
static const char *const qwen35[] = {
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" SPACES
    "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACE "*[\\r\\n]+|" SPACE "+(?!" NOT_SPACE ")|" SPACE "+"};
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
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 falcon_e bitnet", llama3, N_ITEMS(llama3),
     .ignore_merges = true, .add_bos = true},
    {"glm4 dbrx smaug-bpe", llama3, .n_regexes = N_ITEMS(llama3)},
    {"qwen2", qwen2, N_ITEMS(qwen2), .nfc = true},
    {"qwen35", qwen35, N_ITEMS(qwen35), .nfc = true},
    {"gpt-2 phi-2 mpt olmo jais gigachat mellum modern-bert jina-es jina-de jina-v1-en jina-v2-* "
     "roberta-bpe exaone4 trillion granite-docling",
     gpt2, .n_regexes = N_ITEMS(gpt2)},
    {"default", plain, .n_regexes = N_ITEMS(plain)},
    {"falcon", falcon, .n_regexes = N_ITEMS(falcon)},
    {"smollm starcoder refact command-r", digits, .n_regexes = N_ITEMS(digits)},
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

/* ---- splitting ---- */

#define REGEXES_MAX N_ITEMS(plain) /* `plain` is the longest list of expressions */

/* The match limit is this base plus 8 per byte of text, at most UINT32_MAX. This is far more than
 * any text needs: a run of white space, the case that backtracks, costs 1 per byte. */
#define MATCH_LIMIT_BASE 1000000u

struct pretok {
    pcre2_code *regexes[REGEXES_MAX + 1]; /* in order, then NULL */
};

bool pretok_open(const struct pretok_rule *rule, struct pretok **out, struct bn_error *err)
{
    struct pretok *p = mem_alloc(1, sizeof(*p));
    if (!p)
        return bn_fail(err, BN_ENOMEM, "no memory for the pre-tokenizer");
    assert(rule->n_regexes <= REGEXES_MAX);
    for (size_t i = 0; i < rule->n_regexes; i++) {
        int code;
        PCRE2_SIZE at;
        pcre2_code *regex = pcre2_compile((PCRE2_SPTR)rule->regexes[i], PCRE2_ZERO_TERMINATED,
                                          PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
        if (!regex) { /* no memory: the expressions are constants without errors */
            pretok_close(p);
            return bn_fail(err, BN_ENOMEM, "pre-tokenizer expression: error %d at %zu", code, at);
        }
        /* On failure the expression is interpreted. */
        (void)pcre2_jit_compile(regex, PCRE2_JIT_COMPLETE);
        p->regexes[i] = regex;
    }
    *out = p;
    return true;
}

void pretok_close(struct pretok *p)
{
    if (!p)
        return;
    for (size_t i = 0; p->regexes[i]; i++)
        pcre2_code_free(p->regexes[i]);
    mem_free(p);
}

struct splitter {
    const struct pretok *p;
    pretok_piece_fn *piece;
    void *ud;
    pcre2_match_data *found;
    pcre2_match_context *limits;
};

/* Cut `text` by the first of `regexes`; cut the matches and the text between them by the remaining
 * ones. No expression matches the empty string, so each step of the loop advances. */
static bool split_level(const struct splitter *s, pcre2_code *const *regexes, struct bn_str text,
                        struct bn_error *err)
{
    if (!*regexes)
        return s->piece(s->ud, text, err);
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(s->found);
    size_t at = 0;
    while (at < text.n_bytes) {
        const int n = pcre2_match(*regexes, (PCRE2_SPTR)text.ptr, text.n_bytes, at,
                                  PCRE2_NO_UTF_CHECK, s->found, s->limits);
        if (n < 0 && n != PCRE2_ERROR_NOMATCH)
            return bn_fail(err, n == PCRE2_ERROR_NOMEMORY ? BN_ENOMEM : BN_EFORMAT,
                           "the pre-tokenizer stopped at byte %zu of %zu (PCRE2 error %d)", at,
                           text.n_bytes, n);
        const size_t start = n < 0 ? text.n_bytes : ends[0];
        const size_t end = n < 0 ? text.n_bytes : ends[1];
        if (start > at &&
            !split_level(s, regexes + 1, (struct bn_str){text.ptr + at, start - at}, err))
            return false;
        if (end > start &&
            !split_level(s, regexes + 1, (struct bn_str){text.ptr + start, end - start}, err))
            return false;
        at = end;
    }
    return true;
}

/* Split the well-formed parts of `text`; each run of other bytes is one piece. */
static bool split_valid(const struct splitter *s, struct bn_str text, struct bn_error *err)
{
    while (text.n_bytes > 0) {
        const size_t n_valid = utf8_valid_bytes(text.ptr, text.n_bytes);
        if (n_valid > 0 && !split_level(s, s->p->regexes, (struct bn_str){text.ptr, n_valid}, err))
            return false;
        size_t end = n_valid;
        while (end < text.n_bytes && utf8_decode(text.ptr + end, text.n_bytes - end, NULL) == 0)
            end++;
        if (end > n_valid &&
            !s->piece(s->ud, (struct bn_str){text.ptr + n_valid, end - n_valid}, err))
            return false;
        text = (struct bn_str){text.ptr + end, text.n_bytes - end};
    }
    return true;
}

bool pretok_split(const struct pretok *p, struct bn_str text, pretok_piece_fn *piece, void *ud,
                  struct bn_error *err)
{
    struct splitter s = {.p = p, .piece = piece, .ud = ud};
    s.found = pcre2_match_data_create(1, NULL);
    s.limits = pcre2_match_context_create(NULL);
    bool ok = false;
    if (!s.found || !s.limits) {
        bn_fail(err, BN_ENOMEM, "no memory for the pre-tokenizer's match state");
    } else {
        const size_t n_max = UINT32_MAX - MATCH_LIMIT_BASE;
        const size_t n = text.n_bytes < n_max / 8 ? text.n_bytes * 8 : n_max;
        (void)pcre2_set_match_limit(s.limits, MATCH_LIMIT_BASE + (uint32_t)n); /* never fails */
        ok = split_valid(&s, text, err);
    }
    pcre2_match_context_free(s.limits);
    pcre2_match_data_free(s.found);
    return ok;
}
