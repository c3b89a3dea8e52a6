/*
 * Requests for logits and their results. Public header; engine.h includes it.
 *
 * The output head is the matrix that turns the last hidden state into one logit per token id. A
 * request lists the logits that the caller needs, so that the engine can avoid computing the
 * others. Logits are F32; docs/kernels.md defines their arithmetic. Equal logits are ordered by id,
 * the lower id first.
 */
#ifndef ENGINE_HEAD_H
#define ENGINE_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum head_kind {
    HEAD_NONE,  /* no logits, for tokens of a prompt before its last one */
    HEAD_ALL,   /* all logits, in order of id */
    HEAD_TOP,   /* the k largest and those of `ids`; with gap > 0 also all >= the largest - gap */
    HEAD_GUMBEL /* one id drawn from softmax(logit / temp), with noise of engine/base/noise.h; its
                   result has the logit itself, without temp and noise */
};

/* HEAD_TOP with k 0 returns the logits of `ids` (at least one) alone. On the CPU, a head that is
 * not ternary then reads only their rows. */
struct head_request {
    enum head_kind kind;
    size_t k;  /* HEAD_TOP: at least 1, or 0 for `ids` alone; above n_vocab: all logits */
    float gap; /* HEAD_TOP: distance between logits, at least 0; 0: off; must be 0 if k is 0 */
    /* (n_ids) HEAD_TOP: always included, for penalties and biases; each from 0 to n_vocab - 1. An
     * id may occur twice. May be NULL if n_ids is 0. */
    const int32_t *ids;
    size_t n_ids;
    float temp;    /* HEAD_GUMBEL: temperature, finite and above 0 */
    uint64_t seed; /* HEAD_GUMBEL: for the noise, with the position of the drawn token */
};

/* Whether the request is for the logits of `ids` alone. */
static inline bool head_is_list(const struct head_request *h)
{
    return h->kind == HEAD_TOP && h->k == 0;
}

/* A candidate for the next token. */
struct head_cand {
    int32_t id;
    float logit;
};

/* The results of a request for one token, in the caller's memory. Results of HEAD_TOP are sorted,
 * largest logit first, without duplicates. A capacity of n_vocab is always enough. If the capacity
 * is too small, the call fails with BN_EARG. */
struct head_row {
    struct head_cand *cands; /* (cap), of which the engine fills the first n */
    size_t cap;
    size_t n; /* number of results, written on success */
};

#endif
