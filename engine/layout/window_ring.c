/*
 * The size and the contents of rings: see window_ring.h.
 */
#include "engine/layout/window_ring.h"

struct window_ring window_ring_of(const struct model *m, size_t n_ubatch)
{
    struct window_ring r = {0};
    for (size_t i = 0; i < m->hp.n_layers; i++) {
        const size_t window = m->layers[i].traits.n_visible_keys;
        r.n_layers += window > 0;
        r.n_before = size_max(r.n_before, window - size_min(window, 1)); /* 0 without a window */
    }
    if (r.n_layers == 0 || r.n_before >= m->hp.n_ctx_train)
        return (struct window_ring){0};
    r.n_blocks = (r.n_before + n_ubatch + KV_BLOCK - 1) / KV_BLOCK;
    return r.n_blocks * KV_BLOCK < m->hp.n_ctx_train ? r : (struct window_ring){0};
}

void ring_begin_write(struct ring_contents *c, size_t n_end)
{
    const size_t n_positions = c->n_blocks * KV_BLOCK;
    if (n_positions > 0 && n_end > n_positions)
        c->first = size_max(c->first, n_end - n_positions);
}

size_t ring_reachable(const struct ring_contents *c, const struct window_ring *r, size_t length,
                      size_t n_keep)
{
    /* The present length needs no test: the ring always holds the window before it. */
    if (n_keep >= length)
        return n_keep;
    const size_t begin = window_begin(r, n_keep);
    /* Then no position before n_keep is needed: n_keep is 0, there are no rings, or a window is
     * only the token itself. */
    const bool is_empty = begin == n_keep;
    return begin >= c->first || is_empty ? n_keep : 0;
}
