/*
 * attn_tile for AVX-512, KV cache in F16: attention of consecutive tokens over one position block.
 *
 * Keys and values are widened to F32 once for all tokens (32 kB each for a head dimension of 128)
 * and used while they are in the first-level cache: all queries are multiplied with the keys, then
 * all probabilities with the values. A query is one head of one token. Six queries times 64
 * positions (or 64 columns of the values) are a register tile of 24 accumulators, with ten loads
 * per 24 fma. The softmax works on the scores in their accumulators.
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/ref/attn_tokens.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx512.h"

#include <immintrin.h>
#include <math.h>

#define QUERIES 6     /* most queries of a register tile */
#define FEW_QUERIES 4 /* queries of the smaller register tile */
#define SLOTS 8       /* QUERIES rounded up to a whole register of maxima or sums */

/* Sections of attn_tile.scratch. */
struct scratch {
    float *wide; /* (head_dim, KV_BLOCK) keys; then (KV_BLOCK, v_stride) values */
    float *p;    /* (queries, KV_BLOCK) probabilities */
    float *a;    /* (queries) factor of the running results */
    float *b;    /* (queries) factor of the results of the new block */
};

/* The queries of a register tile, which see the same number of positions. */
struct queries {
    size_t first; /* token * n_q + head: n_q is that of attn_tile */
    size_t n_seen;
};

static struct scratch split_scratch(const struct attn_tile *t)
{
    struct scratch w = {.wide = t->scratch};
    w.p = w.wide + KV_BLOCK * t->v_stride;
    w.a = w.p + ATTN_TILE * t->n_q * KV_BLOCK;
    w.b = w.a + ATTN_TILE * t->n_q;
    return w;
}

/* F16 to F32. n is a multiple of 32; both pointers are 64-byte aligned. */
static void widen(const uint16_t *halves, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += 32) {
        const __m512i both = _mm512_load_si512(halves + i);
        _mm512_store_ps(out + i, _mm512_cvtph_ps(_mm512_castsi512_si256(both)));
        _mm512_store_ps(out + i + 16, _mm512_cvtph_ps(_mm512_extracti64x4_epi64(both, 1)));
    }
}

/* Turn the scores of a query (n_vecs registers of z) into probabilities p, +0 for unseen positions.
 * m is the maximum of the seen scores, without NaN, l the sum of the probabilities. */
BN_FORCE_INLINE void softmax_lanes(const __m512 z[4], int n_vecs, const __mmask16 seen[4], float *p,
                                   float *m, float *l)
{
    __m512 lanes[4], max = _mm512_set1_ps(-INFINITY);
#pragma GCC unroll 4
    for (int v = 0; v < n_vecs; v++)
        max = _mm512_mask_max_ps(max, seen[v], z[v], max);
    *m = max16_avx512(max) + 0.0f; /* -0 becomes +0 */
    const __m512 mv = _mm512_set1_ps(*m);
#pragma GCC unroll 4
    for (int v = 0; v < 4; v++) {
        lanes[v] = v < n_vecs ? exp0_avx512(_mm512_sub_ps(z[v], mv), seen[v]) : _mm512_setzero_ps();
        _mm512_store_ps(p + 16 * v, lanes[v]);
    }
    *l = tree64_avx512(lanes);
}

/* Merge maxima and sums of n_queries queries into the running ones, and store the factors a and b.
 * In the first position block the maxima and sums become the running ones, and no factors are
 * stored. */
BN_FORCE_INLINE void merge_sums(const struct attn_tile *t, const struct scratch *w, size_t first,
                                int n_queries, const float m[SLOTS], const float l[SLOTS])
{
    const __mmask8 valid = (__mmask8)((1 << n_queries) - 1);
    const __m256 mv = _mm256_load_ps(m), lv = _mm256_load_ps(l);
    if (t->is_first) {
        _mm256_mask_storeu_ps(t->m + first, valid, mv);
        _mm256_mask_storeu_ps(t->l + first, valid, lv);
        return;
    }
    const __m256 big_m = _mm256_maskz_loadu_ps(valid, t->m + first);
    const __m256 big_l = _mm256_maskz_loadu_ps(valid, t->l + first);
    const __m256 top = _mm256_max_ps(mv, big_m); /* m > M ? m : M */
    /* M - M' in the lower half, m - M' in the upper half: one call computes A and B. */
    const __m512 below = _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_sub_ps(big_m, top)),
                                            _mm256_sub_ps(mv, top), 1);
    const __m512 e = exp0_avx512(below, 0xffff);
    const __m256 a = _mm512_castps512_ps256(e), b = _mm512_extractf32x8_ps(e, 1);
    _mm256_mask_storeu_ps(t->m + first, valid, top);
    _mm256_mask_storeu_ps(t->l + first, valid, _mm256_fmadd_ps(lv, b, _mm256_mul_ps(big_l, a)));
    _mm256_mask_storeu_ps(w->a + first, valid, a);
    _mm256_mask_storeu_ps(w->b + first, valid, b);
}

/* Probabilities of n_queries queries over the first 16 n_vecs positions. */
BN_FORCE_INLINE void score_queries(const struct attn_tile *t, const struct scratch *w,
                                   struct queries qs, int n_queries, int n_vecs)
{
    __m512 z[QUERIES][4];
    const float *q[QUERIES];
    _Alignas(32) float m[SLOTS] = {0}, l[SLOTS] = {0};
#pragma GCC unroll 6
    for (int i = 0; i < n_queries; i++) {
        const size_t at = qs.first + (size_t)i;
        q[i] = t->q + at / t->n_q * t->q_stride + at % t->n_q * t->head_dim;
#pragma GCC unroll 4
        for (int v = 0; v < n_vecs; v++)
            z[i][v] = _mm512_setzero_ps();
    }
#pragma GCC unroll 4
    for (size_t d = 0; d < t->head_dim; d++) {
        __m512 k[4];
#pragma GCC unroll 4
        for (int v = 0; v < n_vecs; v++)
            k[v] = _mm512_load_ps(w->wide + d * KV_BLOCK + 16 * v);
#pragma GCC unroll 6
        for (int i = 0; i < n_queries; i++) {
            const __m512 qv = _mm512_set1_ps(q[i][d]);
#pragma GCC unroll 4
            for (int v = 0; v < n_vecs; v++)
                z[i][v] = _mm512_fmadd_ps(qv, k[v], z[i][v]);
        }
    }
    float *const p = w->p + qs.first * KV_BLOCK;
    __mmask16 seen[4];
#pragma GCC unroll 4
    for (int v = 0; v < n_vecs; v++)
        seen[v] = mask_below(16 * (size_t)v, qs.n_seen);
#pragma GCC unroll 6
    for (int i = 0; i < n_queries; i++)
        softmax_lanes(z[i], n_vecs, seen, p + i * KV_BLOCK, &m[i], &l[i]);
    merge_sums(t, w, qs.first, n_queries, m, l);
}

/* Merge o, columns col .. col + 16 n_vecs - 1 of this block's results for n_queries queries from
 * `first` on, into the running results. */
BN_FORCE_INLINE void fold_values(const struct attn_tile *t, const struct scratch *w, size_t first,
                                 int n_queries, size_t col, int n_vecs, __m512 o[QUERIES][4])
{
    const bool is_first = t->is_first;
    const size_t head_dim = t->head_dim;
    float *out = t->o + first * head_dim + col;
    __mmask16 valid[4];
#pragma GCC unroll 4
    for (int v = 0; v < n_vecs; v++)
        valid[v] = mask_below(col + 16 * (size_t)v, head_dim);
#pragma GCC unroll 6
    for (int i = 0; i < n_queries; i++, out += head_dim) {
        /* If is_first, merge_sums has not set the factors, and they are not used. */
        const __m512 a = _mm512_set1_ps(w->a[first + (size_t)i]);
        const __m512 b = _mm512_set1_ps(w->b[first + (size_t)i]);
#pragma GCC unroll 4
        for (int v = 0; v < n_vecs; v++) {
            if (!is_first) {
                const __m512 running = _mm512_maskz_loadu_ps(valid[v], out + 16 * v);
                o[i][v] = _mm512_fmadd_ps(o[i][v], b, _mm512_mul_ps(running, a));
            }
            _mm512_mask_storeu_ps(out + 16 * v, valid[v], o[i][v]);
        }
    }
}

/* Columns col .. col + 16 n_vecs - 1 of the sum of probability * value, for n_queries queries. */
BN_FORCE_INLINE void value_queries(const struct attn_tile *t, const struct scratch *w,
                                   struct queries qs, int n_queries, size_t col, int n_vecs)
{
    __m512 o[QUERIES][4];
    const float *p = w->p + qs.first * KV_BLOCK;
#pragma GCC unroll 6
    for (int i = 0; i < n_queries; i++)
#pragma GCC unroll 4
        for (int v = 0; v < n_vecs; v++)
            o[i][v] = _mm512_setzero_ps();
#pragma GCC unroll 4
    for (size_t j = 0; j < qs.n_seen; j++) {
        __m512 value[4];
#pragma GCC unroll 4
        for (int v = 0; v < n_vecs; v++)
            value[v] = _mm512_load_ps(w->wide + j * t->v_stride + col + 16 * (size_t)v);
#pragma GCC unroll 6
        for (int i = 0; i < n_queries; i++) {
            const __m512 pv = _mm512_set1_ps(p[(size_t)i * KV_BLOCK + j]);
#pragma GCC unroll 4
            for (int v = 0; v < n_vecs; v++)
                o[i][v] = _mm512_fmadd_ps(pv, value[v], o[i][v]);
        }
    }
    fold_values(t, w, qs.first, n_queries, col, n_vecs, o);
}

/* All columns of the results of n_queries queries. */
BN_FORCE_INLINE void values_of(const struct attn_tile *t, const struct scratch *w,
                               struct queries qs, int n_queries)
{
    size_t col = 0;
    for (; t->v_stride - col >= 64; col += 64)
        value_queries(t, w, qs, n_queries, col, 4);
    if (col < t->v_stride) /* rows of v are padded to 32 */
        value_queries(t, w, qs, n_queries, col, 2);
}

/* Probabilities of n_queries queries. Half a block of keys is enough if no later position is
 * seen. */
BN_FORCE_INLINE void scores_of(const struct attn_tile *t, const struct scratch *w,
                               struct queries qs, int n_queries)
{
    if (qs.n_seen > 32)
        score_queries(t, w, qs, n_queries, 4);
    else
        score_queries(t, w, qs, n_queries, 2);
}

/* Prefetch for writing: where the final results of n queries will be stored. */
BN_FORCE_INLINE void prefetch_out(const struct attn_tile *t, size_t first, size_t n)
{
    if (!t->out)
        return;
    for (size_t i = first; i < first + n; i++) {
        const float *out = t->out + i / t->n_q * t->out_stride + i % t->n_q * t->head_dim;
        for (size_t d = 0; d < t->head_dim; d += 16)
            __builtin_prefetch(out + d, 1);
    }
}

/* Find the next queries, from `first` on, that see the same positions: those of one token, or of
 * all later tokens too once a token sees the whole block. Returns their number: QUERIES,
 * FEW_QUERIES or less. Eight queries are taken as 4 + 4, because after 6 the remaining 2 would be
 * processed one at a time. */
static size_t next_queries(const struct attn_tile *t, size_t first, struct queries *qs)
{
    const size_t n_seen = size_min(t->n_seen + first / t->n_q, KV_BLOCK);
    const size_t end = n_seen == KV_BLOCK ? t->n_tokens * t->n_q : (first / t->n_q + 1) * t->n_q;
    const size_t left = end - first;
    *qs = (struct queries){first, n_seen};
    return left >= QUERIES && left != 2 * FEW_QUERIES ? QUERIES : size_min(left, FEW_QUERIES);
}

void attn_tile_avx512(const struct attn_tile *t)
{
    /* Widening in advance is useful only if several tokens use the result. At the edge of a window
     * the tokens begin at different positions, which this method cannot handle; such blocks are
     * few. */
    if (t->n_tokens == 1 || t->n_hidden > 0) {
        attn_tile_by_token(t, attn_block_avx512, attn_merge_avx2);
        return;
    }
    const struct scratch w = split_scratch(t);
    const size_t end = t->n_tokens * t->n_q;
    struct queries qs;
    /* The number of queries is a constant in each call, so that the sums stay in registers. */
    widen(t->k, t->head_dim * KV_BLOCK, w.wide);
    for (size_t i = 0, n; i < end; i += n) {
        n = next_queries(t, i, &qs);
        if (n == QUERIES)
            scores_of(t, &w, qs, QUERIES);
        else if (n == FEW_QUERIES)
            scores_of(t, &w, qs, FEW_QUERIES);
        else
            for (size_t j = 0; j < n; j++, qs.first++)
                scores_of(t, &w, qs, 1);
    }
    widen(t->v, size_min(t->n_seen + t->n_tokens - 1, KV_BLOCK) * t->v_stride, w.wide);
    for (size_t i = 0, n; i < end; i += n) {
        n = next_queries(t, i, &qs);
        prefetch_out(t, i, n);
        if (n == QUERIES)
            values_of(t, &w, qs, QUERIES);
        else if (n == FEW_QUERIES)
            values_of(t, &w, qs, FEW_QUERIES);
        else
            for (size_t j = 0; j < n; j++, qs.first++)
                values_of(t, &w, qs, 1);
    }
}
