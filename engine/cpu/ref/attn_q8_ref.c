/*
 * Attention over a block of bytes, the plain loops.
 */
#include "engine/cpu/ref/attn_q8.h"

#include "engine/cpu/ref/attn_tokens.h"
#include "engine/cpu/ref/kernels_ref.h"

#include <math.h>

static float fix_ref(const float *x, size_t n, struct attn_fixed *out)
{
    float most = FIXED_LEAST;
    for (size_t i = 0; i < n; i++)
        if (fabsf(x[i]) > most)
            most = fabsf(x[i]);
    const float scale = FIXED_MOST / most;
    for (size_t i = 0; i < size_round_up(n, ATTN_QUAD); i++) {
        const float y = i < n ? x[i] * scale : 0.0f;
        out->x[i] = isnan(y) ? 0 : (int16_t)rintf(y);
    }
    return most / FIXED_MOST;
}

static void sums_ref(const struct attn_quads *w, int n_heads, size_t lane0, size_t n,
                     int32_t out[Q8_HEADS][ATTN_BLOCK])
{
    for (int h = 0; h < n_heads; h++)
        for (size_t i = 0; i < n; i++) {
            out[h][i] = 0;
            for (size_t quad = 0; quad < w->n_quads; quad++)
                for (size_t j = 0; j < ATTN_QUAD; j++)
                    out[h][i] += w->bytes[(quad * w->n_lanes + lane0 + i) * ATTN_QUAD + j] *
                                 w->x[h].x[quad * ATTN_QUAD + j];
        }
}

static void softmax_ref(float z[ATTN_BLOCK], size_t n_seen, float *m, float *l)
{
    float top = z[0], lanes[ATTN_BLOCK];
    for (size_t j = 1; j < n_seen; j++)
        if (z[j] > top)
            top = z[j];
    top = top + 0.0f; /* -0 becomes +0, as in attn_ref.c */
    for (size_t j = 0; j < ATTN_BLOCK; j++)
        lanes[j] = z[j] = j < n_seen ? exp0_ref(z[j] - top) : 0.0f;
    *m = top;
    *l = sum64_tree_ref(lanes); /* in place */
}

void attn_block_q8_ref(const struct attn_block *b)
{
    attn_q8_block(b, (struct attn_q8_loops){fix_ref, sums_ref, softmax_ref});
}

void attn_tile_q8_ref(const struct attn_tile *a)
{
    attn_tile_by_token(a, attn_block_q8_ref, attn_merge_ref);
}
