/*
 * The order of candidates, and a heap of them with the last candidate in that order on top.
 *
 * The CPU backend selects the k best logits with a heap of k candidates: a better candidate
 * replaces the top. Both backends sort with cand_build and cand_sort. qsort may allocate memory, so
 * it is not used.
 */
#ifndef ENGINE_BACKEND_CAND_HEAP_H
#define ENGINE_BACKEND_CAND_HEAP_H

#include "engine/head.h"

#include <stdbool.h>
#include <stddef.h>

/* Larger logits first, then lower ids. This is a total order if no logit is a NaN, because each id
 * occurs once. */
static inline bool cand_before(struct head_cand a, struct head_cand b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Insert c into the subtree of node i of a heap of n, in place of the candidate in node i. */
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

/* Turn n candidates in any order into a heap. */
static inline void cand_build(struct head_cand *heap, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        cand_sift(heap, n, i, heap[i]);
}

/* Heap sort: turns a heap into a sorted array, best candidate first. */
static inline void cand_sort(struct head_cand *heap, size_t n)
{
    for (; n > 1; n--) {
        const struct head_cand last = heap[0];
        cand_sift(heap, n - 1, 0, heap[n - 1]);
        heap[n - 1] = last;
    }
}

#endif
