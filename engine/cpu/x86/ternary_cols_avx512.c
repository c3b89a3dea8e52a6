/*
 * ternary_columns, live_gates and live_inputs for AVX-512 VNNI.
 *
 * A line has the codes of 256 rows of one column, in four fields of 64 rows: a byte has four rows,
 * one for each field. In memory the columns follow one another. add_line loads the lines of four
 * columns and interleaves them byte by byte in registers, so that a dword holds one byte of each
 * column. After a field is masked, a dword holds the codes of one row in the four columns: one
 * VPDPBUSD adds four columns to 16 rows. Fields are masked and never shifted, as in
 * ternary_avx512.c. The order of the rows is restored at the end.
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/x86/kernels_x86.h"

#include <immintrin.h>
#include <string.h>

#define COLS 4
/* Sets of COLS columns in a round; a round is prefetched during the previous one. More sets save
 * loads and stores of sums, but would have more cache misses in flight than a core supports. */
#define SETS 2
#define ROUND_COLS (COLS * SETS)
#define LINE_VECS 16 /* registers of sums of a line: field f, vector v at 4 f + v */

/* The list of columns, in n_sets sets of COLS. */
struct live {
    const int32_t *cols; /* (n) */
    size_t n, n_sets;
    const int8_t *q; /* inputs of all columns */
};

/* Columns that are added to the sums together. */
struct round {
    const uint8_t *at[ROUND_COLS], *next[ROUND_COLS]; /* columns of this round, of the next one */
    int32_t q[SETS];                                  /* the four inputs of a set, as bytes */
    size_t n_sets;
    size_t ahead_set, ahead_line; /* position of the prefetches in `next` */
};

/* Fill b with the sets from `set0` on. Set s has columns s, s + n_sets, ... of the list, so that
 * memory is read in four streams. If the list is too short for a whole set, the missing columns are
 * its last column, with the input 0. If there is no next round, `next` has other columns of the
 * list, because a prefetch needs an address. */
static void fill_block(const struct ternary_cols *w, const struct live *live, size_t set0,
                       struct round *b)
{
    const size_t col_bytes = w->n_lines * LINE_BYTES, last = live->n - 1;
    int8_t bytes[ROUND_COLS] = {0};
    b->n_sets = live->n_sets - set0 < SETS ? live->n_sets - set0 : SETS;
    for (size_t s = 0; s < b->n_sets; s++)
        for (size_t i = 0; i < COLS; i++) {
            const size_t at = i * live->n_sets + set0 + s;
            const size_t next = at + SETS < last ? at + SETS : last;
            const int32_t col = live->cols[at < last ? at : last];
            b->at[COLS * s + i] = w->lines + (size_t)col * col_bytes;
            b->next[COLS * s + i] = w->lines + (size_t)live->cols[next] * col_bytes;
            bytes[COLS * s + i] = at <= last ? live->q[col] : 0;
        }
    memcpy(b->q, bytes, sizeof bytes);
    b->ahead_set = b->ahead_line = 0;
}

/* Add four columns to vector v of each field. A dword of `codes` has one byte of each
 * column, and each of its fields one row of each. */
BN_FORCE_INLINE void add_fields(__m512i sum[LINE_VECS], int v, __m512i codes, __m512i q)
{
    const __m512i c0 = _mm512_and_si512(codes, _mm512_set1_epi8(0x03));
    const __m512i c1 = _mm512_and_si512(codes, _mm512_set1_epi8(0x0c));
    const __m512i c2 = _mm512_and_si512(codes, _mm512_set1_epi8(0x30));
    const __m512i c3 = _mm512_and_si512(codes, _mm512_set1_epi8((char)0xc0));
    sum[v] = _mm512_dpbusd_epi32(sum[v], c0, q);
    sum[4 + v] = _mm512_dpbusd_epi32(sum[4 + v], c1, q);
    sum[8 + v] = _mm512_dpbusd_epi32(sum[8 + v], c2, q);
    sum[12 + v] = _mm512_dpbusd_epi32(sum[12 + v], c3, q);
}

/* Add line l of the columns of a round to acc, and prefetch as many lines of the next round. */
static void add_line(struct round *b, size_t n_lines, size_t l, int32_t *acc)
{
    __m512i sum[LINE_VECS];
#pragma GCC unroll 16
    for (int i = 0; i < LINE_VECS; i++)
        sum[i] = _mm512_load_si512(acc + 16 * i);
    for (size_t s = 0; s < b->n_sets; s++) {
        __m512i line[COLS];
#pragma GCC unroll 4
        for (size_t i = 0; i < COLS; i++) {
            line[i] = _mm512_load_si512(b->at[COLS * s + i] + l * LINE_BYTES);
            _mm_prefetch(
                (const char *)(b->next[COLS * b->ahead_set + i] + b->ahead_line * LINE_BYTES),
                _MM_HINT_T0);
        }
        if (++b->ahead_line == n_lines) {
            b->ahead_line = 0;
            b->ahead_set++;
        }
        const __m512i q = _mm512_set1_epi32(b->q[s]);
        const __m512i ab0 = _mm512_unpacklo_epi8(line[0], line[1]);
        const __m512i ab1 = _mm512_unpackhi_epi8(line[0], line[1]);
        const __m512i cd0 = _mm512_unpacklo_epi8(line[2], line[3]);
        const __m512i cd1 = _mm512_unpackhi_epi8(line[2], line[3]);
        add_fields(sum, 0, _mm512_unpacklo_epi16(ab0, cd0), q);
        add_fields(sum, 1, _mm512_unpackhi_epi16(ab0, cd0), q);
        add_fields(sum, 2, _mm512_unpacklo_epi16(ab1, cd1), q);
        add_fields(sum, 3, _mm512_unpackhi_epi16(ab1, cd1), q);
    }
#pragma GCC unroll 16
    for (int i = 0; i < LINE_VECS; i++)
        _mm512_store_si512(acc + 16 * i, sum[i]);
}

/* Field f of a line: divide the sums by 4^f, because its codes were masked and not shifted,
 * subtract q_sum and restore the order of the rows. On entry, quarter i of vector v has rows
 * 16 i + 4 v .. 16 i + 4 v + 3. */
static void finish_field(int f, int32_t q_sum, int32_t *acc)
{
    const __m512i less = _mm512_set1_epi32(q_sum);
    __m512i v[4];
    for (int i = 0; i < 4; i++)
        v[i] = _mm512_sub_epi32(
            _mm512_sra_epi32(_mm512_load_si512(acc + 16 * i), _mm_cvtsi32_si128(2 * f)), less);
    const __m512i low01 = _mm512_shuffle_i32x4(v[0], v[1], 0x44);
    const __m512i low23 = _mm512_shuffle_i32x4(v[2], v[3], 0x44);
    const __m512i high01 = _mm512_shuffle_i32x4(v[0], v[1], 0xee);
    const __m512i high23 = _mm512_shuffle_i32x4(v[2], v[3], 0xee);
    _mm512_store_si512(acc, _mm512_shuffle_i32x4(low01, low23, 0x88));
    _mm512_store_si512(acc + 16, _mm512_shuffle_i32x4(low01, low23, 0xdd));
    _mm512_store_si512(acc + 32, _mm512_shuffle_i32x4(high01, high23, 0x88));
    _mm512_store_si512(acc + 48, _mm512_shuffle_i32x4(high01, high23, 0xdd));
}

void ternary_columns_avx512(const struct ternary_cols *w, const int32_t *cols, size_t n,
                            const int8_t *q, int32_t *acc)
{
    int32_t q_sum = 0;
    memset(acc, 0, w->n_lines * LINE_ROWS * sizeof *acc);
    for (size_t i = 0; i < n; i++)
        q_sum += q[cols[i]];
    const struct live live = {cols, n, (n + COLS - 1) / COLS, q};
    for (size_t s = 0; s < live.n_sets; s += SETS) {
        struct round b;
        fill_block(w, &live, s, &b);
        for (size_t l = 0; l < w->n_lines; l++)
            add_line(&b, w->n_lines, l, acc + l * LINE_ROWS);
    }
    for (size_t l = 0; l < w->n_lines; l++)
        for (int f = 0; f < 4; f++)
            finish_field(f, q_sum, acc + l * LINE_ROWS + 64 * (size_t)f);
}

/* Append `from` plus the number of each set bit to out. Returns the count, but always writes 16
 * numbers (LIVE_SLACK). */
BN_FORCE_INLINE size_t append_numbers(uint32_t mask, size_t from, int32_t *out)
{
    const __m512i step = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i numbers = _mm512_add_epi32(_mm512_set1_epi32((int32_t)from), step);
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi32((__mmask16)mask, numbers));
    return (size_t)__builtin_popcount(mask);
}

size_t live_gates_avx512(const float *gate, size_t n, int32_t *out)
{
    size_t n_live = 0;
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 valid = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : 0xffff;
        const __m512 g = _mm512_maskz_loadu_ps(valid, gate + i);
        const __mmask16 live = _mm512_mask_cmp_ps_mask(valid, g, _mm512_setzero_ps(), _CMP_NLE_UQ);
        n_live += append_numbers(live, i, out + n_live);
    }
    return n_live;
}

size_t live_inputs_avx512(const int8_t *q, size_t n, int32_t *out)
{
    size_t n_live = 0;
    for (size_t i = 0; i < n; i += 64) {
        const __mmask64 valid = n - i < 64 ? ((__mmask64)1 << (n - i)) - 1 : ~(__mmask64)0;
        const __m512i v = _mm512_maskz_loadu_epi8(valid, q + i);
        const __mmask64 live = _mm512_test_epi8_mask(v, v);
        for (size_t j = 0; j < 64; j += 16)
            n_live += append_numbers((uint32_t)(live >> j) & 0xffff, i + j, out + n_live);
    }
    return n_live;
}
