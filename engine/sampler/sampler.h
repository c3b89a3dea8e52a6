/*
 * The sampler: chooses the next token id from candidates. Public header.
 *
 * Order of the steps: logit bias; repetition, presence and frequency penalty; top-k; typical;
 * top-p; min-p; temperature; draw. With temp 0 the sampler is greedy: it returns the largest logit
 * after bias and penalties, the lower id if two are equal.
 *
 * The draw depends only on the parameters, the position and the candidates, not on earlier draws.
 * So undo, retry, speculative decoding and a saved chat give the same tokens.
 *
 * One thread at a time may use a sampler. Only sampler_open and sampler_set allocate memory.
 */
#ifndef ENGINE_SAMPLER_H
#define ENGINE_SAMPLER_H

#include "engine/base/error.h"
#include "engine/head.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLER_MAX_BIAS 10000.0

struct sampler_bias {
    int32_t id;
    /* Added to the logit: at most SAMPLER_MAX_BIAS in magnitude, or -INFINITY to ban the id.
     * Several biases of an id are added up. */
    float bias;
};

struct sampler_params {
    float temp;              /* 0 to 100; 0: greedy */
    int32_t top_k;           /* keep the candidates with the k largest logits; 0: off */
    float top_p;             /* total probability of the candidates to keep; above 0 to 1; 1: off */
    float min_p;             /* least probability, as a part of the largest one; 0 to 1; 0: off */
    float typical;           /* as top_p, but keeps the most typical first; above 0 to 1; 1: off */
    float repeat_penalty;    /* above 0 to 1000; divides logits > 0, multiplies others; 1: off */
    float presence_penalty;  /* -1000 to 1000; subtracted if the id is in the window; 0: off */
    float frequency_penalty; /* -1000 to 1000; subtracted per occurrence in the window; 0: off */
    int32_t repeat_last_n;   /* the window of the penalties: last n ids; 0: off, -1: all ids */
    uint64_t seed;
    const struct sampler_bias *biases; /* (n_biases); sampler_set copies them */
    size_t n_biases;
};

struct sampler;

/* Open a sampler with greedy parameters. BN_EARG: n_vocab is 0 or above INT32_MAX. BN_ENOMEM. */
bool sampler_open(size_t n_vocab, struct sampler **out, struct bn_error *err);
void sampler_close(struct sampler *s); /* s may be NULL */

/* Replace all parameters. BN_EARG: a value is out of range. BN_ENOMEM. After an error the old
 * parameters remain. */
bool sampler_set(struct sampler *s, const struct sampler_params *params, struct bn_error *err);

/* Write the request for logits after the context `ids`, and the row to receive them. Ids outside
 * the vocabulary have no effect. request->ids and *row are memory of the sampler: the ids are valid
 * until the next call with this sampler, the row until the next sampler_request. */
void sampler_request(struct sampler *s, const int32_t *ids, size_t n_ids,
                     struct head_request *request, struct head_row **row);

/* Write one request that serves n_draft + 1 contexts: the first n_ids - n_draft ids, the first
 * n_ids - n_draft + 1, and so on up to all n_ids. The caller provides the rows, each with capacity
 * n_vocab. request->ids is as above. */
void sampler_request_draft(struct sampler *s, const int32_t *ids, size_t n_ids, size_t n_draft,
                           struct head_request *request);

/* Choose the id that follows `ids`. `row` has the result (at least one candidate) of the request
 * that sampler_request or sampler_request_draft wrote, or of HEAD_ALL, which leads to the same id.
 * If all candidates are banned, the first one is chosen. */
int32_t sampler_pick(struct sampler *s, const struct head_row *row, const int32_t *ids,
                     size_t n_ids);

#endif
