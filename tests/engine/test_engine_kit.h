/*
 * Shared helpers of the engine tests: a synthetic model opened through the public interface, and
 * the logits of a list of tokens. A failure ends the test.
 */
#ifndef TESTS_ENGINE_TEST_ENGINE_KIT_H
#define TESTS_ENGINE_TEST_ENGINE_KIT_H

#include "engine/engine.h"
#include "tests/support/synth.h"

#include <stdbool.h>

struct kit {
    struct synth_model synth;
    struct bn_model *model;
    struct bn_session *session;
    size_t n_vocab;
};

/* Read the arguments of a test program: --thin N runs only one of N cases of the long lists. It is
 * for emulated processors. N should have no common factor with the lengths of the lists, so that
 * each entry of a list runs for some model. Exits with 2 after an unknown argument. */
void kit_read_arguments(int argc, char **argv);
/* Count a case of a long list. Returns whether it should run. */
bool kit_takes_case(void);

/* Whether this machine has the instruction set `isa`, a name that bn_model_open knows. */
bool kit_isa_runs_here(const char *isa);

/* cfg may be NULL: defaults with 2 threads. The session has the training context of the model. */
void kit_open(struct kit *kit, const struct synth_spec *spec, const struct bn_model_config *cfg);
void kit_close(struct kit *kit);

/* Open another session. Close it with bn_session_close. */
struct bn_session *kit_session(const struct kit *kit, size_t n_ctx);

/* Write bos (256) and n - 1 pseudo-random ids of bytes (0 .. 255), another list for each seed. */
void kit_ids(int32_t *ids, size_t n, uint32_t seed);

/* n_rows rows, each with capacity for the whole vocabulary. Free with kit_free_rows. */
struct head_row *kit_rows(const struct kit *kit, size_t n_rows);
void kit_free_rows(struct head_row *rows, size_t n_rows);

/* Append ids to s and write all logits of each to out (n_ids, n_vocab). */
void kit_append(const struct kit *kit, struct bn_session *s, const int32_t *ids, size_t n_ids,
                float *out);
/* Return all logits (n_ids, n_vocab) of ids in an empty session. Free with mem_free. */
float *kit_logits(const struct kit *kit, const int32_t *ids, size_t n_ids);
/* The same with a model that is open only during the call. */
float *kit_logits_of(const struct synth_spec *spec, const struct bn_model_config *cfg,
                     const int32_t *ids, size_t n_ids);

#endif
