/*
 * The engine as the worker sees it: open, ask for the next token, and nothing else.
 *
 * One step hands over every id that the session shall hold and gets the id that follows; the
 * session keeps what it has of them, so a first step reads the new part of a prompt and each later
 * step one token. All functions run on the worker's thread. Tests put a scripted generator in its
 * place.
 */
#ifndef APP_GENERATOR_H
#define APP_GENERATOR_H

#include "app/options/chat_options.h"
#include "engine/engine.h"
#include "engine/sampler.h"
#include "engine/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct generator;

/* Model, session of n_ctx tokens (0: the model's training context) and sampler. Errors of
 * bn_model_open, bn_session_open and sampler_open. */
bool generator_open(const struct bn_file *file, const struct bn_model_config *cfg, size_t n_ctx,
                    struct generator **out, struct bn_error *err);
void generator_close(struct generator *g); /* NULL is fine */

const struct bn_model_info *generator_info(const struct generator *g);
size_t generator_n_ctx(const struct generator *g);
/* As bn_model_explain. */
size_t generator_explain(const struct generator *g, size_t n_sequences, size_t n_tokens, char *text,
                         size_t text_bytes);

/* As bn_model_bytes_read: what all steps together have read from memory. */
uint64_t generator_bytes_read(const struct generator *g);
/* What the device can do at all, measured now, in a fraction of a second; 0: not known. */
struct generator_peaks {
    double read_bytes_per_s;
    double macs_per_s; /* multiply-adds of bytes */
};
struct generator_peaks generator_measure(struct generator *g);

/* How to choose, and how many alternatives to each choice generator_alts shall know (at most
 * GENERATOR_MAX_ALTS); with 0 the head works out no more than the choice needs. The ids chosen are
 * the same either way. BN_EARG: a value out of range; the old settings stay. */
#define GENERATOR_MAX_ALTS 20
bool generator_set(struct generator *g, const struct sampler_params *params, size_t n_alts,
                   struct bn_error *err);

/* Speculate in generator_step from now on, or not; the ids chosen are the same. What has been
 * learned stays while the mode stays. Steps whose alternatives are wanted never speculate. */
void generator_speculate(struct generator *g, enum spec_mode mode);
struct spec_stats generator_spec_stats(const struct generator *g);

/* Make the session hold ids (n_ids >= 1) and choose what follows. Errors of bn_session_sync. With
 * speculation it may hold more. */
bool generator_step(struct generator *g, const int32_t *ids, size_t n_ids,
                    const struct bn_control *control, struct bn_sync_stats *stats, int32_t *next,
                    struct bn_error *err);

struct generator_alt {
    int32_t id;    /* -1: the vocabulary is that small */
    float logprob; /* natural logarithm, of the unmodified distribution */
};
/* Of the last step: the n_alts best ids, best first, then the chosen one. out (n_alts + 1).
 * Evaluates nothing. */
void generator_alts(const struct generator *g, struct generator_alt *out);

/* What the session holds, and those bytes as bn_session_save writes and bn_session_load takes them;
 * see there for errors. generator_cut forgets all ids but the first n_keep. */
const int32_t *generator_ids(const struct generator *g, size_t *n_ids);
const char *generator_kv_version(const struct generator *g);
bool generator_save(struct generator *g, const struct bn_stream *out, struct bn_error *err);
bool generator_load(struct generator *g, const struct bn_stream *in, struct bn_error *err);
void generator_cut(struct generator *g, size_t n_keep);

/* Independent prompts side by side: a lane has its own session and sampler, and what comes out of
 * it depends on no other lane. Errors as above; a lane is closed before its generator. */
struct generator_lane;
bool generator_lane_open(struct generator *g, struct generator_lane **out, struct bn_error *err);
void generator_lane_close(struct generator_lane *lane); /* NULL is fine */
bool generator_lane_set(struct generator_lane *lane, const struct sampler_params *params,
                        size_t n_alts, struct bn_error *err);
void generator_lane_alts(const struct generator_lane *lane, struct generator_alt *out);
/* As generator_step, for one lane. */
bool generator_lane_read(struct generator_lane *lane, const int32_t *ids, size_t n_ids,
                         const struct bn_control *control, struct bn_sync_stats *stats,
                         int32_t *next, struct bn_error *err);
/* How many lanes there is room for, from 1 to 16, as bn_model_batch says. */
size_t generator_batch(const struct generator *g);
struct generator_step {
    struct generator_lane *lane;
    const int32_t *ids; /* (n_ids) the lane holds all but the last */
    size_t n_ids;
    int32_t next; /* chosen */
};
/* One token for each of at most CHAT_BATCH_MAX lanes, in one pass over the weights. */
bool generator_lanes_step(struct generator_step *steps, size_t n_steps,
                          const struct bn_control *control, struct bn_error *err);

#endif
