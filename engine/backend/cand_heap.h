/*
 * The order of candidates, and a heap of them whose top stands last: what every backend keeps its
 * best ones in and sorts them with. No library sort: that may allocate.
 */
#ifndef ENGINE_BACKEND_CAND_HEAP_H
#define ENGINE_BACKEND_CAND_HEAP_H

#include "engine/head.h"

#include <stdbool.h>
#include <stddef.h>

/* Does a stand before b? A total order: no id is twice in a row. */
static inline bool cand_before(struct head_cand a, struct head_cand b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Put c where it belongs below node i of a heap of n. */
static inline void cand_sift(struct head_cand *heap, size_t n, size_t i, struct head_cand c)
{
    for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && cand_before(heap[child], heap[child + 1]))
            child++;
        if (!cand_before(c, heap[child]))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = c;
}

static inline void cand_build(struct head_cand *heap, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        cand_sift(heap, n, i, heap[i]);
}

/* Heap to order, best first: the last one goes to the end, again and again. */
static inline void cand_sort(struct head_cand *heap, size_t n)
{
    for (; n > 1; n--) {
        const struct head_cand last = heap[0];
        cand_sift(heap, n - 1, 0, heap[n - 1]);
        heap[n - 1] = last;
    }
}

#endif
