/*
 * ternary_matmul for AMX and a medium number of tokens (struct ternary_gemm `medium`), at most 16:
 * batched decoding and verification of drafts. The weights are read from memory once for all
 * tokens.
 *
 * Codes are the first operand: a field of a line of R1-256 (see ternary_ref.c) is 64 consecutive
 * columns of a row, so unpacking is a shift and a mask without transposition. Activations are the
 * second operand: a row of an AMX tile has four columns of each of 16 tokens
 * (gather_tokens_avx512). The sums are row-major and are transposed once for all columns.
 *
 * A strip is 64 rows in two halves. One line of a half is unpacked to the first-level cache while
 * the other half is multiplied, also across strips. Activations pass through that cache once per
 * strip, so more rows per strip cost fewer cache fills. The sums of a strip are transposed during
 * the next one. The rows that are read next are prefetched in four streams.
 */
#include "engine/cpu/x86/amx_tile.h"
#include "engine/cpu/x86/kernels_x86.h"

#include <stdbool.h>

#define HALF_ROWS (2 * SIDE) /* rows of two AMX tiles of sums */
#define STRIP_ROWS (2 * HALF_ROWS)
#define STRIP_TILES (STRIP_ROWS / SIDE)
#define FIELD_BYTES (2 * TILE_BYTES) /* one field of a line of HALF_ROWS rows: two AMX tiles */
#define HALF_BYTES (STEPS_PER_LINE * FIELD_BYTES)
#define UNPACK_ROWS 8 /* rows unpacked between the two tile products of a field */
#define STREAMS 4
_Static_assert(STEPS_PER_LINE *UNPACK_ROWS == HALF_ROWS,
               "the products of a line unpack half a strip");
_Static_assert(UNPACK_ROWS % STREAMS == 0, "a prefetch for each stream");

/* Memory to prefetch, in STREAMS streams of stream_bytes each. */
struct ahead {
    uintptr_t at;
    size_t stream_bytes;
};

/* One line of each of HALF_ROWS rows; only the first n_rows rows exist. */
struct half {
    const uint8_t *line;
    size_t row_bytes, n_rows;
};

/* Sums of a strip that are not all in acc yet. AMX tile i has rows 16 i .. 16 i + 15. */
struct sums {
    _Alignas(64) int32_t tiles[STRIP_TILES][SIDE][SIDE];
    size_t next, n; /* tiles next .. n - 1 must still be stored to acc */
    size_t n_rows;
    int32_t *acc;
};

/* State that passes from strip to strip. */
struct stage {
    _Alignas(64) uint8_t codes[2][HALF_BYTES]; /* one line of the rows of each half */
    struct sums sums;
    struct ahead ahead;
};

/* Unpack the four fields of rows r0 .. r0 + UNPACK_ROWS - 1 of a half; rows past n_rows are zeros.
 * Also prefetch UNPACK_ROWS lines at `ahead` to the second-level cache, and advance it. */
BN_FORCE_INLINE void unpack_part(const struct half *h, size_t r0, struct ahead *ahead, uint8_t *out)
{
    const __m512i mask = _mm512_set1_epi8(3);
    const uint8_t *from = h->line + r0 * h->row_bytes;
#pragma GCC unroll 8
    for (size_t r = r0; r < r0 + UNPACK_ROWS; r++, from += h->row_bytes) {
        const __m512i v = r < h->n_rows ? _mm512_loadu_si512(from) : _mm512_setzero_si512();
        uint8_t *to = out + r * 64;
        _mm512_store_si512(to, _mm512_and_si512(v, mask));
        _mm512_store_si512(to + FIELD_BYTES, _mm512_and_si512(_mm512_srli_epi32(v, 2), mask));
        _mm512_store_si512(to + 2 * FIELD_BYTES, _mm512_and_si512(_mm512_srli_epi32(v, 4), mask));
        _mm512_store_si512(to + 3 * FIELD_BYTES, _mm512_and_si512(_mm512_srli_epi32(v, 6), mask));
        _mm_prefetch((const char *)(ahead->at + r % STREAMS * ahead->stream_bytes +
                                    (r - r0) / STREAMS * LINE_BYTES),
                     _MM_HINT_T1);
    }
    ahead->at += UNPACK_ROWS / STREAMS * LINE_BYTES;
}

BN_FORCE_INLINE void unpack_half(const struct half *h, struct ahead *ahead, uint8_t *out)
{
    for (size_t r = 0; r < HALF_ROWS; r += UNPACK_ROWS)
        unpack_part(h, r, ahead, out);
}

/* Multiply one field of the first 16 rows of an unpacked half with its AMX tile of activations. AMX
 * tiles 0 and 1 have the sums of half 0, tiles 2 and 3 those of half 1. */
BN_FORCE_INLINE void multiply_first(int half, const uint8_t *codes, const int8_t *q)
{
    compiler_barrier();
    _tile_loadd(6, q, 64);
    _tile_loadd(7, codes, 64);
    if (half == 0)
        _tile_dpbusd(0, 7, 6);
    else
        _tile_dpbusd(2, 7, 6);
}

/* The other 16 rows. Call it after multiply_first, which loads the activations. */
BN_FORCE_INLINE void multiply_second(int half, const uint8_t *codes)
{
    _tile_loadd(7, codes + TILE_BYTES, 64);
    if (half == 0)
        _tile_dpbusd(1, 7, 6);
    else
        _tile_dpbusd(3, 7, 6);
}

/* Multiply one line of the rows of a half, unpacked in `codes`. Between the products, unpack the
 * next half to `out`. */
BN_FORCE_INLINE void multiply_half(int half, const uint8_t *codes, const int8_t *q,
                                   const struct half *next, struct ahead *ahead, uint8_t *out)
{
#pragma GCC unroll 4
    for (size_t f = 0; f < STEPS_PER_LINE; f++) {
        multiply_first(half, codes + f * FIELD_BYTES, q + f * TILE_BYTES);
        unpack_part(next, f * UNPACK_ROWS, ahead, out);
        multiply_second(half, codes + f * FIELD_BYTES);
    }
}

/* Store the next AMX tile of sums, minus the sums of q, to acc, which is token-major. */
static void store_tile(struct sums *s, const struct ternary_batch *batch)
{
    int32_t(*tile)[SIDE] = s->tiles[s->next];
    const size_t row = SIDE * s->next++, n_rows = s->n_rows - row;
    const __mmask16 valid = n_rows < SIDE ? (__mmask16)((1u << n_rows) - 1) : (__mmask16)~0u;
    __m512i v[SIDE];
#pragma GCC unroll 16
    for (size_t r = 0; r < SIDE; r++)
        v[r] = _mm512_load_si512(tile[r]);
    transpose(v);
#pragma GCC unroll 16
    for (size_t t = 0; t < SIDE; t++)
        if (t < batch->n_tokens)
            _mm512_mask_storeu_epi32(s->acc + row + t * batch->acc_stride, valid,
                                     _mm512_sub_epi32(v[t], _mm512_set1_epi32(batch->q_sums[t])));
}

static void store_pending_tiles(struct sums *s, const struct ternary_batch *batch)
{
    while (s->next < s->n)
        store_tile(s, batch);
}

/* Copy the sums of a strip from the AMX tiles to s. Before that, store the previous sums to acc. */
BN_FORCE_INLINE void save_sums(struct sums *s, const struct ternary_batch *batch, size_t n_rows,
                               int32_t *acc)
{
    store_pending_tiles(s, batch);
    _tile_stored(0, s->tiles[0], sizeof s->tiles[0][0]);
    _tile_stored(1, s->tiles[1], sizeof s->tiles[0][0]);
    _tile_stored(2, s->tiles[2], sizeof s->tiles[0][0]);
    _tile_stored(3, s->tiles[3], sizeof s->tiles[0][0]);
    compiler_barrier();
    s->next = 0;
    s->n = (n_rows + SIDE - 1) / SIDE;
    s->n_rows = n_rows;
    s->acc = acc;
}

/* Multiply a strip whose first n_rows rows exist. On entry the first line of its first half must be
 * in codes[0]; on return the first line of the half at `after` is there, with as many rows as the
 * first half of this strip. If n_rows is the constant STRIP_ROWS, the inlined code has no tests for
 * missing rows. */
BN_FORCE_INLINE void multiply_strip(const uint8_t *row, size_t n_lines, size_t n_rows,
                                    const uint8_t *after, const struct ternary_batch *batch,
                                    struct stage *s)
{
    const size_t row_bytes = n_lines * LINE_BYTES;
    const size_t n_first = n_rows < HALF_ROWS ? n_rows : HALF_ROWS;
    struct ahead ahead = s->ahead; /* a local copy: the compiler then knows that stores to codes do
                                      not change it */
    struct half first = {row, row_bytes, n_first};
    struct half second = {row + n_first * row_bytes, row_bytes, n_rows - n_first};
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t l = 0; l < n_lines; l++) {
        const int8_t *q = batch->q + l * STEPS_PER_LINE * TILE_BYTES;
        multiply_half(0, s->codes[0], q, &second, &ahead, s->codes[1]);
        if (s->sums.next < s->sums.n)
            store_tile(&s->sums, batch);
        second.line += LINE_BYTES;
        first.line = l + 1 < n_lines ? first.line + LINE_BYTES : after;
        multiply_half(1, s->codes[1], q, &first, &ahead, s->codes[0]);
        if (s->sums.next < s->sums.n)
            store_tile(&s->sums, batch);
    }
}

void ternary_matmul_amx_medium(const struct ternary_mat *w, size_t row0, size_t row1,
                               const struct ternary_batch *batch)
{
    struct stage s;
    const size_t row_bytes = w->n_lines * LINE_BYTES, n_rows = row1 - row0;
    const uint8_t *row = w->lines + row0 * row_bytes;
    bool is_ready = false; /* codes[0] has the first line of the first half of the strip */
    s.ahead = (struct ahead){(uintptr_t)row, STRIP_ROWS / STREAMS * row_bytes};
    s.sums.next = s.sums.n = 0;
    configure_tiles();
    for (size_t r = 0; r < n_rows; r += STRIP_ROWS, row += STRIP_ROWS * row_bytes) {
        const size_t n = n_rows - r;
        const uint8_t *next = row + STRIP_ROWS * row_bytes;
        if (!is_ready)
            unpack_half(&(struct half){row, row_bytes, n}, &s.ahead, s.codes[0]);
        /* Only whole halves are unpacked in advance. If the next half is missing or not whole, a
         * half at `row` is unpacked in its place, and its codes are not used. Prefetching `row` is
         * harmless, too. */
        is_ready = n >= STRIP_ROWS + HALF_ROWS;
        s.ahead.at = (uintptr_t)(n > STRIP_ROWS ? next : batch->ahead ? batch->ahead : row);
        if (n >= STRIP_ROWS)
            multiply_strip(row, w->n_lines, STRIP_ROWS, is_ready ? next : row, batch, &s);
        else
            multiply_strip(row, w->n_lines, n, row, batch, &s);
        save_sums(&s.sums, batch, n < STRIP_ROWS ? n : STRIP_ROWS, batch->acc + r);
    }
    _tile_release();
    store_pending_tiles(&s.sums, batch);
}
