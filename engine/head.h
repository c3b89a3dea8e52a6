/*
 * What is wanted of the output head for a token, and what comes back. PUBLIC, part of engine.h.
 *
 * Logits are exact to the stored head rows: F32 dot products in the order of docs/kernels.md. Ties
 * go to the lower id everywhere.
 */
#ifndef ENGINE_HEAD_H
#define ENGINE_HEAD_H

#include <stddef.h>
#include <stdint.h>

enum head_kind {
    HEAD_NONE,   /* no logits: inner part of a prompt */
    HEAD_ALL,    /* every logit, in id order */
    HEAD_TOP,    /* the k best, each of `ids`, and with gap > 0 all within gap of the best */
    HEAD_GUMBEL, /* one id: argmax of z / temp + g(seed, position, id), a draw from softmax(z /
                    temp) */
};

struct head_request {
    enum head_kind kind;
    size_t k;           /* TOP: at least 1 */
    float gap;          /* TOP: logits; 0 for none */
    const int32_t *ids; /* (n_ids) TOP: whose logits are wanted in any case (penalties, bias) */
    size_t n_ids;
    float temp;    /* GUMBEL: > 0 */
    uint64_t seed; /* GUMBEL; the position is that of the token being drawn */
};

struct head_cand {
    int32_t id;
    float logit;
};

/* One row of results, in the caller's memory. TOP: sorted by logit, best first, no id twice.
 * n_vocab candidates are always room enough; too little room is an error, never a cut. */
struct head_row {
    struct head_cand *cands; /* (cap), the first n are filled */
    size_t cap;
    size_t n;
};

#endif
