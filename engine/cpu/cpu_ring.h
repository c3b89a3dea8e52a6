/*
 * Rings: the keys and values of window layers, of which only the last positions are kept.
 *
 * A ring has the same position blocks as the KV cache, and block i is in place i % n_blocks. So a
 * place can hold the first positions of a block and the last positions of the block n_blocks before
 * it. A ring has room for the window before a position and a micro-batch after it, rounded up to
 * blocks. A pass that fails has overwritten at most a micro-batch of positions, none of which the
 * old length needs.
 *
 * A saved state has the window before the length in n = ceil(ring_before / ATTN_BLOCK) blocks of
 * the same format: position i is in block (i / ATTN_BLOCK) % n, at place i % ATTN_BLOCK.
 */
#ifndef ENGINE_CPU_CPU_RING_H
#define ENGINE_CPU_CPU_RING_H

#include "engine/cpu/cpu_state.h"

/* Set the members n_ring_layers, ring_before and ring_blocks of a shape. They are 0 without rings:
 * if no layer has a window, if cfg->no_ring is set, or if a ring would be at least as large as the
 * cache of the training context. */
void ring_shape(struct cpu_shape *s, const struct model *m, const struct backend_config *cfg);

/* Most bytes of the rings of a sequence (fewer with a short n_ctx), and bytes of the windows in one
 * saved state. False: too large. */
bool ring_bytes(const struct cpu_shape *s, const struct hparams *hp, size_t *seq_fixed_bytes,
                size_t *state_bytes);

struct ring {
    struct mem_map map;
    size_t n_blocks, block_bytes; /* a block holds all layers with a ring; 0: there are none */
    size_t first;                 /* the ring holds the positions from here to the length */
};

/* Reserve the rings of a sequence of n_ctx positions. *r must be zeros; it stays so if the model
 * has no rings. BN_ENOMEM. */
bool ring_open(struct ring *r, const struct backend *b, size_t n_ctx, struct bn_error *err);
void ring_close(struct ring *r); /* also accepts a struct of zeros */

/* Record that positions up to n_end - 1 will be written, which overwrites the oldest ones. Does
 * nothing without rings. */
void ring_extend(struct ring *r, size_t n_end);

/* n_keep if the ring holds the whole window before it or there are no rings, else 0. */
size_t ring_reachable(const struct ring *r, const struct backend *b, size_t n_keep);

/* Bytes of the windows in a saved state, 0 without rings. */
size_t ring_state_bytes(const struct ring *r, const struct backend *b);

/* Copy the window before `length` to or from a saved state (ring_state_bytes). ring_save sets the
 * bytes of other positions to 0; after ring_load the ring holds no other positions. Without rings
 * nothing is copied. */
void ring_save(const struct ring *r, const struct backend *b, size_t length, void *to);
void ring_load(struct ring *r, const struct backend *b, size_t length, const void *from);

#endif
