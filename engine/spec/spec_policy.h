/*
 * Draft policy: finds a draft in the text and decides how many of its tokens to evaluate. The
 * functions change only *p and `out`; the caller measures the times. Private to spec.c.
 *
 * If there is a draft token for the position of a chosen token, the two are compared, even if the
 * draft was not evaluated. Each comparison is one trial. So the success rate is known at no cost,
 * and text without repetitions loses no time.
 */
#ifndef ENGINE_SPEC_SPEC_POLICY_H
#define ENGINE_SPEC_SPEC_POLICY_H

#include "engine/spec/spec.h"

#define SPEC_MAX_DRAFT 15   /* tokens; with the last token 16, as many as an AMX tile has rows */
#define SPEC_N_KINDS 4      /* classes of matches by length */
#define SPEC_MATCH_MAX 32   /* longer matches count as 32 tokens */
#define SPEC_MATCH_ENOUGH 4 /* the latest match of at least this length is used */

/* Search `ids` for an earlier occurrence of their last tokens. Returns the length of the match, 0
 * if the last id occurs only once. Uses the latest match of SPEC_MATCH_ENOUGH tokens or more, else
 * the longest one, and of equally long ones the latest. Writes the n ids that follow the match to
 * out; past the end of ids it continues with the draft itself, so a repetition can be extended to
 * any length. Writes nothing if there is no match. */
size_t spec_policy_find(const int32_t *ids, size_t n_ids, int32_t *out, size_t n);

struct spec_policy {
    enum spec_mode mode;
    struct {
        double right, trials; /* number of right and of all trials; both decay with each trial */
    } kinds[SPEC_N_KINDS];
    double pass_s[SPEC_MAX_DRAFT + 2]; /* [n]: mean seconds of a pass of n tokens; 0: unknown */
    double spent_s;                    /* time of all decode passes */
    double lost_s;                     /* part of spent_s lost by drafts; negative: gained */
};

/* Start without measurements. */
void spec_policy_init(struct spec_policy *p, enum spec_mode mode);

/* Number of tokens to draft after a match of n_match tokens: 0 to n_max. It is 0 until a pass of
 * one token was recorded, with SPEC_OFF, with SPEC_ON for n_match 1, for n_match 0, and with
 * SPEC_AUTO if no length is expected to gain enough or drafts have lost too much time. */
size_t spec_policy_choose(const struct spec_policy *p, size_t n_match, size_t n_max);

/* Record that the draft token after a match of n_match tokens was right or wrong. Does nothing for
 * n_match 0. */
void spec_policy_trial(struct spec_policy *p, size_t n_match, bool is_right);

/* Record a pass over n_pending + n_draft tokens, of which n_accepted draft tokens were right. All
 * but the last of the n_pending tokens were evaluated before and dropped with a wrong draft. */
void spec_policy_pass(struct spec_policy *p, size_t n_pending, size_t n_draft, size_t n_accepted,
                      double seconds);

#endif
