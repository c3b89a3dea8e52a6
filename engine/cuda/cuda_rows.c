/*
 * Completes the requested rows on the host. For HEAD_TOP and HEAD_GUMBEL the device returns every
 * candidate that the result may contain, except listed ids, and usually some more, unsorted. This
 * file selects and sorts the result and adds the listed ids of the request. The order of candidates
 * and the code of each error are those of the CPU backend. The parameter i is the index of a
 * request among the at most HEAD_PASS_ROWS of its pass.
 */
#include "engine/backend/cand_heap.h"
#include "engine/base/noise.h"
#include "engine/base/size.h"
#include "engine/cuda/cuda_state.h"

#include <math.h>
#include <string.h>

_Static_assert(sizeof(struct cuda_cand) == sizeof(struct head_cand) &&
                   offsetof(struct cuda_cand, logit) == offsetof(struct head_cand, logit),
               "candidates are copied as bytes");

static bool read_back(struct backend *b, void *to, const void *from, size_t n_bytes,
                      struct bn_error *err)
{
    struct cuda_driver *d = &b->device.driver;
    return cuda_ok(d, d->cuMemcpyDtoH(to, (CUdeviceptr)(uintptr_t)from, n_bytes), "reading results",
                   err);
}

static bool fail_capacity(size_t n, struct bn_error *err)
{
    return bn_fail(err, BN_EARG, "a row of candidates needs room for at least %zu", n);
}

static bool finish_all(struct backend *b, size_t i, struct row_request *request,
                       struct bn_error *err)
{
    const size_t n_vocab = b->model->hp.n_vocab;
    if (request->row->cap < n_vocab)
        return fail_capacity(n_vocab, err);
    if (!read_back(b, b->host.z, b->scratch.z + i * b->shape.widths.vocab_stride,
                   n_vocab * sizeof(float), err))
        return false;
    for (size_t id = 0; id < n_vocab; id++)
        request->row->cands[id] = (struct head_cand){(int32_t)id, b->host.z[id]};
    request->n_found = n_vocab;
    return true;
}

/* As gather, for a ternary head, which is never screened: the device has all logits. */
static bool gather_from_all(struct backend *b, size_t i, size_t n, struct bn_error *err)
{
    if (!read_back(b, b->host.z, b->scratch.z + i * b->shape.widths.vocab_stride,
                   b->model->hp.n_vocab * sizeof(float), err))
        return false;
    for (size_t l = 0; l < n; l++)
        b->host.gathered[l] = b->host.z[b->host.ids[l]];
    return true;
}

/* Computes the exact logits of the n ids in host.ids (at most IDS_CHUNK) for request i, and stores
 * them in host.gathered. After screening the device has only bounds of most logits, so the
 * table rows of the ids are multiplied. This also happens without screening, although the device
 * then has all logits. */
static bool gather_logits(struct backend *b, size_t i, size_t n, struct bn_error *err)
{
    if (b->ternary_head.groups.n_groups > 0)
        return gather_from_all(b, i, n, err);
    struct cuda_device *dev = &b->device;
    struct dot_args args = cuda_head_dots(b, i, 1);
    args.ids = b->scratch.ids;
    args.out = (struct logit_buffers){.z = b->scratch.gathered, .n_vocab = (uint32_t)n};
    cuda_record_error(dev,
                      dev->driver.cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)b->scratch.ids,
                                                    b->host.ids, n * sizeof(int32_t), dev->stream),
                      "sending ids");
    cuda_launch(dev, KERNEL_rows_dot_listed, (struct cuda_grid){grid_blocks(n, DOT_ROWS), 1, 1, 0},
                &args);
    b->pass.n_single_rows += n;
    return cuda_finish(dev, err) &&
           read_back(b, b->host.gathered, b->scratch.gathered, n * sizeof(float), err);
}

/* Appends each requested id once, unless it is among the first *n candidates. If the row is full,
 * further ids are not stored, but *n counts them. */
static bool append_ids(struct backend *b, size_t i, struct row_request *request, size_t *n,
                       struct bn_error *err)
{
    const struct head_request *head = request->head;
    struct head_row *row = request->row;
    uint64_t *seen = b->host.seen;
    size_t n_chunk = 0;
    bool ok = true;
    for (size_t j = 0; j < *n; j++)
        seen[row->cands[j].id / 64] |= (uint64_t)1 << row->cands[j].id % 64;
    for (size_t j = 0; ok && j < head->n_ids; j++) {
        const int32_t id = head->ids[j];
        if (!(seen[id / 64] >> id % 64 & 1))
            b->host.ids[n_chunk++] = id;
        seen[id / 64] |= (uint64_t)1 << id % 64;
        /* Compute a chunk when it is full, and the last chunk after the last id. */
        if (n_chunk < IDS_CHUNK && (n_chunk == 0 || j + 1 < head->n_ids))
            continue;
        ok = gather_logits(b, i, n_chunk, err);
        for (size_t l = 0; ok && l < n_chunk; l++, ++*n)
            if (*n < row->cap)
                row->cands[*n] = (struct head_cand){b->host.ids[l], b->host.gathered[l]};
        n_chunk = 0;
    }
    memset(seen, 0, (b->model->hp.n_vocab / 64 + 1) * sizeof *seen);
    return ok;
}

/* Copies the candidates that the device found for request i to host.cands, and their number to *n.
 * A faulty device may return any number and any ids: they must not lead past an array. */
static bool fetch_found(struct backend *b, size_t i, size_t *n, struct bn_error *err)
{
    const struct cuda_found *found = &b->host.found[i];
    *n = size_min(found->n, b->model->hp.n_vocab);
    if (*n <= PICK_FIRST)
        memcpy(b->host.cands, found->first, *n * sizeof *b->host.cands);
    else if (!read_back(b, b->host.cands, b->scratch.cands + i * b->shape.widths.vocab_stride,
                        *n * sizeof *b->host.cands, err))
        return false;
    for (size_t j = 0; j < *n; j++)
        if (b->host.cands[j].id < 0 || (size_t)b->host.cands[j].id >= b->model->hp.n_vocab)
            return bn_fail(err, BN_EDEVICE, "the GPU returned an id outside of the vocabulary");
    return true;
}

/* Selects the token of a Gumbel draw. The operations are those of the device and of the CPU
 * backend, so that all select the same winner. */
static bool finish_draw(struct backend *b, size_t i, struct row_request *request,
                        struct bn_error *err)
{
    const uint64_t key = noise_key(request->head->seed, request->position);
    const double beta = 1.0 / (double)request->head->temp;
    double best = -INFINITY;
    struct head_cand winner = {INT32_MAX, 0.0f};
    size_t n;
    if (!fetch_found(b, i, &n, err))
        return false;
    for (size_t j = 0; j < n; j++) {
        const struct head_cand c = b->host.cands[j];
        const double noisy = (double)c.logit * beta + noise_gumbel(key, (uint64_t)c.id);
        if (noisy > best || (noisy == best && c.id < winner.id)) {
            best = noisy;
            winner = c;
        }
    }
    if (winner.id == INT32_MAX) /* none, or only NaN */
        return bn_fail(err, BN_EDEVICE, "the GPU returned no candidate for a draw");
    request->row->cands[0] = winner;
    request->n_found = 1;
    return true;
}

static bool finish_top(struct backend *b, size_t i, struct row_request *request,
                       struct bn_error *err)
{
    const struct head_request *head = request->head;
    struct head_cand *cands = b->host.cands;
    const size_t n_vocab = b->model->hp.n_vocab, k = size_min(head->k, n_vocab);
    size_t n_found;
    if (request->row->cap < k)
        return fail_capacity(k, err);
    if (!fetch_found(b, i, &n_found, err))
        return false;
    cand_build(cands, n_found);
    cand_sort(cands, n_found);
    size_t n = size_min(k, n_found);
    /* If the k-th candidate is at most `gap` below the best, later candidates can be too. */
    if (head->gap > 0.0f && n > 0 && k < n_vocab) {
        const float floor = cands[0].logit - head->gap;
        for (; cands[n - 1].logit >= floor && n < n_found && cands[n].logit >= floor; n++)
            ;
    }
    if (n > request->row->cap)
        return fail_capacity(n, err);
    memcpy(request->row->cands, cands, n * sizeof *cands);
    request->n_found = n;
    if (head->n_ids == 0)
        return true;
    if (!append_ids(b, i, request, &n, err))
        return false;
    if (n > request->row->cap)
        return fail_capacity(n, err);
    cand_build(request->row->cands, n);
    cand_sort(request->row->cands, n);
    request->n_found = n;
    return true;
}

bool cuda_rows_finish(struct backend *b, struct row_request *requests, size_t n_requests,
                      struct bn_error *err)
{
    for (size_t i = 0; i < n_requests; i++)
        if (b->host.found[i].not_finite)
            return bn_fail(err, BN_EDEVICE,
                           "a logit is not a finite number: "
                           "the model file is damaged, or this machine computes wrong results");
    for (size_t i = 0; i < n_requests; i++) {
        struct row_request *request = &requests[i];
        bool ok = true;
        b->pass.n_single_rows += b->host.found[i].n_read;
        if (request->head->kind == HEAD_ALL)
            ok = finish_all(b, i, request, err);
        else if (request->head->kind == HEAD_TOP)
            ok = finish_top(b, i, request, err);
        else
            ok = finish_draw(b, i, request, err);
        if (!ok)
            return false;
    }
    return true;
}
