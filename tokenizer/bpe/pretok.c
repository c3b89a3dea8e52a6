/*
 * Pre-tokenizers with PCRE2: expressions are compiled once, to machine code where the system allows
 * it.
 *
 * Every expression takes linear time on every text (each run is scanned a constant number of
 * times), so the match limit only limits the cost of a mistake in an expression. Ill-formed UTF-8
 * never reaches PCRE2: the text is cut around it, and a white-space run ends at the cut as at the
 * end of the text.
 */
#include "tokenizer/bpe/pretok.h"

#include "engine/base/memory.h"
#include "engine/base/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define REGEXES_MAX 4

/* Backtracking over a white-space run costs one count per byte. This adds a reserve. */
#define MATCH_LIMIT_BASE 1000000u

struct pretok {
    pcre2_code *regexes[REGEXES_MAX + 1]; /* in order, then NULL */
};

bool pretok_open(const struct pretok_rule *rule, struct pretok **out, struct bn_error *err)
{
    struct pretok *p = mem_alloc(1, sizeof(*p));
    if (!p)
        return bn_fail(err, BN_ENOMEM, "no memory for the pre-tokenizer");
    for (size_t i = 0; i < rule->n_regexes && i < REGEXES_MAX; i++) {
        int code;
        PCRE2_SIZE at;
        pcre2_code *regex = pcre2_compile((PCRE2_SPTR)rule->regexes[i], PCRE2_ZERO_TERMINATED,
                                          PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
        if (!regex) {
            pretok_close(p);
            return bn_fail(err, BN_ENOMEM, "pre-tokenizer expression: error %d at %zu", code, at);
        }
        (void)pcre2_jit_compile(
            regex, PCRE2_JIT_COMPLETE); /* if it fails, the expression is interpreted */
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

/* Cut `text` by the first of `regexes` and each resulting piece by the remaining ones. */
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
