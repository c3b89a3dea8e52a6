/*
 * The search for a match, the running measurements, and the choice of a draft length.
 *
 * The search is a plain backward scan: some microseconds in a context of thousands of tokens, where
 * the evaluation of one token takes milliseconds.
 */
#include "engine/spec/spec_policy.h"

#define TRIAL_DECAY 0.95 /* decay of the counts per trial: about the last twenty trials decide */
#define PRIOR_TRIALS 2.0 /* assumed first trials of each kind, of which 0.1 were right */
#define TIME_WEIGHT 0.25 /* weight of the newest pass in a mean time */
#define MIN_GAIN 1.1     /* in SPEC_AUTO a draft must be expected to be faster by this factor */
#define MAX_LOSS 0.02    /* part of spent_s that drafts may lose, besides one token */
#define ON_MIN_MATCH 2   /* shortest match that SPEC_ON drafts after */

/* Among long matches the latest one is used, not the longest. Repeating text continues as it did a
 * moment ago, but the longest match may be the place where an earlier repetition ended. */
size_t spec_policy_find(const int32_t *ids, size_t n_ids, int32_t *out, size_t n)
{
    size_t best = 0, end = 0; /* the best match is ids[end - best .. end) */
    for (size_t j = n_ids; j-- > 1 && best < SPEC_MATCH_ENOUGH;) {
        size_t length = 0; /* compare backward from ids[j - 1] and from the last id */
        while (length < j && length < SPEC_MATCH_MAX &&
               ids[j - 1 - length] == ids[n_ids - 1 - length])
            length++;
        if (length > best) {
            best = length;
            end = j;
        }
    }
    for (size_t i = 0; best > 0 && i < n; i++)
        out[i] = end + i < n_ids ? ids[end + i] : out[end + i - n_ids];
    return best;
}

/* The class of a match by its length: 1, 2 to 3, 4 to 7, 8 or more tokens. */
static size_t kind_of(size_t n_match)
{
    if (n_match < 2)
        return 0;
    if (n_match < 4)
        return 1;
    return n_match < 8 ? 2 : 3;
}

/* Estimated probability that the token after a match of n_match tokens is right. */
static double chance_of_match(const struct spec_policy *p, size_t n_match)
{
    const size_t kind = kind_of(n_match);
    return (p->kinds[kind].right + 0.1) / (p->kinds[kind].trials + PRIOR_TRIALS);
}

/* Expected time of a pass. A pass of a size that was not measured yet is estimated from the next
 * smaller one that was: 10 % more time per additional token, and another 50 % if the smaller one is
 * a single token. These guesses matter only until the size is measured. */
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
    /* A few lengths are enough; 7 and 15 fill passes of 8 and 16 tokens. */
    static const size_t lengths[] = {1, 2, 3, 4, 7, SPEC_MAX_DRAFT};
    const double token_s = p->pass_s[1];
    double best_gain = p->mode == SPEC_ON ? 0.0 : MIN_GAIN, expected = 1.0, all_right = 1.0;
    size_t best = 0, length = 0;
    if (p->mode == SPEC_OFF || n_match == 0 || token_s == 0 ||
        (p->mode == SPEC_ON && n_match < ON_MIN_MATCH))
        return 0;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]) && lengths[i] <= n_max; i++) {
        for (; length < lengths[i]; length++) {
            all_right *= chance_of_match(p, n_match + length);
            expected += all_right; /* tokens that the pass yields on average */
        }
        const double took = pass_seconds(p, 1 + length);
        /* A draft that is all wrong loses took - token_s. Drafts may lose MAX_LOSS of the time
         * plus the time of one token. */
        if (p->mode == SPEC_AUTO && p->lost_s + took > MAX_LOSS * p->spent_s + 2 * token_s)
            break;
        const double gain = expected * token_s / took; /* time without the draft / with it */
        if (gain > best_gain) {
            best_gain = gain;
            best = length;
        }
    }
    return best;
}

void spec_policy_trial(struct spec_policy *p, size_t n_match, bool is_right)
{
    const size_t kind = kind_of(n_match);
    if (n_match == 0)
        return;
    p->kinds[kind].right = p->kinds[kind].right * TRIAL_DECAY + (is_right ? 1.0 : 0.0);
    p->kinds[kind].trials = p->kinds[kind].trials * TRIAL_DECAY + 1.0;
}

void spec_policy_pass(struct spec_policy *p, size_t n_pending, size_t n_draft, size_t n_accepted,
                      double seconds)
{
    const size_t n_tokens = n_pending + n_draft;
    p->spent_s += seconds;
    if (n_tokens > 1) /* without drafts, the same tokens would take 1 + n_accepted passes */
        p->lost_s += seconds - (double)(1 + n_accepted) * p->pass_s[1];
    if (n_tokens > SPEC_MAX_DRAFT + 1)
        return; /* pass_s has no entry for so many tokens */
    double *mean = &p->pass_s[n_tokens];
    *mean = *mean == 0 ? seconds : *mean + TIME_WEIGHT * (seconds - *mean);
}
