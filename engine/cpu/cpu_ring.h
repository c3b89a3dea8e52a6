/*
 * The memory of rings (engine/layout/window_ring.h), and the windows in saved states. Both have
 * position blocks in the format of the KV cache. At the end of the text, a place of a ring can hold
 * the first positions of a new block and the last positions of the block that was there before.
 */
#ifndef ENGINE_CPU_CPU_RING_H
#define ENGINE_CPU_CPU_RING_H

#include "engine/cpu/cpu_state.h"

/* Most bytes of the rings of a sequence (fewer with a short n_ctx), and bytes of the windows in one
 * saved state. False: too large. */
bool ring_bytes(const struct cpu_shape *s, const struct hparams *hp, size_t *seq_fixed_bytes,
                size_t *state_bytes);

struct ring {
    struct mem_map map;
    struct ring_contents contents; /* n_blocks 0: there is no ring */
    size_t block_bytes;            /* of a position block of all layers with a ring */
};

/* Reserve the rings of a sequence of n_ctx positions. *r must be zeros; it stays so if the model
 * has no rings. BN_ENOMEM. */
bool ring_open(struct ring *r, const struct backend *b, size_t n_ctx, struct bn_error *err);
void ring_close(struct ring *r); /* also accepts a struct of zeros */

/* Bytes of the windows in a saved state, 0 without rings. */
size_t ring_state_bytes(const struct ring *r, const struct backend *b);

/* Copy the window before `length` to or from a saved state (ring_state_bytes). ring_save sets the
 * bytes of other positions to 0; after ring_load the ring holds no other positions. Without rings
 * nothing is copied. */
void ring_save(const struct ring *r, const struct backend *b, size_t length, void *to);
void ring_load(struct ring *r, const struct backend *b, size_t length, const void *from);

#endif
