/*
 * Selection with a heap of the k best candidates in the caller's memory, the worst on top. Heap
 * sort also orders the results of pick_top, because qsort may allocate memory.
 */
#include "engine/cpu/cpu_pick.h"

#include "engine/backend/cand_heap.h"
#include "engine/base/noise.h"

#define SCAN_LOGITS 64 /* logits compared together */

bool pick_all(const float *z, size_t n_vocab, struct head_row *row, size_t *n_found)
{
    *n_found = n_vocab;
    if (row->cap < n_vocab)
        return false;
    for (size_t i = 0; i < n_vocab; i++)
        row->cands[i] = (struct head_cand){(int32_t)i, z[i]};
    return true;
}

/* Whether a logit is above `worst`. In a long row most runs of SCAN_LOGITS have none and are
 * skipped. */
static bool any_above(const float *z, size_t n, float worst)
{
    int any = 0;
    for (size_t i = 0; i < n; i++)
        any |= z[i] > worst;
    return any != 0;
}

/* The result is a heap, worst on top. Ids ascend, so of equal logits the first one stays. */
void pick_best(const float *z, size_t n_vocab, size_t k, struct head_cand *heap)
{
    for (size_t i = 0; i < k; i++)
        heap[i] = (struct head_cand){(int32_t)i, z[i]};
    cand_build(heap, k);
    float worst = heap[0].logit;
    for (size_t i = k; i < n_vocab; i += SCAN_LOGITS) {
        const size_t end = n_vocab - i < SCAN_LOGITS ? n_vocab : i + SCAN_LOGITS;
        if (!any_above(z + i, end - i, worst))
            continue;
        for (size_t j = i; j < end; j++)
            if (z[j] > worst) {
                cand_sift(heap, k, 0, (struct head_cand){(int32_t)j, z[j]});
                worst = heap[0].logit;
            }
    }
}

/* All ids with a logit of at least `floor`. *n is their number, of which at most cap are stored;
 * false if it is above cap. */
static bool append_above(const float *z, size_t n_vocab, float floor, struct head_row *row,
                         size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < n_vocab; i++)
        if (z[i] >= floor) {
            if (*n < row->cap)
                row->cands[*n] = (struct head_cand){(int32_t)i, z[i]};
            ++*n;
        }
    return *n <= row->cap;
}

/* Append the ids of head->ids that are not among the *n candidates, which fit. *n and the result
 * are as in append_above. */
static bool append_ids(const float *z, const struct head_request *head, struct head_row *row,
                       uint64_t *seen, size_t *n)
{
    const size_t n_before = *n;
    for (size_t i = 0; i < n_before; i++)
        seen[row->cands[i].id / 64] |= (uint64_t)1 << row->cands[i].id % 64;
    for (size_t i = 0; i < head->n_ids; i++) {
        const int32_t id = head->ids[i];
        if (seen[id / 64] >> id % 64 & 1)
            continue;
        seen[id / 64] |= (uint64_t)1 << id % 64;
        if (*n < row->cap)
            row->cands[*n] = (struct head_cand){id, z[id]};
        ++*n;
    }
    for (size_t i = 0; i < n_before; i++)
        seen[row->cands[i].id / 64] = 0;
    for (size_t i = 0; i < head->n_ids; i++)
        seen[head->ids[i] / 64] = 0;
    return *n <= row->cap;
}

bool pick_top(const float *z, size_t n_vocab, float best, const struct head_request *head,
              struct head_row *row, uint64_t *seen, size_t *n_found)
{
    const size_t k = head->k < n_vocab ? head->k : n_vocab;
    *n_found = k;
    if (row->cap < k)
        return false;
    if (k > 0)
        pick_best(z, n_vocab, k, row->cands);
    const float floor = best - head->gap;
    /* If the worst of the k is within the gap, others may be too: collect all, the k included. */
    if (head->gap > 0.0f && k < n_vocab && row->cands[0].logit >= floor &&
        !append_above(z, n_vocab, floor, row, n_found))
        return false;
    if (head->n_ids > 0 && !append_ids(z, head, row, seen, n_found))
        return false;
    cand_build(row->cands, *n_found);
    cand_sort(row->cands, *n_found);
    return true;
}

/* Computed in double, where z / temp is finite for every finite z and every temp above zero. */
void pick_gumbel(const float *z, size_t id0, size_t n, const struct head_request *head,
                 uint64_t position, double *best, int32_t *best_id)
{
    const uint64_t key = noise_key(head->seed, position);
    const double beta = 1.0 / (double)head->temp;
    for (size_t i = 0; i < n; i++) {
        const double scaled = (double)z[i] * beta;
        if (scaled + NOISE_GUMBEL_MAX <= *best)
            continue; /* even the largest noise is too small */
        const double noisy = scaled + noise_gumbel(key, id0 + i);
        if (noisy > *best) {
            *best = noisy;
            *best_id = (int32_t)(id0 + i);
        }
    }
}
