/*
 * The steps of the sampling chain that drop candidates. Private to the sampler; pure, nothing
 * allocated.
 *
 * Each takes the n survivors so far, moves those it keeps to the front and gives their number, at
 * least 1 for n at least 1. No id is twice among them and every logit is above -INFINITY. What is
 * kept does not depend on the order they come in.
 */
#ifndef ENGINE_SAMPLER_SAMPLER_CHAIN_H
#define ENGINE_SAMPLER_SAMPLER_CHAIN_H

#include <stddef.h>
#include <stdint.h>

struct survivor {
    int32_t id;
    float logit; /* after bias and penalties */
    double key;  /* what the step at hand sorts by, largest first */
};

size_t chain_top_k(struct survivor *w, size_t n, size_t k); /* k 0: all */
size_t chain_typical(struct survivor *w, size_t n, double share);
size_t chain_top_p(struct survivor *w, size_t n, double share);
size_t chain_min_p(struct survivor *w, size_t n, double min_p);

#endif
