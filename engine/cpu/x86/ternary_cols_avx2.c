/*
 * ternary_columns, live_gates and live_inputs for AVX2. See ternary_cols_avx512.c for the layout.
 *
 * VPMADDUBSW adds pairs of products to int16 (fields are masked and not shifted, so a pair is at
 * most 2 * 128 * 127 = 32,512 in magnitude), and VPMADDWD adds two of these to one int32 per row.
 * The loop over columns handles a quarter of a line, 64 rows, whose sums fill eight of the 16
 * registers.
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/x86/kernels_x86.h"

#include <immintrin.h>
#include <string.h>

#define COLS 4
/* Sets of COLS columns in a round; a round is prefetched during the previous one. More sets save
 * loads and stores of sums, of which AVX2 needs twice as many per line as AVX-512. */
#define SETS 6
#define HALF 32 /* bytes of half a line, which are 32 rows of each field */

/* Columns that are added to the sums together. */
struct round {
    const uint8_t *at[COLS * SETS]; /* first line of each column, set by set */
    int32_t q[SETS];                /* the four inputs of a set, as bytes */
    size_t n_sets;
};

/* Fill b with the sets from `set0` on, chosen as in ternary_cols_avx512.c; n_all is the number of
 * all sets. Prefetches the columns of the next round; after the last round, other columns of the
 * list, which has no effect on the result. */
static void fill_block(const struct ternary_cols *w, const int32_t *cols, size_t n, size_t set0,
                       const int8_t *q, struct round *b)
{
    const size_t n_all = (n + COLS - 1) / COLS, col_bytes = w->n_lines * LINE_BYTES;
    int8_t bytes[COLS * SETS] = {0};
    b->n_sets = n_all - set0 < SETS ? n_all - set0 : SETS;
    for (size_t s = 0; s < b->n_sets; s++)
        for (size_t i = 0; i < COLS; i++) {
            const size_t at = i * n_all + set0 + s;
            const int32_t col = cols[at < n ? at : n - 1];
            b->at[COLS * s + i] = w->lines + (size_t)col * col_bytes;
            bytes[COLS * s + i] = at < n ? q[col] : 0;
            const size_t next = at + SETS;
            const uint8_t *ahead = w->lines + (size_t)cols[next < n ? next : n - 1] * col_bytes;
            for (size_t l = 0; l < w->n_lines; l++)
                _mm_prefetch((const char *)(ahead + l * LINE_BYTES), _MM_HINT_T0);
        }
    memcpy(b->q, bytes, sizeof bytes);
}

/* Add field f of two vectors of eight rows with four columns each. f is a constant after
 * unrolling. */
BN_FORCE_INLINE void add_field(__m256i sum[2], __m256i v0, __m256i v1, int f, __m256i q)
{
    const __m256i mask = _mm256_set1_epi8((char)(3 << 2 * f)), one = _mm256_set1_epi16(1);
    const __m256i p0 = _mm256_maddubs_epi16(_mm256_and_si256(v0, mask), q);
    const __m256i p1 = _mm256_maddubs_epi16(_mm256_and_si256(v1, mask), q);
    sum[0] = _mm256_add_epi32(sum[0], _mm256_madd_epi16(p0, one));
    sum[1] = _mm256_add_epi32(sum[1], _mm256_madd_epi16(p1, one));
}

BN_FORCE_INLINE __m256i load_line(const uint8_t *line)
{
    return _mm256_load_si256((const __m256i *)(const void *)line);
}

/* Of the 32 bytes from byte `at` on of each column, add the low or the high half of each 16-byte
 * lane. acc points to the sums of the rows of byte `at`. */
BN_FORCE_INLINE void add_half_lanes(const struct round *b, size_t at, int high, int32_t *acc)
{
    __m256i sum[4][2];
#pragma GCC unroll 4
    for (int f = 0; f < 4; f++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++)
            sum[f][v] = _mm256_load_si256((void *)(acc + 64 * f + 16 * high + 8 * v));
    for (size_t s = 0; s < b->n_sets; s++) {
        const uint8_t *const *col = b->at + COLS * s;
        const __m256i l0 = load_line(col[0] + at), l1 = load_line(col[1] + at);
        const __m256i l2 = load_line(col[2] + at), l3 = load_line(col[3] + at);
        const __m256i ab = high ? _mm256_unpackhi_epi8(l0, l1) : _mm256_unpacklo_epi8(l0, l1);
        const __m256i cd = high ? _mm256_unpackhi_epi8(l2, l3) : _mm256_unpacklo_epi8(l2, l3);
        const __m256i v0 = _mm256_unpacklo_epi16(ab, cd), v1 = _mm256_unpackhi_epi16(ab, cd);
        const __m256i q = _mm256_set1_epi32(b->q[s]);
#pragma GCC unroll 4
        for (int f = 0; f < 4; f++)
            add_field(sum[f], v0, v1, f, q);
    }
#pragma GCC unroll 4
    for (int f = 0; f < 4; f++)
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++)
            _mm256_store_si256((void *)(acc + 64 * f + 16 * high + 8 * v), sum[f][v]);
}

/* Field f of half a line: divide the sums by the factor of the field, subtract q_sum and restore
 * the order of the rows. On entry, half i of vector v has rows 16 i + 4 v .. 16 i + 4 v + 3. */
static void finish_field(int f, int32_t q_sum, int32_t *acc)
{
    __m256i v[4];
    for (int i = 0; i < 4; i++)
        v[i] = _mm256_sub_epi32(
            _mm256_sra_epi32(_mm256_load_si256((void *)(acc + 8 * i)), _mm_cvtsi32_si128(2 * f)),
            _mm256_set1_epi32(q_sum));
    _mm256_store_si256((void *)acc, _mm256_permute2x128_si256(v[0], v[1], 0x20));
    _mm256_store_si256((void *)(acc + 8), _mm256_permute2x128_si256(v[2], v[3], 0x20));
    _mm256_store_si256((void *)(acc + 16), _mm256_permute2x128_si256(v[0], v[1], 0x31));
    _mm256_store_si256((void *)(acc + 24), _mm256_permute2x128_si256(v[2], v[3], 0x31));
}

void ternary_columns_avx2(const struct ternary_cols *w, const int32_t *cols, size_t n,
                          const int8_t *q, int32_t *acc)
{
    int32_t q_sum = 0;
    memset(acc, 0, w->n_lines * LINE_ROWS * sizeof *acc);
    for (size_t i = 0; i < n; i++)
        q_sum += q[cols[i]];
    for (size_t s = 0; s < (n + COLS - 1) / COLS; s += SETS) {
        struct round b;
        fill_block(w, cols, n, s, q, &b);
        for (size_t l = 0; l < 2 * w->n_lines; l++) {
            int32_t *const half = acc + l / 2 * LINE_ROWS + l % 2 * HALF;
            add_half_lanes(&b, l * HALF, 0, half);
            add_half_lanes(&b, l * HALF, 1, half);
        }
    }
    for (size_t l = 0; l < 2 * w->n_lines; l++)
        for (int f = 0; f < 4; f++)
            finish_field(f, q_sum, acc + l / 2 * LINE_ROWS + l % 2 * HALF + 64 * (size_t)f);
}

/* Append `from` plus the number of each set bit to out. Returns the count. */
static size_t append_numbers(uint32_t mask, size_t from, int32_t *out)
{
    size_t n = 0;
    for (; mask; mask &= mask - 1)
        out[n++] = (int32_t)from + __builtin_ctz(mask);
    return n;
}

size_t live_gates_avx2(const float *gate, size_t n, int32_t *out)
{
    size_t n_live = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 live =
            _mm256_cmp_ps(_mm256_loadu_ps(gate + i), _mm256_setzero_ps(), _CMP_NLE_UQ);
        n_live += append_numbers((uint32_t)_mm256_movemask_ps(live), i, out + n_live);
    }
    for (; i < n; i++)
        n_live += append_numbers(!(gate[i] <= 0.0f), i, out + n_live);
    return n_live;
}

size_t live_inputs_avx2(const int8_t *q, size_t n, int32_t *out)
{
    size_t n_live = 0, i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(q + i));
        const __m256i is_zero = _mm256_cmpeq_epi8(v, _mm256_setzero_si256());
        n_live += append_numbers(~(uint32_t)_mm256_movemask_epi8(is_zero), i, out + n_live);
    }
    for (; i < n; i++)
        n_live += append_numbers(q[i] != 0, i, out + n_live);
    return n_live;
}
