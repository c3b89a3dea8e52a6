/*
 * The last step of a row: what the device found holds all that is wanted and a little more; here it
 * is sorted, cut, and joined with the ids that were asked for by name. The same order and the same
 * errors as the CPU's selection.
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

static bool need_room(size_t n, struct bn_error *err)
{
    return bn_fail(err, BN_EARG, "a row of candidates needs room for at least %zu", n);
}

static bool finish_all(struct backend *b, size_t i, struct want *want, struct bn_error *err)
{
    const size_t n_vocab = b->model->hp.n_vocab;
    if (want->row->cap < n_vocab)
        return need_room(n_vocab, err);
    if (!read_back(b, b->host.z, b->scratch.z + i * b->shape.vocab_stride, n_vocab * sizeof(float),
                   err))
        return false;
    for (size_t id = 0; id < n_vocab; id++)
        want->row->cands[id] = (struct head_cand){(int32_t)id, b->host.z[id]};
    want->n_found = n_vocab;
    return true;
}

/* The logits of n ids of row i, IDS_CHUNK at most, to host.gathered: multiplied once more, since
 * what is on the device may be bounds. */
static bool gather(struct backend *b, size_t i, size_t n, struct bn_error *err)
{
    struct cuda_device *dev = &b->device;
    struct dot_args args = cuda_head_dots(b, i, 1);
    args.ids = b->scratch.ids;
    args.out = (struct logit_room){.z = b->scratch.gathered, .n_vocab = (uint32_t)n};
    cuda_keep(dev,
              dev->driver.cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)b->scratch.ids, b->host.ids,
                                            n * sizeof(int32_t), dev->stream),
              "sending ids");
    cuda_launch(dev, KERNEL_rows_named, (struct cuda_grid){(n + DOT_ROWS - 1) / DOT_ROWS, 1, 1, 0},
                &args);
    b->pass.n_asked += n;
    return cuda_finish(dev, err) &&
           read_back(b, b->host.gathered, b->scratch.gathered, n * sizeof(float), err);
}

/* The ids of a request that are not among the first *n candidates, each once, to the row. Counts on
 * past the room. */
static bool take_ids(struct backend *b, size_t i, struct want *want, size_t *n,
                     struct bn_error *err)
{
    const struct head_request *head = want->head;
    struct head_row *row = want->row;
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
        if (n_chunk < IDS_CHUNK && (n_chunk == 0 || j + 1 < head->n_ids))
            continue;
        ok = gather(b, i, n_chunk, err);
        for (size_t l = 0; ok && l < n_chunk; l++, ++*n)
            if (*n < row->cap)
                row->cands[*n] = (struct head_cand){b->host.ids[l], b->host.gathered[l]};
        n_chunk = 0;
    }
    memset(seen, 0, (b->model->hp.n_vocab / 64 + 1) * sizeof *seen);
    return ok;
}

/* What was found for row i, in no order, to host.cands. */
static bool take_found(struct backend *b, size_t i, size_t *n, struct bn_error *err)
{
    const struct cuda_found *found = &b->host.found[i];
    *n = size_min(found->n, b->model->hp.n_vocab);
    if (*n > PICK_FIRST)
        return read_back(b, b->host.cands, b->scratch.more + i * b->shape.vocab_stride,
                         *n * sizeof *b->host.cands, err);
    memcpy(b->host.cands, found->first, *n * sizeof *b->host.cands);
    return true;
}

/* Whoever wins the draw, by the operations of the device and of the CPU backend. */
static bool finish_draw(struct backend *b, size_t i, struct want *want, struct bn_error *err)
{
    const uint64_t key = noise_key(want->head->seed, want->position);
    const double beta = 1.0 / (double)want->head->temp;
    double best = -INFINITY;
    struct head_cand winner = {INT32_MAX, 0.0f};
    size_t n;
    if (!take_found(b, i, &n, err))
        return false;
    for (size_t j = 0; j < n; j++) {
        const struct head_cand c = b->host.cands[j];
        const double noisy = (double)c.logit * beta + noise_gumbel(key, (uint64_t)c.id);
        if (noisy > best || (noisy == best && c.id < winner.id)) {
            best = noisy;
            winner = c;
        }
    }
    if (n == 0)
        return bn_fail(err, BN_EDEVICE, "the GPU found nobody who wins a draw");
    want->row->cands[0] = winner;
    want->n_found = 1;
    return true;
}

static bool finish_top(struct backend *b, size_t i, struct want *want, struct bn_error *err)
{
    const struct head_request *head = want->head;
    struct head_cand *cands = b->host.cands;
    const size_t n_vocab = b->model->hp.n_vocab, k = size_min(head->k, n_vocab);
    size_t n_found;
    if (want->row->cap < k)
        return need_room(k, err);
    if (!take_found(b, i, &n_found, err))
        return false;
    cand_build(cands, n_found);
    cand_sort(cands, n_found);
    size_t n = size_min(k, n_found);
    /* The worst of the k is within the gap: then so may others be. */
    if (head->gap > 0.0f && n > 0 && k < n_vocab) {
        const float floor = cands[0].logit - head->gap;
        for (; cands[n - 1].logit >= floor && n < n_found && cands[n].logit >= floor; n++)
            ;
    }
    if (n > want->row->cap)
        return need_room(n, err);
    memcpy(want->row->cands, cands, n * sizeof *cands);
    want->n_found = n;
    if (head->n_ids == 0)
        return true;
    if (!take_ids(b, i, want, &n, err))
        return false;
    if (n > want->row->cap)
        return need_room(n, err);
    cand_build(want->row->cands, n);
    cand_sort(want->row->cands, n);
    want->n_found = n;
    return true;
}

bool cuda_rows_finish(struct backend *b, struct want *wants, size_t n_wants, struct bn_error *err)
{
    for (size_t i = 0; i < n_wants; i++)
        if (b->host.found[i].not_finite)
            return bn_fail(err, BN_EDEVICE,
                           "a logit is not a finite number: the weights do not fit this program, "
                           "or the machine computed nonsense");
    for (size_t i = 0; i < n_wants; i++) {
        struct want *want = &wants[i];
        bool ok = true;
        b->pass.n_asked += b->host.found[i].n_read;
        if (want->head->kind == HEAD_ALL)
            ok = finish_all(b, i, want, err);
        else if (want->head->kind == HEAD_TOP)
            ok = finish_top(b, i, want, err);
        else
            ok = finish_draw(b, i, want, err);
        if (!ok)
            return false;
    }
    return true;
}
