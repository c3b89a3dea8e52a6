/*
 * The steps of the sampler that remove candidates. Pure functions, private to the sampler.
 *
 * Each step receives n candidates, n >= 1, moves those that it keeps to the beginning of the array,
 * and returns their number, at least 1. The ids must be distinct and the logits above -INFINITY.
 * The result is the same set for every order of the candidates.
 */
#ifndef ENGINE_SAMPLER_SAMPLER_CHAIN_H
#define ENGINE_SAMPLER_SAMPLER_CHAIN_H

#include <stddef.h>
#include <stdint.h>

struct chain_cand {
    int32_t id;
    float logit; /* after bias and penalties */
    double key;  /* sort key of the current step, largest first */
};

/* `share` is the member typical or top_p of struct sampler_params, and min_p is its min_p. Both
 * must be above 0. */
size_t chain_top_k(struct chain_cand *cands, size_t n, size_t k); /* k = 0: keeps all */
size_t chain_typical(struct chain_cand *cands, size_t n, double share);
size_t chain_top_p(struct chain_cand *cands, size_t n, double share);
size_t chain_min_p(struct chain_cand *cands, size_t n, double min_p);

#endif
