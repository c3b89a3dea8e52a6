/*
 * The size of the rings of a model.
 */
#include "engine/layout/window_ring.h"

#include "engine/base/size.h"

struct window_ring window_ring_of(const struct model *m, size_t n_ubatch, size_t block_positions)
{
    struct window_ring r = {0};
    for (size_t i = 0; i < m->hp.n_layers; i++) {
        const size_t window = m->layers[i].traits.n_visible_keys;
        r.n_layers += window > 0;
        r.n_before = size_max(r.n_before, window - size_min(window, 1)); /* 0 without a window */
    }
    if (r.n_layers == 0 || r.n_before >= m->hp.n_ctx_train)
        return (struct window_ring){0};
    r.n_blocks = (r.n_before + n_ubatch + block_positions - 1) / block_positions;
    return r.n_blocks * block_positions < m->hp.n_ctx_train ? r : (struct window_ring){0};
}
