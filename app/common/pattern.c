/*
 * Regular expressions with limits: see pattern.h.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "app/common/pattern.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/base/utf8.h"

#include <pcre2.h>

/* The most steps in one line of text. A step is one visit of an item of the pattern: an automatic
 * callout of PCRE2. This many take a few hundredths of a second. */
#define MAX_STEPS 1000000u
/* PCRE2's own limit, for each position in the line where a match could begin. It includes work
 * without a callout, such as the characters that .* takes. */
#define MAX_PCRE2_STEPS 1000000u
#define MAX_HEAP_KIB 20000u /* memory of one match: 20 MB, far more than ordinary patterns need */
/* In a line that is not valid UTF-8, PCRE2 checks the text behind each hit again. The check of this
 * many bytes takes as long as a step. */
#define CHECKED_BYTES_PER_STEP 32
/* After this many lines that reached a limit, the other lines are not searched, because each of
 * them could take as long. */
#define MAX_GAVE_UP 10

struct pattern {
    pcre2_code *valid; /* for lines of valid UTF-8; PCRE2 need not check them again at each hit */
    pcre2_code *any;   /* for all other lines; it ignores PCRE2_NO_UTF_CHECK */
    pcre2_match_data *match;
    pcre2_match_context *limits;
    bool is_valid;    /* whether the present line is valid UTF-8 */
    size_t n_steps;   /* in the present line */
    size_t n_gave_up; /* lines that reached a limit */
    size_t n_hits;    /* in all lines */
};

/* PCRE2 calls this at each step. A negative result ends the match with this error. */
static int count_step(pcre2_callout_block *block, void *pattern)
{
    struct pattern *p = pattern;
    (void)block; /* only the number of calls matters */
    return p->n_steps++ < MAX_STEPS ? 0 : PCRE2_ERROR_MATCHLIMIT;
}

/* Whether the pattern has a capital letter; then case matters. A letter that a backslash escapes,
 * as in \S, does not count. */
static bool has_capital(struct bn_str text)
{
    for (size_t i = 0; i < text.n_bytes; i++) {
        if (text.ptr[i] == '\\')
            i++;
        else if (text.ptr[i] >= 'A' && text.ptr[i] <= 'Z')
            return true;
    }
    return false;
}

/* `flags` are added to those of all patterns. \C could end a match inside a character, where the
 * next match must not begin. */
static bool compile(struct bn_str text, uint32_t flags, pcre2_code **out, struct bn_error *err)
{
    int code;
    PCRE2_SIZE at;
    flags |= PCRE2_UTF | PCRE2_AUTO_CALLOUT | PCRE2_NEVER_BACKSLASH_C |
             (has_capital(text) ? 0 : PCRE2_CASELESS);
    *out = pcre2_compile((PCRE2_SPTR)text.ptr, text.n_bytes, flags, &code, &at, NULL);
    if (*out)
        return true;
    if (code == PCRE2_ERROR_HEAP_FAILED)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    size_t n_chars = 0;
    for (size_t i = 0; i < at; i++)
        n_chars += !utf8_is_continuation(text.ptr[i]);
    unsigned char reason[160];
    (void)pcre2_get_error_message(code, reason, sizeof(reason)); /* cut if too long */
    return bn_fail(err, BN_EARG, "the pattern has an error at character %zu: %s", n_chars,
                   (const char *)reason);
}

bool pattern_open(struct bn_str text, struct pattern **out, struct bn_error *err)
{
    struct pattern *p = mem_alloc(1, sizeof(*p));
    if (!p)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    if (!compile(text, 0, &p->valid, err) ||
        !compile(text, PCRE2_MATCH_INVALID_UTF, &p->any, err)) {
        pattern_close(p);
        return false;
    }
    p->match = pcre2_match_data_create_from_pattern(p->valid, NULL);
    p->limits = pcre2_match_context_create(NULL);
    if (!p->match || !p->limits) {
        pattern_close(p);
        return bn_fail(err, BN_ENOMEM, "out of memory");
    }
    pcre2_set_match_limit(p->limits, MAX_PCRE2_STEPS);
    pcre2_set_heap_limit(p->limits, MAX_HEAP_KIB);
    (void)pcre2_set_callout(p->limits, count_step, p); /* cannot fail */
    *out = p;
    return true;
}

void pattern_close(struct pattern *p)
{
    if (!p)
        return;
    pcre2_match_context_free(p->limits);
    pcre2_match_data_free(p->match);
    pcre2_code_free(p->valid);
    pcre2_code_free(p->any);
    mem_free(p);
}

bool pattern_next(struct pattern *p, struct bn_str line, struct pattern_hit *hit)
{
    if (p->n_gave_up >= MAX_GAVE_UP || p->n_hits >= PATTERN_MAX_HITS)
        return false;
    const char *text = line.n_bytes > 0 ? line.ptr : "";
    if (hit->n == 0) {
        p->n_steps = 0;
        p->is_valid = utf8_valid_bytes(text, line.n_bytes) == line.n_bytes;
    } else if (!p->is_valid) {
        p->n_steps += (line.n_bytes - hit->end) / CHECKED_BYTES_PER_STEP;
    }
    const uint32_t flags =
        (p->is_valid ? PCRE2_NO_UTF_CHECK : 0) | (hit->n > 0 ? PCRE2_NOTEMPTY : 0);
    const int rc = pcre2_match(p->is_valid ? p->valid : p->any, (PCRE2_SPTR)text, line.n_bytes,
                               hit->end, flags, p->match, p->limits);
    if (rc < PCRE2_ERROR_NOMATCH) /* a limit, or no memory */
        p->n_gave_up++;
    if (rc < 0)
        return false;
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(p->match);
    if (hit->n > 0 && range[1] <= hit->end) /* \K in a lookahead: it would never end */
        return false;
    /* For the same reason, the begin may be behind the end. */
    *hit = (struct pattern_hit){size_min(range[0], range[1]), range[1], hit->n + 1};
    p->n_hits++;
    return true;
}

bool pattern_gave_up(const struct pattern *p)
{
    return p->n_gave_up > 0;
}
