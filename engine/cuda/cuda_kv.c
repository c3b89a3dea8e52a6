/*
 * Opens, cuts, saves and restores a sequence on the device: keys and values, rings, recurrent
 * states. A position block has the bytes of an F16 position block of the CPU backend, so either
 * backend can load what the other has saved.
 */
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/cuda/cuda_ring.h"
#include "engine/cuda/cuda_state.h"
#include "engine/model/rope.h"

#include <stdio.h>
#include <string.h>

/* Position blocks of the longest sequence that n_bytes can hold. n_short: their number if the ring
 * is as long as the sequence, which is so for sequences shorter than a full ring. The alignment of
 * the recurrent states, less than DEVICE_ALIGN bytes, is not counted. */
static size_t blocks_that_fit(const struct backend *b, size_t n_bytes)
{
    const size_t n_free = n_bytes - size_min(n_bytes, 2 * b->shape.state_bytes);
    const size_t ring_block = b->shape.ring_kv.block_elems * sizeof(uint16_t);
    const size_t block = b->shape.block_bytes + b->shape.slot_bytes;
    const size_t n_short = n_free / (block + ring_block);
    return n_short < b->shape.ring.n_blocks
               ? n_short
               : (n_free - b->shape.ring.n_blocks * ring_block) / block;
}

static bool fail_memory(struct backend *b, size_t n_ctx, size_t n_bytes, struct bn_error *err)
{
    struct cuda_driver *d = &b->device.driver;
    const struct backend_plan *plan = &b->info.plan;
    size_t n_free = 0, n_total = 0;
    if (!cuda_ok(d, d->cuMemGetInfo(&n_free, &n_total), "reading the free GPU memory", err))
        return false;
    const size_t n_fit = blocks_that_fit(b, n_free) * KV_BLOCK;
    char advice[40] = "no context would fit";
    if (n_fit > 0)
        (void)snprintf(advice, sizeof advice, "--ctx %zu would fit", n_fit);
    return bn_fail(err, BN_ENOMEM,
                   "a context of %zu tokens needs %.0f MB of GPU memory for its KV cache; "
                   "%.0f MB are used for weights and %.0f MB for scratch, %.0f MB are free: %s",
                   n_ctx, (double)n_bytes / MEGA, (double)plan->weight_bytes / MEGA,
                   (double)plan->scratch_bytes / MEGA, (double)n_free / MEGA, advice);
}

bool cuda_kv_open(struct backend *b, size_t n_ctx, struct seq **out, struct bn_error *err)
{
    struct cuda_driver *d = &b->device.driver;
    const size_t n_blocks = position_blocks(n_ctx);
    const size_t ring_blocks = window_ring_blocks(&b->shape.ring, n_ctx);
    const size_t ring_bytes = ring_blocks * b->shape.ring_kv.block_elems * sizeof(uint16_t);
    /* alignment of the recurrent states, if any */
    const size_t align = b->shape.state_bytes > 0 ? DEVICE_ALIGN : 1;
    size_t n_bytes, kv_bytes, states_at;
    if (n_ctx < 1)
        return bn_fail(err, BN_EARG, "a context needs at least 1 token");
    if (n_ctx > INT32_MAX || !size_mul(&kv_bytes, n_blocks, b->shape.block_bytes) ||
        !size_mul(&n_bytes, n_blocks, b->shape.block_bytes + b->shape.slot_bytes) ||
        !size_add(&n_bytes, n_bytes, ring_bytes) || n_bytes > SIZE_MAX - align ||
        !size_add(&n_bytes, states_at = size_round_up(n_bytes, align), 2 * b->shape.state_bytes))
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
    s->ring = s->memory + kv_bytes;
    s->contents.n_blocks = ring_blocks;
    s->slots = s->ring + ring_bytes;
    s->states = s->memory + states_at;
    copies_set_length(&s->copies, 0);
    bool ok = result == CUDA_ERROR_OUT_OF_MEMORY
                  ? fail_memory(b, n_ctx, n_bytes, err)
                  : cuda_ok(d, result, "GPU memory for the KV cache", err);
    /* Zeros, so that a saved cache never contains earlier contents of this memory. */
    ok = ok && cuda_ok(d, d->cuMemsetD8(s->memory, 0, n_bytes), "clearing GPU memory", err);
    if (!ok) {
        if (result != CUDA_SUCCESS)
            s->memory = 0; /* cuda_kv_close must free nothing, whatever the driver wrote here */
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
        cuda_enter(&s->backend->device, &err)) /* memory of a lost device cannot be freed */
        (void)s->backend->device.driver.cuMemFree(s->memory); /* an error cannot be handled */
    mem_free(s);
}

size_t cuda_kv_reachable(const struct seq *s, size_t n_keep)
{
    const size_t n =
        s->backend->shape.state_bytes > 0 ? copies_reachable(&s->copies, n_keep) : n_keep;
    return ring_reachable(&s->contents, &s->backend->shape.ring, s->length, n);
}

void cuda_kv_truncate(struct seq *s, size_t n_keep)
{
    if (n_keep < s->length)
        s->length = n_keep;
    if (s->length == 0)
        s->contents.first = 0; /* an empty ring has lost no position */
    if (s->backend->shape.state_bytes > 0 && !copies_truncate(&s->copies, s->length))
        copies_set_length(&s->copies, 0); /* any copy will do: write_run starts from zeros */
}

/* Writes the state of the sequence's length to `to`: the recurrent state, then the windows of
 * rings. The recurrent state of an empty sequence is zeros: its copies on the device may hold
 * anything, because its next pass does not read them (write_run in cuda_eval.c). */
static bool download_state(const struct seq *s, void *to, struct bn_error *err)
{
    const struct backend *b = s->backend;
    const struct cuda_driver *d = &b->device.driver;
    const size_t n_bytes = b->shape.state_bytes;
    if (s->length == 0)
        memset(to, 0, n_bytes);
    else if (n_bytes > 0 &&
             !cuda_ok(d, d->cuMemcpyDtoH(to, cuda_state_at(s, s->copies.current), n_bytes),
                      "reading a recurrent state", err))
        return false;
    return cuda_ring_save(s, (uint8_t *)to + n_bytes, err);
}

/* Copies a saved state of `length` ids to the device. Returns after the copies are complete,
 * because `from` belongs to the caller. */
static bool upload_state(struct seq *s, const void *from, size_t length, struct bn_error *err)
{
    struct cuda_device *dev = &s->backend->device;
    struct cuda_driver *d = &dev->driver;
    const size_t n_bytes = s->backend->shape.state_bytes;
    if (n_bytes > 0) {
        copies_replace(&s->copies, length);
        if (!cuda_ok(d,
                     d->cuMemcpyHtoDAsync(cuda_state_at(s, s->copies.current), from, n_bytes,
                                          dev->stream),
                     "filling a recurrent state", err) ||
            !cuda_ok(d, d->cuStreamSynchronize(dev->stream), "filling a recurrent state", err))
            return false;
    }
    return cuda_ring_load(s, length, (const uint8_t *)from + n_bytes, err);
}

/* Makes the sequence empty after an error. One copy of the recurrent state may be half written, so
 * neither copy keeps its length. */
static void empty_after_error(struct seq *s)
{
    cuda_kv_truncate(s, 0);
    copies_set_length(&s->copies, 0);
}

bool cuda_kv_state_save(struct seq *s, void *to)
{
    struct cuda_device *dev = &s->backend->device;
    struct bn_error err; /* not reported; if the device is lost, the next eval reports it */
    return s->backend->info.plan.state_bytes == 0 ||
           (cuda_enter(dev, &err) && download_state(s, to, &err)) || cuda_check_lost(dev, &err);
}

bool cuda_kv_state_load(struct seq *s, const void *from, size_t length)
{
    struct cuda_device *dev = &s->backend->device;
    struct bn_error err; /* not reported; if the device is lost, the next eval reports it */
    if (s->backend->info.plan.state_bytes == 0) {
        cuda_kv_truncate(s, length);
        return true;
    }
    s->length = length;
    if (cuda_enter(dev, &err) && upload_state(s, from, length, &err))
        return true;
    empty_after_error(s);
    return cuda_check_lost(dev, &err);
}

/* Clears positions n and later of a block, so that a saved cache depends only on the tokens. Keys
 * are (head_dim, KV_BLOCK), values (KV_BLOCK, v_stride). */
static void clear_positions(const struct backend *b, uint16_t *block, size_t n)
{
    const struct hparams *hp = &b->model->hp;
    const size_t v_stride = b->shape.kv.v_stride;
    for (size_t at = 0; at < b->shape.kv.block_elems; at += b->shape.kv.head_elems) {
        uint16_t *keys = block + at;
        uint16_t *values = keys + hp->head_dim * KV_BLOCK;
        for (size_t i = 0; i < hp->head_dim; i++)
            memset(keys + i * KV_BLOCK + n, 0, (KV_BLOCK - n) * sizeof *keys);
        memset(values + n * v_stride, 0, (KV_BLOCK - n) * v_stride * sizeof *values);
    }
}

/* Host memory with room for a position block and, later in the same call, for a saved state. */
static void *open_buffer(const struct backend *b, struct bn_error *err)
{
    const size_t n_bytes = size_max(b->shape.block_bytes, b->info.plan.state_bytes);
    void *buffer = mem_alloc(size_max(n_bytes, 1), 1);
    if (!buffer)
        (void)bn_fail(err, BN_ENOMEM, "no memory for %zu bytes of a KV cache", n_bytes);
    return buffer;
}

static bool fail_write(const struct seq *s, struct bn_error *err)
{
    return bn_fail(err, BN_EIO, "the KV cache of %zu tokens could not be written", s->length);
}

static bool save_blocks(const struct seq *s, void *block, const struct bn_stream *out,
                        struct bn_error *err)
{
    const struct backend *b = s->backend;
    const struct cuda_driver *d = &b->device.driver;
    const size_t n_bytes = b->shape.block_bytes;
    for (size_t pos = 0; n_bytes > 0 && pos < s->length; pos += KV_BLOCK) {
        if (!cuda_ok(d, d->cuMemcpyDtoH(block, s->memory + pos / KV_BLOCK * n_bytes, n_bytes),
                     "reading the KV cache", err))
            return false;
        if (s->length - pos < KV_BLOCK)
            clear_positions(b, block, s->length - pos);
        if (!out->move(out->ud, block, n_bytes))
            return fail_write(s, err);
    }
    return true;
}

bool cuda_kv_save(struct seq *s, const struct bn_stream *out, struct bn_error *err)
{
    struct backend *b = s->backend;
    void *buffer = open_buffer(b, err);
    bool ok = buffer && cuda_enter(&b->device, err) && save_blocks(s, buffer, out, err);
    if (ok && b->info.plan.state_bytes > 0)
        ok = download_state(s, buffer, err) &&
             (out->move(out->ud, buffer, b->info.plan.state_bytes) || fail_write(s, err));
    mem_free(buffer);
    return ok || cuda_check_lost(&b->device, err);
}

size_t cuda_kv_save_bytes(const struct seq *s)
{
    const struct backend *b = s->backend;
    return grid_blocks(s->length, KV_BLOCK) * b->shape.block_bytes + b->info.plan.state_bytes;
}

static bool fail_read(size_t length, struct bn_error *err)
{
    return bn_fail(err, BN_EIO, "the saved KV cache of %zu tokens ends too early", length);
}

static bool load_blocks(const struct seq *s, size_t length, void *block, const struct bn_stream *in,
                        struct bn_error *err)
{
    const struct backend *b = s->backend;
    const struct cuda_driver *d = &b->device.driver;
    const size_t n_bytes = b->shape.block_bytes;
    for (size_t pos = 0; n_bytes > 0 && pos < length; pos += KV_BLOCK) {
        if (!in->move(in->ud, block, n_bytes))
            return fail_read(length, err);
        if (!cuda_ok(d, d->cuMemcpyHtoD(s->memory + pos / KV_BLOCK * n_bytes, block, n_bytes),
                     "filling the KV cache", err))
            return false;
    }
    return true;
}

bool cuda_kv_load(struct seq *s, size_t length, const struct bn_stream *in, struct bn_error *err)
{
    struct backend *b = s->backend;
    if (length > s->n_ctx)
        return bn_fail(err, BN_ECONTEXT, "%zu saved tokens do not fit in a context of %zu", length,
                       s->n_ctx);
    void *buffer = open_buffer(b, err);
    cuda_kv_truncate(s, 0);
    bool ok = buffer && cuda_enter(&b->device, err) && load_blocks(s, length, buffer, in, err);
    if (ok && b->info.plan.state_bytes > 0)
        ok = (in->move(in->ud, buffer, b->info.plan.state_bytes) || fail_read(length, err)) &&
             upload_state(s, buffer, length, err);
    if (ok)
        s->length = length;
    else
        empty_after_error(s);
    mem_free(buffer);
    return ok || cuda_check_lost(&b->device, err);
}
