/*
 * A backend without weights for tests of sessions: its logits are hashes of its state, so a wrong
 * state shows in every logit. A failure ends the test.
 *
 * A sequence has a recurrent state in two copies, a ring of the last ids, or nothing that needs
 * states; see "Saved states" in docs/architecture.md.
 */
#ifndef TESTS_ENGINE_FAKE_BACKEND_H
#define TESTS_ENGINE_FAKE_BACKEND_H

#include "engine/engine_internal.h"

#define FAKE_VOCAB 64
#define FAKE_UBATCH 32
#define FAKE_WINDOW 24
#define FAKE_SLACK 8

enum fake_kind { FAKE_PLAIN, FAKE_RECURRENT, FAKE_RING };

struct fake {
    struct bn_model model; /* for bn_session_open */
    struct model nothing;
    enum fake_kind kind;
    size_t n_evals;      /* tokens evaluated so far */
    size_t n_until_fail; /* this eval fails, counted from 1; 0: none */
    bool state_save_fails;
};

void fake_open(struct fake *f, enum fake_kind kind);

/* The logits (FAKE_VOCAB) after these ids, computed without a sequence. */
void fake_logits(enum fake_kind kind, const int32_t *ids, size_t n_ids, float *out);

#endif
