/*
 * The sizes of rings, and the copies between rings and saved states.
 */
#include "engine/cpu/cpu_ring.h"

#include "engine/base/size.h"
#include "engine/layout/window_ring.h"

#include <string.h>

void ring_shape(struct cpu_shape *s, const struct model *m, const struct backend_config *cfg)
{
    struct window_ring r = {0};
    if (!cfg->no_ring)
        r = window_ring_of(m, cfg->n_ubatch, ATTN_BLOCK);
    s->n_ring_layers = r.n_layers;
    s->ring_before = r.n_before;
    s->ring_blocks = r.n_blocks;
}

static size_t n_state_blocks(const struct cpu_shape *s)
{
    return (s->ring_before + ATTN_BLOCK - 1) / ATTN_BLOCK;
}

bool ring_bytes(const struct cpu_shape *s, const struct hparams *hp, size_t *seq_fixed_bytes,
                size_t *state_bytes)
{
    size_t block_bytes;
    return size_mul3(&block_bytes, s->n_ring_layers, hp->n_kv_heads, s->kv_block_bytes) &&
           size_mul(seq_fixed_bytes, block_bytes, s->ring_blocks) &&
           size_mul(state_bytes, block_bytes, n_state_blocks(s));
}

bool ring_open(struct ring *r, const struct backend *b, size_t n_ctx, struct bn_error *err)
{
    const struct cpu_shape *s = &b->shape;
    if (s->ring_blocks == 0)
        return true;
    r->n_blocks = size_min(s->ring_blocks, n_ctx / ATTN_BLOCK + (n_ctx % ATTN_BLOCK != 0));
    r->block_bytes = s->n_ring_layers * b->model->hp.n_kv_heads * s->kv_block_bytes;
    /* No product overflows: ring_bytes has checked larger ones when the model was planned. */
    return mem_map_open(&r->map, r->n_blocks * r->block_bytes, MEM_PAGES_HUGE) ||
           bn_fail(err, BN_ENOMEM, "no memory for the keys and values of window layers");
}

void ring_close(struct ring *r)
{
    mem_map_close(&r->map);
}

void ring_extend(struct ring *r, size_t n_end)
{
    const size_t n_positions = r->n_blocks * ATTN_BLOCK;
    if (n_positions > 0 && n_end > n_positions)
        r->first = size_max(r->first, n_end - n_positions);
}

/* The first position of the window before `length`. */
static size_t window_begin(const struct backend *b, size_t length)
{
    return window_ring_begin(b->shape.ring_before, length);
}

size_t ring_reachable(const struct ring *r, const struct backend *b, size_t n_keep)
{
    const size_t begin = window_begin(b, n_keep);
    /* Then no position before n_keep is needed: n_keep is 0, there are no rings, or a window is
     * only the token itself. */
    const bool is_empty = begin == n_keep;
    return begin >= r->first || is_empty ? n_keep : 0;
}

/* Each of n_rows rows has n_bytes bytes for each of ATTN_BLOCK positions. Copy those of the
 * positions begin .. end - 1. */
static void copy_rows(uint8_t *to, const uint8_t *from, size_t n_rows, size_t n_bytes, size_t begin,
                      size_t end)
{
    for (size_t i = 0; i < n_rows; i++)
        memcpy(to + (i * ATTN_BLOCK + begin) * n_bytes, from + (i * ATTN_BLOCK + begin) * n_bytes,
               (end - begin) * n_bytes);
}

/* Copy the positions begin .. end - 1 of a block of one layer and KV head. */
static void copy_positions(const struct backend *b, uint8_t *to, const uint8_t *from, size_t begin,
                           size_t end)
{
    const struct cpu_shape *s = &b->shape;
    uint8_t *const v = to + s->k_bytes;
    const uint8_t *const from_v = from + s->k_bytes;
    if (b->cfg.kv != BN_KV_Q8) {
        copy_rows(to, from, s->k_bytes / (ATTN_BLOCK * sizeof(uint16_t)), sizeof(uint16_t), begin,
                  end);
        copy_rows(v, from_v, 1, s->v_stride * sizeof(uint16_t), begin, end);
        return;
    }
    copy_rows(to, from, s->k_bytes / (ATTN_BLOCK * ATTN_QUAD), ATTN_QUAD, begin, end);
    for (size_t pos = begin; pos < end; pos++) /* four positions of an element are adjacent */
        for (size_t i = 0; i < s->v_stride; i++) {
            const size_t at = (pos / ATTN_QUAD * s->v_stride + i) * ATTN_QUAD + pos % ATTN_QUAD;
            v[at] = from_v[at];
        }
    copy_rows(v + s->v_bytes, from_v + s->v_bytes, 2, sizeof(float), begin, end);
}

/* Copy the window before `length` from n_from blocks to n_to blocks. Block i of the sequence
 * is block i % n_from of `from` and block i % n_to of `to`. */
static void copy_window(const struct backend *b, size_t length, uint8_t *to, size_t n_to,
                        const uint8_t *from, size_t n_from)
{
    const size_t n_heads = b->shape.n_ring_layers * b->model->hp.n_kv_heads; /* of all layers */
    const size_t head_bytes = b->shape.kv_block_bytes, block_bytes = n_heads * head_bytes;
    for (size_t pos = window_begin(b, length), end; pos < length; pos = end) {
        const size_t block = pos / ATTN_BLOCK, block0 = block * ATTN_BLOCK;
        uint8_t *const at = to + block % n_to * block_bytes;
        const uint8_t *const source = from + block % n_from * block_bytes;
        end = size_min(length, block0 + ATTN_BLOCK);
        if (end - pos == ATTN_BLOCK)
            memcpy(at, source, block_bytes);
        else
            for (size_t i = 0; i < n_heads; i++)
                copy_positions(b, at + i * head_bytes, source + i * head_bytes, pos - block0,
                               end - block0);
    }
}

size_t ring_state_bytes(const struct ring *r, const struct backend *b)
{
    return n_state_blocks(&b->shape) * r->block_bytes;
}

void ring_save(const struct ring *r, const struct backend *b, size_t length, void *to)
{
    const size_t n_blocks = n_state_blocks(&b->shape);
    if (n_blocks == 0)
        return;
    memset(to, 0, n_blocks * r->block_bytes);
    copy_window(b, length, to, n_blocks, r->map.ptr, r->n_blocks);
}

void ring_load(struct ring *r, const struct backend *b, size_t length, const void *from)
{
    const size_t n_blocks = n_state_blocks(&b->shape);
    r->first = window_begin(b, length);
    if (n_blocks > 0)
        copy_window(b, length, r->map.ptr, r->n_blocks, from, n_blocks);
}
