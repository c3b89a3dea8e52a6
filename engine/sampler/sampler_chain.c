/*
 * Top-k, typical, top-p and min-p.
 *
 * Sums and exponentials are computed in double, in a fixed order (by id or sort key), and without
 * functions of libm whose last bit differs between systems, so that every machine keeps the same
 * candidates. A heap sorts only as many candidates as a step examines, and unlike qsort it never
 * allocates memory.
 */
#include "engine/sampler/sampler_chain.h"

#include "engine/base/noise.h"

#include <math.h>
#include <stdbool.h>

/* exp(x) for x <= 0 with a relative error below 1e-15; 0 for x <= -700 and for a NaN, so that no
 * result is subnormal and ldexp is exact. x = n ln 2 + r with |r| <= ln 2 / 2, where ln 2 is a sum
 * of two constants (Cody and Waite). Taylor series in r; its terms after r^13 / 13! are below
 * 1e-17. */
static double exp_below(double x)
{
    /* 1 / 13!, 1 / 12!, ..., 1 / 0! */
    static const double factors[] = {1.0 / 6227020800,
                                     1.0 / 479001600,
                                     1.0 / 39916800,
                                     1.0 / 3628800,
                                     1.0 / 362880,
                                     1.0 / 40320,
                                     1.0 / 5040,
                                     1.0 / 720,
                                     1.0 / 120,
                                     1.0 / 24,
                                     1.0 / 6,
                                     1.0 / 2,
                                     1.0,
                                     1.0};
    if (!(x > -700.0))
        return 0.0;
    const double n = rint(x * 1.4426950408889634); /* the constant is 1 / ln 2 */
    const double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double p = factors[0];
    for (size_t k = 1; k < sizeof(factors) / sizeof(factors[0]); k++)
        p = p * r + factors[k];
    return ldexp(p, (int)n);
}

static bool is_before(const struct chain_cand *a, const struct chain_cand *b)
{
    return a->key > b->key || (a->key == b->key && a->id < b->id);
}

/* Restore the heap below node i. A parent is_before its children. */
static void sift_down(struct chain_cand *heap, size_t n, size_t i)
{
    const struct chain_cand item = heap[i];
    for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &item))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = item;
}

static void build_heap(struct chain_cand *heap, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(heap, n, i);
}

/* Move the top of a heap of n to heap[n - 1]. The others form a heap of n - 1. */
static void pop(struct chain_cand *heap, size_t n)
{
    const struct chain_cand first = heap[0];
    heap[0] = heap[n - 1];
    sift_down(heap, n - 1, 0);
    heap[n - 1] = first;
}

static double best_logit(const struct chain_cand *cands, size_t n)
{
    double best = -INFINITY;
    for (size_t i = 0; i < n; i++)
        best = fmax(best, (double)cands[i].logit);
    return best;
}

/* Sort by ascending id, so that the order of sums does not depend on the order of the input.
 * Changes all keys. */
static void sort_by_id(struct chain_cand *cands, size_t n)
{
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        cands[i].key = (double)cands[i].id;
        sorted = sorted && (i == 0 || cands[i - 1].id < cands[i].id);
    }
    if (sorted)
        return;
    build_heap(cands, n);
    for (size_t i = n; i > 1; i--)
        pop(cands, i);
}

/* Keep the candidates with the largest keys, at least one, until the sum of their probabilities
 * reaches `share`. The probability of a candidate is exp(logit - best) / total. */
static size_t keep_share(struct chain_cand *cands, size_t n, double share, double best,
                         double total)
{
    double sum = 0.0;
    size_t n_kept = 0;
    build_heap(cands, n);
    while (n_kept < n && !(sum >= share * total && n_kept > 0)) {
        sum += exp_below((double)cands[0].logit - best);
        pop(cands, n - n_kept);
        n_kept++;
    }
    for (size_t i = 0; i < n_kept; i++)
        cands[i] = cands[n - n_kept + i]; /* i ascends, so the ranges may overlap */
    return n_kept;
}

size_t chain_top_k(struct chain_cand *cands, size_t n, size_t k)
{
    if (k == 0 || k >= n)
        return n;
    for (size_t i = 0; i < n; i++)
        cands[i].key = (double)cands[i].logit;
    build_heap(cands, n);
    for (size_t i = 0; i < k; i++)
        pop(cands, n - i);
    for (size_t i = 0; i < k; i++)
        cands[i] = cands[n - k + i];
    return k;
}

/* Meister et al., "Locally typical sampling": prefers candidates whose surprise (-log probability)
 * is near the entropy. */
size_t chain_typical(struct chain_cand *cands, size_t n, double share)
{
    sort_by_id(cands, n);
    const double best = best_logit(cands, n);
    double total = 0.0, weighted = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double e = exp_below((double)cands[i].logit - best);
        total += e;
        weighted += e * ((double)cands[i].logit - best);
    }
    /* The surprise is log(total) - (logit - best), the entropy is log(total) - weighted / total,
     * and log(total) cancels out. */
    for (size_t i = 0; i < n; i++)
        cands[i].key = -fabs((double)cands[i].logit - best - weighted / total);
    return keep_share(cands, n, share, best, total);
}

size_t chain_top_p(struct chain_cand *cands, size_t n, double share)
{
    sort_by_id(cands, n);
    const double best = best_logit(cands, n);
    double total = 0.0;
    for (size_t i = 0; i < n; i++) {
        total += exp_below((double)cands[i].logit - best);
        cands[i].key = (double)cands[i].logit;
    }
    return keep_share(cands, n, share, best, total);
}

/* p >= min_p * max p is the same as logit >= max logit + log(min_p). */
size_t chain_min_p(struct chain_cand *cands, size_t n, double min_p)
{
    const double lowest = best_logit(cands, n) + noise_log(min_p);
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        if ((double)cands[i].logit >= lowest)
            cands[n_kept++] = cands[i];
    }
    return n_kept;
}
