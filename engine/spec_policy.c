/*
 * The measures and the choice.
 */
#include "engine/spec_policy.h"

#define FADE 0.95        /* of the counts, a trial: the last twenty or so decide */
#define DOUBT 2.0        /* trials, nearly all wrong, that a kind of match begins with */
#define MEMORY 0.25      /* share of the newest time in a mean */
#define WORTH 1.1        /* gain below which one token at a time is kept */
#define MAY_LOSE 0.02    /* of the time */
#define ON_LEAST_MATCH 2 /* SPEC_ON drafts from here */

static size_t kind_of(size_t n_match)
{
    if (n_match < 2)
        return 0;
    if (n_match < 4)
        return 1;
    return n_match < 8 ? 2 : 3;
}

static double chance(const struct spec_policy *p, size_t n_match)
{
    const size_t kind = kind_of(n_match);
    return (p->kinds[kind].right + 0.1) / (p->kinds[kind].trials + DOUBT);
}

/* Before a width was seen: what the nearest narrower one took, and a little more a token. */
static double pass_seconds(const struct spec_policy *p, size_t n_tokens)
{
    size_t seen = n_tokens;
    while (seen > 1 && p->pass_s[seen] == 0)
        seen--;
    return p->pass_s[seen] * (seen == 1 && n_tokens > 1 ? 1.5 : 1.0) *
           (1.0 + 0.1 * (double)(n_tokens - seen));
}

void spec_policy_init(struct spec_policy *p, enum spec_mode mode)
{
    *p = (struct spec_policy){.mode = mode};
}

size_t spec_policy_choose(const struct spec_policy *p, size_t n_match, size_t n_max)
{
    static const size_t lengths[] = {1, 2, 3, 4, 7, SPEC_MAX_DRAFT};
    double best_gain = p->mode == SPEC_ON ? 0.0 : WORTH, expected = 1.0, all_right = 1.0;
    size_t best = 0, length = 0;
    if (p->mode == SPEC_OFF || n_match == 0 || p->pass_s[1] == 0 ||
        (p->mode == SPEC_ON && n_match < ON_LEAST_MATCH))
        return 0;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]) && lengths[i] <= n_max; i++) {
        for (; length < lengths[i]; length++) {
            all_right *= chance(p, n_match + length);
            expected += all_right;
        }
        const double took = pass_seconds(p, 1 + length);
        if (p->mode == SPEC_AUTO && p->lost_s + took > MAY_LOSE * p->spent_s + 2 * p->pass_s[1])
            break; /* more than may be lost if all of it is wrong: of that, one token for nothing */
        const double gain = expected * p->pass_s[1] / took;
        if (gain > best_gain) {
            best_gain = gain;
            best = length;
        }
    }
    return best;
}

void spec_policy_trial(struct spec_policy *p, size_t n_match, int is_right)
{
    const size_t kind = kind_of(n_match);
    if (n_match == 0)
        return;
    p->kinds[kind].right = p->kinds[kind].right * FADE + (is_right ? 1.0 : 0.0);
    p->kinds[kind].trials = p->kinds[kind].trials * FADE + 1.0;
}

void spec_policy_pass(struct spec_policy *p, size_t n_draft, size_t n_accepted, double seconds)
{
    double *mean = &p->pass_s[1 + n_draft];
    p->spent_s += seconds;
    if (n_draft > 0)
        p->lost_s += seconds - (double)(1 + n_accepted) * p->pass_s[1];
    *mean = *mean == 0 ? seconds : *mean + MEMORY * (seconds - *mean);
}
