/*
 * Which layers have rings, and the copies between rings and saved states.
 *
 * A state is copied block by block through host.ring_block. This happens only between passes, so
 * no kernel uses the ring meanwhile.
 */
#include "engine/cuda/cuda_ring.h"

#include "engine/base/size.h"

#include <string.h>

/* Elements of a position block of all layers with a ring. */
static size_t block_elems(const struct backend *b)
{
    return b->shape.ring_kv.block_elems;
}

/* Copies the positions begin to end - 1 of a position block, for all layers and KV heads. Keys are
 * (head_dim, KV_BLOCK), values (KV_BLOCK, v_stride). */
static void copy_positions(const struct backend *b, uint16_t *to, const uint16_t *from,
                           size_t begin, size_t end)
{
    const struct kv_shape *kv = &b->shape.ring_kv;
    const size_t n = (end - begin) * sizeof *to, values = kv->head_dim * (size_t)KV_BLOCK;
    for (size_t head = 0; head < kv->block_elems; head += kv->head_elems) {
        for (size_t at = head + begin; at < head + values; at += KV_BLOCK)
            memcpy(to + at, from + at, n);
        const size_t at = head + values + begin * kv->v_stride;
        memcpy(to + at, from + at, n * kv->v_stride);
    }
}

/* The part of a window in position block `block`: positions begin to end - 1 of the block. */
struct part {
    size_t block, begin, end;
};

/* The part that starts at position `pos` of the sequence; the window ends before `length`. */
static struct part part_at(size_t pos, size_t length)
{
    const size_t block = pos / KV_BLOCK;
    return (struct part){block, pos % KV_BLOCK, size_min(length - block * KV_BLOCK, KV_BLOCK)};
}

/* Device address of position block `block` of the sequence. */
static CUdeviceptr ring_at(const struct seq *s, size_t block)
{
    return s->ring + block % s->contents.n_blocks * block_elems(s->backend) * sizeof(uint16_t);
}

bool cuda_ring_save(const struct seq *s, void *to, struct bn_error *err)
{
    struct backend *b = s->backend;
    struct cuda_driver *d = &b->device.driver;
    uint16_t *const block = b->host.ring_block;
    const size_t n_blocks = window_state_blocks(&b->shape.ring);
    if (n_blocks == 0)
        return true;
    memset(to, 0, n_blocks * block_elems(b) * sizeof *block);
    size_t pos = window_begin(&b->shape.ring, s->length);
    while (pos < s->length) {
        const struct part p = part_at(pos, s->length);
        if (!cuda_ok(d, d->cuMemcpyDtoH(block, ring_at(s, p.block), block_elems(b) * sizeof *block),
                     "reading a ring of keys and values", err))
            return false;
        copy_positions(b, (uint16_t *)to + p.block % n_blocks * block_elems(b), block, p.begin,
                       p.end);
        pos += p.end - p.begin;
    }
    return true;
}

bool cuda_ring_load(struct seq *s, size_t length, const void *from, struct bn_error *err)
{
    struct backend *b = s->backend;
    struct cuda_driver *d = &b->device.driver;
    uint16_t *const block = b->host.ring_block;
    const CUstream stream = b->device.stream;
    const size_t n_blocks = window_state_blocks(&b->shape.ring),
                 n_bytes = block_elems(b) * sizeof *block;
    if (n_blocks == 0)
        return true;
    s->contents.first = window_begin(&b->shape.ring, length);
    for (size_t pos = s->contents.first; pos < length;) {
        const struct part p = part_at(pos, length);
        /* The first and the last block may share a place, each with some of its positions. So read
         * the place first and change only the positions of this part. */
        if (!cuda_ok(d, d->cuMemcpyDtoH(block, ring_at(s, p.block), n_bytes),
                     "reading a ring of keys and values", err))
            return false;
        copy_positions(b, block, (const uint16_t *)from + p.block % n_blocks * block_elems(b),
                       p.begin, p.end);
        if (!cuda_ok(d, d->cuMemcpyHtoDAsync(ring_at(s, p.block), block, n_bytes, stream),
                     "filling a ring of keys and values", err) ||
            !cuda_ok(d, d->cuStreamSynchronize(stream), "filling a ring of keys and values", err))
            return false;
        pos += p.end - p.begin;
    }
    return true;
}

void cuda_kv_number(struct backend *b)
{
    size_t n_rings = 0, n_caches = 0;
    for (size_t i = 0; i < b->model->hp.n_layers; i++) {
        const struct layer *from = &b->model->layers[i];
        struct cuda_layer *l = &b->layers[i];
        if (from->traits.is_delta_net) /* has no keys and values */
            continue;
        l->has_ring = layer_has_ring(&b->shape.ring, from);
        l->kv_index = l->has_ring ? n_rings++ : n_caches++;
    }
}
