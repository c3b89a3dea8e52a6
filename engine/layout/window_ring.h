/*
 * The size of the rings that hold the keys and values of window layers, and the positions that a
 * ring needs. All backends have the same rings, so each can load the states that another has saved.
 *
 * Pure functions; any thread may call them.
 */
#ifndef ENGINE_LAYOUT_WINDOW_RING_H
#define ENGINE_LAYOUT_WINDOW_RING_H

#include "engine/model/model.h"

#include <stddef.h>

/* A ring has room for the window before a position and for a micro-batch after it, rounded up to
 * blocks of positions. All members are 0 without rings. */
struct window_ring {
    size_t n_layers; /* layers with a window */
    size_t n_before; /* most positions that a token sees before its own */
    size_t n_blocks; /* blocks of positions in a ring; a short context needs fewer */
};

/* There are no rings if no layer has a window, or if a ring would be at least as large as the cache
 * of the training context. n_ubatch: most tokens of a pass. block_positions: positions of a block,
 * at least 1. */
struct window_ring window_ring_of(const struct model *m, size_t n_ubatch, size_t block_positions);

/* The first position in the window of the token at position `length`, which follows `length`
 * others. */
static inline size_t window_ring_begin(size_t n_before, size_t length)
{
    return length > n_before ? length - n_before : 0;
}

#endif
