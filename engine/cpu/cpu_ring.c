/*
 * The memory of rings, and the copies between rings and saved states.
 */
#include "engine/cpu/cpu_ring.h"

#include "engine/base/size.h"

#include <string.h>

bool ring_bytes(const struct cpu_shape *s, const struct hparams *hp, size_t *seq_fixed_bytes,
                size_t *state_bytes)
{
    size_t block_bytes;
    return size_mul3(&block_bytes, s->ring.n_layers, hp->n_kv_heads, s->kv_block_bytes) &&
           size_mul(seq_fixed_bytes, block_bytes, s->ring.n_blocks) &&
           size_mul(state_bytes, block_bytes, window_state_blocks(&s->ring));
}

bool ring_open(struct ring *r, const struct backend *b, size_t n_ctx, struct bn_error *err)
{
    const struct cpu_shape *s = &b->shape;
    if (s->ring.n_blocks == 0)
        return true;
    r->contents.n_blocks = window_ring_blocks(&s->ring, n_ctx);
    r->block_bytes = s->ring.n_layers * b->model->hp.n_kv_heads * s->kv_block_bytes;
    /* No product overflows: ring_bytes has checked larger ones when the model was planned. */
    return mem_map_open(&r->map, r->contents.n_blocks * r->block_bytes, MEM_PAGES_HUGE) ||
           bn_fail(err, BN_ENOMEM, "no memory for the keys and values of window layers");
}

void ring_close(struct ring *r)
{
    mem_map_close(&r->map);
}

/* Each of n_rows rows has n_bytes bytes for each of KV_BLOCK positions. Copy those of the
 * positions begin .. end - 1. */
static void copy_rows(uint8_t *to, const uint8_t *from, size_t n_rows, size_t n_bytes, size_t begin,
                      size_t end)
{
    for (size_t i = 0; i < n_rows; i++)
        memcpy(to + (i * KV_BLOCK + begin) * n_bytes, from + (i * KV_BLOCK + begin) * n_bytes,
               (end - begin) * n_bytes);
}

/* Copy the positions begin .. end - 1 of a position block of one layer and KV head. */
static void copy_positions(const struct backend *b, uint8_t *to, const uint8_t *from, size_t begin,
                           size_t end)
{
    const struct cpu_shape *s = &b->shape;
    uint8_t *const v = to + s->k_bytes;
    const uint8_t *const from_v = from + s->k_bytes;
    if (b->cfg.kv != BN_KV_Q8) {
        copy_rows(to, from, s->k_bytes / (KV_BLOCK * sizeof(uint16_t)), sizeof(uint16_t), begin,
                  end);
        copy_rows(v, from_v, 1, s->widths.v_stride * sizeof(uint16_t), begin, end);
        return;
    }
    copy_rows(to, from, s->k_bytes / (KV_BLOCK * ATTN_QUAD), ATTN_QUAD, begin, end);
    for (size_t pos = begin; pos < end; pos++) /* four positions of an element are adjacent */
        for (size_t i = 0; i < s->widths.v_stride; i++) {
            const size_t at =
                (pos / ATTN_QUAD * s->widths.v_stride + i) * ATTN_QUAD + pos % ATTN_QUAD;
            v[at] = from_v[at];
        }
    copy_rows(v + s->v_bytes, from_v + s->v_bytes, 2, sizeof(float), begin, end);
}

/* Copy the window before `length` from n_from position blocks to n_to. Block i of the sequence
 * is block i % n_from of `from` and block i % n_to of `to`. */
static void copy_window(const struct backend *b, size_t length, uint8_t *to, size_t n_to,
                        const uint8_t *from, size_t n_from)
{
    const size_t n_heads = b->shape.ring.n_layers * b->model->hp.n_kv_heads; /* of all layers */
    const size_t head_bytes = b->shape.kv_block_bytes, block_bytes = n_heads * head_bytes;
    for (size_t pos = window_begin(&b->shape.ring, length), end; pos < length; pos = end) {
        const size_t block = pos / KV_BLOCK, block0 = block * KV_BLOCK;
        uint8_t *const at = to + block % n_to * block_bytes;
        const uint8_t *const source = from + block % n_from * block_bytes;
        end = size_min(length, block0 + KV_BLOCK);
        if (end - pos == KV_BLOCK)
            memcpy(at, source, block_bytes);
        else
            for (size_t i = 0; i < n_heads; i++)
                copy_positions(b, at + i * head_bytes, source + i * head_bytes, pos - block0,
                               end - block0);
    }
}

size_t ring_state_bytes(const struct ring *r, const struct backend *b)
{
    return window_state_blocks(&b->shape.ring) * r->block_bytes;
}

void ring_save(const struct ring *r, const struct backend *b, size_t length, void *to)
{
    const size_t n_blocks = window_state_blocks(&b->shape.ring);
    if (n_blocks == 0)
        return;
    memset(to, 0, n_blocks * r->block_bytes);
    copy_window(b, length, to, n_blocks, r->map.ptr, r->contents.n_blocks);
}

void ring_load(struct ring *r, const struct backend *b, size_t length, const void *from)
{
    const size_t n_blocks = window_state_blocks(&b->shape.ring);
    r->contents.first = window_begin(&b->shape.ring, length);
    if (n_blocks > 0)
        copy_window(b, length, r->map.ptr, r->contents.n_blocks, from, n_blocks);
}
