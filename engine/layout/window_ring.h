/*
 * Rings: the keys and values of window layers, of which only the last positions are kept. This file
 * has the size of the rings of a model, and the positions that the ring of a sequence holds. All
 * backends have the same rings, so each can load the states that another has saved.
 *
 * A ring is a row of places, each with room for a position block. Position block i is in place
 * i % n_blocks, so a new block overwrites the block that is n_blocks before it.
 *
 * Pure functions; any thread may call them.
 */
#ifndef ENGINE_LAYOUT_WINDOW_RING_H
#define ENGINE_LAYOUT_WINDOW_RING_H

#include "engine/base/size.h"
#include "engine/layout/layout_units.h"
#include "engine/model/model.h"

#include <stdbool.h>
#include <stddef.h>

/* A ring has room for the window before a position and for a micro-batch after it, rounded up to
 * position blocks. So the positions that a pass overwrites are not in the window before it, even if
 * the pass fails. All members are 0 without rings. */
struct window_ring {
    size_t n_layers; /* layers with a window */
    size_t n_before; /* most positions that a token sees before its own */
    size_t n_blocks; /* places for position blocks; a short context needs fewer */
};

/* There are no rings if no layer has a window, or if a ring would be at least as large as the cache
 * of the training context. n_ubatch: most tokens of a pass. */
struct window_ring window_ring_of(const struct model *m, size_t n_ubatch);

/* Position blocks that hold n positions. */
static inline size_t position_blocks(size_t n)
{
    return n / KV_BLOCK + (n % KV_BLOCK != 0);
}

/* Whether this layer of a model with the rings `r` has one. */
static inline bool layer_has_ring(const struct window_ring *r, const struct layer *l)
{
    return r->n_blocks > 0 && l->traits.n_visible_keys > 0;
}

/* Places in the ring of a sequence of n_ctx positions; 0 without rings. */
static inline size_t window_ring_blocks(const struct window_ring *r, size_t n_ctx)
{
    return size_min(r->n_blocks, position_blocks(n_ctx));
}

/* Places in a saved state, which has only the window before its length: position block i is in
 * place i % n. */
static inline size_t window_state_blocks(const struct window_ring *r)
{
    return position_blocks(r->n_before);
}

/* The first position in the window of the token at position `length`, which follows `length`
 * others. */
static inline size_t window_begin(const struct window_ring *r, size_t length)
{
    return length > r->n_before ? length - r->n_before : 0;
}

/* The ring of one sequence. A struct of zeros: no ring, or an empty one if n_blocks is then set. */
struct ring_contents {
    size_t n_blocks; /* window_ring_blocks */
    size_t first;    /* the ring holds the positions from here to the length of the sequence */
};

/* Record that the positions up to n_end - 1 are written, which overwrites the oldest ones. Call it
 * before a pass: its writes happen even if the pass fails. */
void ring_begin_write(struct ring_contents *c, size_t n_end);

/* n_keep if a sequence can be cut there: its length is at most n_keep, it has no ring, or the ring
 * holds the whole window before n_keep. Otherwise 0. */
size_t ring_reachable(const struct ring_contents *c, const struct window_ring *r, size_t length,
                      size_t n_keep);

#endif
