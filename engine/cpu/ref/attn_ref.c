/*
 * Reference for attention over one position block, with keys and values in F16 or in bytes (Q8),
 * and for the merge of position blocks. docs/kernels.md specifies the order of the operations.
 */
#include "engine/base/fp16.h"
#include "engine/cpu/ref/attn_q8.h"
#include "engine/cpu/ref/attn_tokens.h"
#include "engine/cpu/ref/kernels_ref.h"

#include <math.h>

/* The step "position block" of docs/kernels.md for one query head. */
static void head_block(const struct attn_block *b, size_t head)
{
    const float *q = b->q + head * b->head_dim;
    float *o = b->o + head * b->head_dim;
    float z[KV_BLOCK] = {0}, p[KV_BLOCK] = {0};
    const uint16_t *keys = b->k, *values = b->v;

    for (size_t j = b->first_seen; j < b->n_seen; j++)
        for (size_t i = 0; i < b->head_dim; i++)
            z[j] = fmaf(q[i], f16_to_f32(keys[i * KV_BLOCK + j]), z[j]);
    float m = -INFINITY; /* ignores NaN scores, whose p is 0 */
    for (size_t j = b->first_seen; j < b->n_seen; j++)
        if (z[j] > m)
            m = z[j];
    m = m + 0.0f; /* -0 becomes +0, because instructions for the maximum of -0 and +0 may return
                     either */
    for (size_t j = b->first_seen; j < b->n_seen; j++)
        p[j] = exp0_ref(z[j] - m);
    for (size_t i = 0; i < b->head_dim; i++) {
        o[i] = 0.0f;
        for (size_t j = b->first_seen; j < b->n_seen; j++)
            o[i] = fmaf(p[j], f16_to_f32(values[j * b->v_stride + i]), o[i]);
    }
    b->m[head] = m;
    b->l[head] = sum64_tree_ref(p);
}

void attn_block_ref(const struct attn_block *b)
{
    for (size_t head = 0; head < b->n_q; head++)
        head_block(b, head);
}

void attn_merge_ref(float *big_m, float *big_l, float *big_o, const float *m, const float *l,
                    const float *o, size_t head_dim)
{
    const float top = *m > *big_m ? *m : *big_m;
    const float a = exp0_ref(*big_m - top), b = exp0_ref(*m - top);
    *big_l = fmaf(*l, b, *big_l * a);
    for (size_t i = 0; i < head_dim; i++)
        big_o[i] = fmaf(o[i], b, big_o[i] * a);
    *big_m = top;
}

void attn_finish_ref(const float *big_o, float big_l, size_t head_dim, float *out)
{
    const float r = 1.0f / big_l;
    for (size_t i = 0; i < head_dim; i++)
        out[i] = big_o[i] * r;
}

void attn_tile_ref(const struct attn_tile *a)
{
    attn_tile_by_token(a, attn_block_ref, attn_merge_ref);
}

static float to_fixed_ref(const float *x, size_t n, struct attn_fixed *out)
{
    float most = FIXED_MIN;
    for (size_t i = 0; i < n; i++)
        if (fabsf(x[i]) > most)
            most = fabsf(x[i]);
    const float scale = FIXED_MAX / most;
    for (size_t i = 0; i < size_round_up(n, ATTN_QUAD); i++) {
        const float y = i < n ? x[i] * scale : 0.0f;
        out->x[i] = isnan(y) ? 0 : (int16_t)rintf(y);
    }
    return most / FIXED_MAX;
}

static void sums_ref(const struct attn_quads *w, int n_heads, size_t lane0, size_t n,
                     int32_t out[Q8_HEADS][KV_BLOCK])
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

static void softmax_ref(float z[KV_BLOCK], size_t n_seen, float *m, float *l)
{
    float top = -INFINITY, lanes[KV_BLOCK]; /* sum64_tree_ref overwrites lanes */
    for (size_t j = 0; j < n_seen; j++)
        if (z[j] > top)
            top = z[j];
    top = top + 0.0f; /* -0 becomes +0, as in head_block */
    for (size_t j = 0; j < KV_BLOCK; j++)
        lanes[j] = z[j] = j < n_seen ? exp0_ref(z[j] - top) : 0.0f;
    *m = top;
    *l = sum64_tree_ref(lanes);
}

void attn_block_q8_ref(const struct attn_block *b)
{
    attn_q8_block(b, (struct attn_q8_loops){to_fixed_ref, sums_ref, softmax_ref});
}

void attn_tile_q8_ref(const struct attn_tile *a)
{
    attn_tile_by_token(a, attn_block_q8_ref, attn_merge_ref);
}
