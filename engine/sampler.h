/*
 * Candidates to id: greedy, penalties, bias, top-k, typical, top-p, min-p, temperature. PUBLIC.
 *
 * Order of the chain: logit bias, repetition/presence/frequency penalties, top-k, typical, top-p,
 * min-p, temperature, draw. Random numbers are a counter function of (seed, position, draw), never
 * a stream, so undo, retry, speculation and restored sessions draw the same. temp 0 is greedy: the
 * best logit after bias and penalties, ties to the lower id, no random number.
 */
#ifndef ENGINE_SAMPLER_H
#define ENGINE_SAMPLER_H

#include "engine/base/error.h"
#include "engine/head.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sampler_bias {
    int32_t id;
    float bias; /* added to the logit; -INFINITY bans the id */
};

struct sampler_params {
    float temp;              /* 0 .. 100; 0 is greedy */
    int32_t top_k;           /* 0: off */
    float top_p;             /* (0, 1], 1: off */
    float min_p;             /* [0, 1], 0: off */
    float typical;           /* (0, 1], 1: off */
    float repeat_penalty;    /* > 0, 1: off; divides positive logits, multiplies negative ones */
    float presence_penalty;  /* subtracted once from ids seen in the window, 0: off */
    float frequency_penalty; /* subtracted per time seen, 0: off */
    int32_t repeat_last_n;   /* window of the three, in ids; 0: off, -1: the whole context */
    uint64_t seed;
    const struct sampler_bias *biases; /* (n_biases), copied */
    size_t n_biases;
};

struct sampler;

bool sampler_open(size_t n_vocab, struct sampler **out, struct bn_error *err);
void sampler_close(struct sampler *s); /* NULL is fine */
/* BN_EARG: a value out of the range above; the old parameters stay. */
bool sampler_set(struct sampler *s, const struct sampler_params *params, struct bn_error *err);

/* The head request that these parameters need after the context `ids`, and the row to receive it.
 * Both belong to the sampler and are valid until the next call on it. No allocation. */
void sampler_request(struct sampler *s, const int32_t *ids, size_t n_ids,
                     struct head_request *request, struct head_row **row);

/* One request for n_draft + 1 contexts: the first n_ids - n_draft of ids, and each one more up to
 * all of them. The rows are the caller's, with room for the vocabulary. */
void sampler_request_draft(struct sampler *s, const int32_t *ids, size_t n_ids, size_t n_draft,
                           struct head_request *request);

/* The id that follows `ids`, out of `row`: as sampler_request or sampler_request_draft asked for it, or every
 * logit (HEAD_ALL), which gives the same id. The draw depends on seed and n_ids (the position of
 * the new id) alone. No allocation. */
int32_t sampler_pick(struct sampler *s, const struct head_row *row, const int32_t *ids,
                     size_t n_ids);

#endif
