/*
 * Requests for logits and their results. PUBLIC, part of engine.h.
 *
 * The output head is the matrix that turns the last hidden state into one logit per token id. A
 * request lists the logits that the caller needs, so that the engine can avoid computing the
 * others. Logits are F32 dot products in the order of docs/kernels.md. Equal logits are ordered by
 * id, the lower id first.
 */
#ifndef ENGINE_HEAD_H
#define ENGINE_HEAD_H

#include <stddef.h>
#include <stdint.h>

enum head_kind {
    HEAD_NONE,  /* no logits, for all but the last token of a prompt */
    HEAD_ALL,   /* every logit, in order of id */
    HEAD_TOP,   /* the k largest and those of `ids`; with gap > 0 also all >= the largest - gap */
    HEAD_GUMBEL /* a draw from softmax(z / temp): argmax of z / temp + g(seed, position, id) */
};

struct head_request {
    enum head_kind kind;
    size_t k;  /* HEAD_TOP: at least 1; or 0 for `ids` alone, which reads only their rows */
    float gap; /* HEAD_TOP: distance in logits, at least 0; 0: off, as it must be with k 0 */
    const int32_t *ids; /* (n_ids) HEAD_TOP: always included, for penalties and biases */
    size_t n_ids;
    float temp;    /* HEAD_GUMBEL: temperature, finite and above 0 */
    uint64_t seed; /* HEAD_GUMBEL; the position is that of the drawn token in its sequence */
};

/* A candidate for the next token. */
struct head_cand {
    int32_t id;
    float logit;
};

/* The candidates of one token, in the caller's memory. HEAD_TOP sorts them, largest logit first,
 * without duplicates. A capacity of n_vocab is always enough. If the capacity is too small, the
 * call fails with BN_EARG. */
struct head_row {
    struct head_cand *cands; /* (cap), of which the engine fills the first n */
    size_t cap;
    size_t n;
};

#endif
