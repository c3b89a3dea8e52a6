/*
 * What the engine's tests share: a synthetic model opened through the public interface, and the
 * logits of a list of tokens. Everything asserts; nothing returns an error.
 */
#ifndef TESTS_ENGINE_TEST_ENGINE_KIT_H
#define TESTS_ENGINE_TEST_ENGINE_KIT_H

#include "engine/engine.h"
#include "tests/support/synth.h"

struct kit {
    struct synth_model synth;
    struct bn_model *model;
    struct bn_session *session;
    size_t n_vocab;
};

/* cfg NULL: all defaults with 2 threads. The session holds the model's training context. */
void kit_open(struct kit *kit, const struct synth_spec *spec, const struct bn_model_config *cfg);
void kit_close(struct kit *kit);

struct bn_session *kit_session(const struct kit *kit, size_t n_ctx);

/* n tokens of the byte vocabulary, a different list a seed. */
void kit_ids(int32_t *ids, size_t n, uint32_t seed);

/* A row with room for the whole vocabulary; free with kit_free_rows. */
struct head_row *kit_rows(const struct kit *kit, size_t n_rows);
void kit_free_rows(struct head_row *rows, size_t n_rows);

/* Append ids to s and write every logit of every one to out (n_ids, n_vocab). */
void kit_append(const struct kit *kit, struct bn_session *s, const int32_t *ids, size_t n_ids,
                float *out);
/* The same from an empty session. Free with mem_free. */
float *kit_logits(const struct kit *kit, const int32_t *ids, size_t n_ids);

#endif
