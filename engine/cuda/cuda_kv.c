/*
 * Opens, saves and restores a KV cache on the device. A position block has the same bytes as in the
 * CPU backend, so either backend can load a saved cache.
 */
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/cuda/cuda_state.h"
#include "engine/model/rope.h"

#include <string.h>

static bool fail_memory(struct backend *b, size_t n_ctx, size_t n_bytes, struct bn_error *err)
{
    struct cuda_driver *d = &b->device.driver;
    const struct backend_plan *plan = &b->info.plan;
    size_t n_free = 0, n_total = 0;
    if (!cuda_ok(d, d->cuMemGetInfo(&n_free, &n_total), "reading the free GPU memory", err))
        return false;
    const size_t n_fit = n_free / (b->shape.block_bytes + b->shape.slot_bytes) * KV_BLOCK;
    return bn_fail(err, BN_ENOMEM,
                   "a context of %zu tokens needs %.0f MB of GPU memory for its KV cache; "
                   "%.0f MB are used for weights and %.0f MB for scratch, %.0f MB are free: "
                   "--ctx %zu would fit",
                   n_ctx, (double)n_bytes / MEGA, (double)plan->weight_bytes / MEGA,
                   (double)plan->scratch_bytes / MEGA, (double)n_free / MEGA, n_fit);
}

bool cuda_kv_open(struct backend *b, size_t n_ctx, struct seq **out, struct bn_error *err)
{
    struct cuda_driver *d = &b->device.driver;
    const size_t n_blocks = n_ctx / KV_BLOCK + (n_ctx % KV_BLOCK != 0);
    size_t n_bytes, kv_bytes;
    if (n_ctx < 1 || n_ctx > INT32_MAX || !size_mul(&kv_bytes, n_blocks, b->shape.block_bytes) ||
        !size_mul(&n_bytes, n_blocks, b->shape.block_bytes + b->shape.slot_bytes))
        return bn_fail(err, BN_EARG, "a context of %zu tokens is too large", n_ctx);
    if (!cuda_enter(&b->device, err))
        return false;
    struct seq *s = mem_alloc(1, sizeof *s);
    if (!s)
        return bn_fail(err, BN_ENOMEM, "no memory for a sequence");
    s->backend = b;
    s->n_ctx = n_ctx;
    s->rope_freq = b->rope_freq + (rope_is_long(b->model, n_ctx) ? b->model->hp.n_rot / 2 : 0);
    const CUresult result = d->cuMemAlloc(&s->memory, n_bytes);
    s->slots = s->memory + kv_bytes;
    bool ok = result == CUDA_ERROR_OUT_OF_MEMORY
                  ? fail_memory(b, n_ctx, n_bytes, err)
                  : cuda_ok(d, result, "GPU memory for the KV cache", err);
    /* Zeros, so that a saved cache never contains earlier contents of this memory. */
    ok = ok && cuda_ok(d, d->cuMemsetD8(s->memory, 0, n_bytes), "clearing GPU memory", err);
    if (!ok) {
        if (result != CUDA_SUCCESS)
            s->memory = 0;
        cuda_kv_close(s);
        return false;
    }
    *out = s;
    return true;
}

void cuda_kv_close(struct seq *s)
{
    struct bn_error err;
    if (!s)
        return;
    if (s->memory &&
        cuda_enter(&s->backend->device, &err)) /* for a lost device there is nothing to free */
        (void)s->backend->device.driver.cuMemFree(s->memory); /* nobody can use it after an error */
    mem_free(s);
}

size_t cuda_kv_reachable(const struct seq *s, size_t n_keep)
{
    (void)s; /* the cache holds all positions */
    return n_keep;
}

void cuda_kv_truncate(struct seq *s, size_t n_keep)
{
    if (n_keep < s->length)
        s->length = n_keep;
}

bool cuda_kv_state_save(struct seq *s, void *to)
{
    (void)s; /* no state besides the positions */
    (void)to;
    return true;
}

bool cuda_kv_state_load(struct seq *s, const void *from, size_t length)
{
    (void)from;
    cuda_kv_truncate(s, length);
    return true;
}

/* Clears positions n and later of a block, so that a saved cache depends only on the tokens. */
static void clear_positions(const struct backend *b, uint16_t *block, size_t n)
{
    const struct hparams *hp = &b->model->hp;
    const size_t v_stride = b->shape.kv.v_stride;
    for (size_t head = 0; head < hp->n_layers * hp->n_kv_heads; head++) {
        uint16_t *keys = block + head * b->shape.kv.head_elems;
        uint16_t *values = keys + hp->head_dim * KV_BLOCK;
        for (size_t i = 0; i < hp->head_dim; i++)
            memset(keys + i * KV_BLOCK + n, 0, (KV_BLOCK - n) * sizeof *keys);
        memset(values + n * v_stride, 0, (KV_BLOCK - n) * v_stride * sizeof *values);
    }
}

bool cuda_kv_save(struct seq *s, const struct bn_stream *out, struct bn_error *err)
{
    struct backend *b = s->backend;
    struct cuda_driver *d = &b->device.driver;
    const size_t block_bytes = b->shape.block_bytes;
    uint16_t *block = mem_alloc(block_bytes, 1);
    bool ok = block ? cuda_enter(&b->device, err)
                    : bn_fail(err, BN_ENOMEM, "no memory to save %zu tokens", s->length);
    for (size_t pos = 0; ok && pos < s->length; pos += KV_BLOCK) {
        ok = cuda_ok(d,
                     d->cuMemcpyDtoH(block, s->memory + pos / KV_BLOCK * block_bytes, block_bytes),
                     "reading the KV cache", err);
        if (ok && s->length - pos < KV_BLOCK)
            clear_positions(b, block, s->length - pos);
        if (ok && !out->move(out->ud, block, block_bytes))
            ok = bn_fail(err, BN_EIO, "the KV cache of %zu tokens could not be written", s->length);
    }
    mem_free(block);
    return ok || cuda_check_lost(&b->device, err);
}

bool cuda_kv_load(struct seq *s, size_t length, const struct bn_stream *in, struct bn_error *err)
{
    struct backend *b = s->backend;
    struct cuda_driver *d = &b->device.driver;
    const size_t block_bytes = b->shape.block_bytes;
    if (length > s->n_ctx)
        return bn_fail(err, BN_ECONTEXT, "%zu saved tokens do not fit in a context of %zu", length,
                       s->n_ctx);
    uint16_t *block = mem_alloc(block_bytes, 1);
    bool ok = block ? cuda_enter(&b->device, err)
                    : bn_fail(err, BN_ENOMEM, "no memory to load %zu tokens", length);
    s->length = 0;
    for (size_t pos = 0; ok && pos < length; pos += KV_BLOCK) {
        ok = in->move(in->ud, block, block_bytes) ||
             bn_fail(err, BN_EIO, "the saved KV cache of %zu tokens ends too early", length);
        ok = ok &&
             cuda_ok(d,
                     d->cuMemcpyHtoD(s->memory + pos / KV_BLOCK * block_bytes, block, block_bytes),
                     "filling the KV cache", err);
    }
    if (ok)
        s->length = length;
    mem_free(block);
    return ok || cuda_check_lost(&b->device, err);
}
