/*
 * Selection by a heap of the k best kept in the caller's row, worst on top; the same heap sorts it.
 * No library sort: that may allocate.
 */
#include "engine/cpu/cpu_pick.h"

#include "engine/base/noise.h"

#define SPAN 64 /* logits looked at together */

/* Does a stand before b? A total order: no id is twice in a row. */
static bool stands_before(struct head_cand a, struct head_cand b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Put c where it belongs below node i of a heap of n whose top stands last. */
static void sift_down(struct head_cand *heap, size_t n, size_t i, struct head_cand c)
{
    for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && stands_before(heap[child], heap[child + 1]))
            child++;
        if (!stands_before(c, heap[child]))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = c;
}

static void build_heap(struct head_cand *heap, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(heap, n, i, heap[i]);
}

/* Heap to order: the last one goes to the end, again and again. */
static void sort_heap(struct head_cand *heap, size_t n)
{
    for (; n > 1; n--) {
        const struct head_cand last = heap[0];
        sift_down(heap, n - 1, 0, heap[n - 1]);
        heap[n - 1] = last;
    }
}

bool pick_all(const float *z, size_t n_vocab, struct head_row *row, size_t *n_found)
{
    *n_found = n_vocab;
    if (row->cap < n_vocab)
        return false;
    for (size_t i = 0; i < n_vocab; i++)
        row->cands[i] = (struct head_cand){(int32_t)i, z[i]};
    return true;
}

/* Is one of the n above what has to be beaten? Most spans of a long row are passed over by this. */
static bool any_above(const float *z, size_t n, float worst)
{
    int any = 0;
    for (size_t i = 0; i < n; i++)
        any |= z[i] > worst;
    return any != 0;
}

/* The k best as a heap, worst on top. Ids ascend, so a later one with the same logit never stands
 * before. */
void pick_best(const float *z, size_t n_vocab, size_t k, struct head_cand *heap)
{
    for (size_t i = 0; i < k; i++)
        heap[i] = (struct head_cand){(int32_t)i, z[i]};
    build_heap(heap, k);
    float worst = heap[0].logit;
    for (size_t i = k; i < n_vocab; i += SPAN) {
        const size_t end = n_vocab - i < SPAN ? n_vocab : i + SPAN;
        if (!any_above(z + i, end - i, worst))
            continue;
        for (size_t j = i; j < end; j++)
            if (z[j] > worst) {
                sift_down(heap, k, 0, (struct head_cand){(int32_t)j, z[j]});
                worst = heap[0].logit;
            }
    }
}

/* Everything from `floor` up, at most cap; *n counts on. */
static bool take_above(const float *z, size_t n_vocab, float floor, struct head_row *row, size_t *n)
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

/* Append those of head->ids that are not there; *n counts on past the room. */
static bool take_ids(const float *z, const struct head_request *head, struct head_row *row,
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
    pick_best(z, n_vocab, k, row->cands);
    const float floor = best - head->gap;
    /* The worst of the k is within the gap: then so may others be, and all k are among those. */
    if (head->gap > 0.0f && k < n_vocab && row->cands[0].logit >= floor &&
        !take_above(z, n_vocab, floor, row, n_found))
        return false;
    if (head->n_ids > 0 && !take_ids(z, head, row, seen, n_found))
        return false;
    build_heap(row->cands, *n_found);
    sort_heap(row->cands, *n_found);
    return true;
}

/* In double, where z / temp is a number for every finite z and every temp above zero. */
void pick_gumbel(const float *z, size_t id0, size_t n, const struct head_request *head,
                 uint64_t position, double *best, int32_t *best_id)
{
    const uint64_t key = noise_key(head->seed, position);
    const double beta = 1.0 / (double)head->temp;
    for (size_t i = 0; i < n; i++) {
        const double scaled = (double)z[i] * beta;
        if (scaled + NOISE_GUMBEL_MAX <= *best)
            continue; /* no noise lifts it that far */
        const double noisy = scaled + noise_gumbel(key, id0 + i);
        if (noisy > *best) {
            *best = noisy;
            *best_id = (int32_t)(id0 + i);
        }
    }
}
