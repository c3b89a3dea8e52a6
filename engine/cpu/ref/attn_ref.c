/*
 * Attention over one block of positions, and the folding of blocks: scores, softmax, weighted
 * values.
 */
#include "engine/base/fp16.h"
#include "engine/cpu/ref/attn_tokens.h"
#include "engine/cpu/ref/kernels_ref.h"

#include <math.h>

static void head_block(const struct attn_block *b, size_t head)
{
    const float *q = b->q + head * b->head_dim;
    float *o = b->o + head * b->head_dim;
    float z[ATTN_BLOCK] = {0}, p[ATTN_BLOCK] = {0};
    const uint16_t *keys = b->k, *values = b->v;

    for (size_t j = 0; j < b->n_seen; j++)
        for (size_t i = 0; i < b->head_dim; i++)
            z[j] = fmaf(q[i], f16_to_f32(keys[i * ATTN_BLOCK + j]), z[j]);
    float m = z[0];
    for (size_t j = 1; j < b->n_seen; j++)
        if (z[j] > m)
            m = z[j];
    m = m + 0.0f; /* -0 becomes +0: which of two zeros is the greater depends on nothing */
    for (size_t j = 0; j < b->n_seen; j++)
        p[j] = exp0_ref(z[j] - m);
    for (size_t i = 0; i < b->head_dim; i++) {
        o[i] = 0.0f;
        for (size_t j = 0; j < b->n_seen; j++)
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
