/*
 * When drafts pay: a running measure of what passes cost and of how often drafts are right. Pure:
 * times are handed in.
 *
 * Every token that is chosen is a trial of what the draft would have said, whether it was evaluated
 * or not, so being right is learned for nothing and text without repeats costs nothing. A draft is
 * made where the measures promise a gain, and where what drafts have lost so far, and would with
 * this one if all of it is wrong, stays below a fiftieth of the time and one token's.
 */
#ifndef ENGINE_SPEC_POLICY_H
#define ENGINE_SPEC_POLICY_H

#include <stddef.h>

#define SPEC_MAX_DRAFT 15 /* tokens of a draft: with the one before them a tile of 16 */
#define SPEC_N_KINDS 4    /* of matches, by length */

enum spec_mode { SPEC_OFF, SPEC_ON, SPEC_AUTO }; /* ON: whenever there is a match, paying or not */

struct spec_policy {
    enum spec_mode mode;
    struct {
        double right, trials; /* fading counts */
    } kinds[SPEC_N_KINDS];
    double pass_s[SPEC_MAX_DRAFT + 2]; /* seconds of a pass of so many tokens; 0: not seen yet */
    double spent_s, lost_s;            /* decoding; of it lost, or below 0 gained, by drafts */
};

void spec_policy_init(struct spec_policy *p, enum spec_mode mode);

/* Tokens to draft after a match of so many, at most n_max; 0: none. */
size_t spec_policy_choose(const struct spec_policy *p, size_t n_match, size_t n_max);

/* The draft of a match of n_match tokens was right, or not. */
void spec_policy_trial(struct spec_policy *p, size_t n_match, int is_right);

/* A pass of 1 + n_draft tokens, of which n_accepted drafts were right. */
void spec_policy_pass(struct spec_policy *p, size_t n_draft, size_t n_accepted, double seconds);

#endif
