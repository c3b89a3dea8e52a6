/*
 * Products of many tokens with ternary weights in R1-256, on tensor cores.
 *
 * Lines need no transposition for mma: any order of columns is correct if weights and activations
 * are in the same order. A 32-bit word of a line, masked, has four columns. Of each four lanes,
 * lane t uses the words of bytes 16 t .. 16 t + 15 of a line, and the activations of these columns.
 * Activations of neighbouring tokens are LINE_STRIDE bytes apart in shared memory: a warp loads 16
 * bytes per lane for eight lanes at a time, and these then use every bank once.
 */
#ifndef CUDA_TERNARY_MANY_CUH
#define CUDA_TERNARY_MANY_CUH

#include "engine/cuda/kernels/cuda_ternary.cuh"

/* Starts copying the activations of one line, for MANY_TOKENS tokens, to shared memory (`tile`);
 * zeros past the last token. */
DEV void load_tile(const struct linear_args *a, uint32_t token0, uint32_t line, int8_t *tile)
{
    for (uint32_t i = thread_x(); i < MANY_TOKENS * LINE_COLS / 16; i += n_threads_x()) {
        const uint32_t token = i / (LINE_COLS / 16), column = i % (LINE_COLS / 16) * 16;
        const bool exists = token0 + token < a->n_tokens;
        const uint64_t at = (uint64_t)(exists ? token0 + token : token0) * a->n_lines + line;
        copy_async(tile + token * LINE_STRIDE + column, a->q + at * LINE_COLS + column, exists);
    }
}

/* Multiplies 16 rows by 8 tokens by 64 columns: field `shift / 2` (see
 * cuda_ternary.cuh) of the four words of each row. */
DEV void multiply_field(const struct words *w, uint32_t shift, const int8_t *x, int32_t *acc)
{
    const struct words b = load_words(x);
#pragma unroll
    for (uint32_t i = 0; i < 4; i += 2) {
        const uint32_t rows[4] = {w[0].at[i] >> shift & FIELD_0, w[1].at[i] >> shift & FIELD_0,
                                  w[0].at[i + 1] >> shift & FIELD_0,
                                  w[1].at[i + 1] >> shift & FIELD_0};
        mma_16x8x32(acc, rows, b.at + i);
    }
}

/* Loads 16 bytes of one line for each of the 2 * n_m rows of this lane. */
DEV void load_rows(const uint8_t *(*rows)[2], uint32_t n_m, uint32_t line, struct words (*w)[2])
{
#pragma unroll
    for (uint32_t m = 0; m < n_m; m++)
#pragma unroll
        for (uint32_t r = 0; r < 2; r++)
            w[m][r] = load_words(rows[m][r] + (uint64_t)line * LINE_BYTES);
}

/* The product of the rows of a thread block with MANY_TOKENS tokens. While one line is multiplied,
 * the weights and activations of the next line are loaded. A warp has n_m mma tiles of 16 rows; n_m
 * is 1 or 2 and must be a compile-time constant in the caller. In each mma tile, lane 4 g + t has
 * rows 2 g and 2 g + 1 as rows g and g + 8 of the mma, so that one lane receives both rows of a
 * pair (see linear_args). */
DEV void multiply_many(const struct linear_args *a, uint32_t n_m)
{
    SHARED_WIDE int8_t tiles[2][MANY_TOKENS * LINE_STRIDE];
    SHARED_WIDE struct token_factors factors[MANY_TOKENS];
    const uint32_t g = thread_x() % 32 / 4, t = thread_x() % 4;
    const uint32_t row0 = (block_x() * n_threads_x() + thread_x()) / 32 * 16 * n_m + 2 * g;
    const uint32_t token0 = block_y() * MANY_TOKENS;
    const uint8_t *rows[2][2];
    int32_t acc[2][MANY_TOKENS / 8][4] = {{{0}}};
#pragma unroll
    for (uint32_t m = 0; m < n_m; m++)
#pragma unroll
        for (uint32_t r = 0; r < 2; r++) {
            const uint32_t row = row0 + 16 * m + r;
            rows[m][r] =
                a->lines +
                (uint64_t)(row < a->n_rows ? row : a->n_rows - 1) * a->n_lines * LINE_BYTES +
                16 * t;
        }
    struct words next[2][2];
    load_tile(a, token0, 0, tiles[0]);
    load_rows(rows, n_m, 0, next);
    for (uint32_t i = thread_x(); i < MANY_TOKENS; i += n_threads_x())
        if (token0 + i < a->n_tokens) {
            const struct row_scale scale = {a->q_s[token0 + i], a->q_sum[token0 + i]};
            factors[i] = factors_of(a, scale);
        }
    for (uint32_t line = 0; line < a->n_lines; line++) {
        const int8_t *tile = tiles[line % 2];
        struct words w[2][2];
#pragma unroll
        for (uint32_t m = 0; m < n_m; m++)
#pragma unroll
            for (uint32_t r = 0; r < 2; r++)
                w[m][r] = next[m][r];
        copy_async_wait();
        block_sync(); /* this line has arrived, and no thread still reads the previous one */
        if (line + 1 < a->n_lines) {
            load_tile(a, token0, line + 1, tiles[(line + 1) % 2]);
            load_rows(rows, n_m, line + 1, next);
        }
#pragma unroll
        for (uint32_t field = 0; field < 4; field++)
#pragma unroll
            for (uint32_t n = 0; n < MANY_TOKENS / 8; n++)
#pragma unroll
                for (uint32_t m = 0; m < n_m; m++)
                    multiply_field(w[m], 2 * field,
                                   tile + (8 * n + g) * LINE_STRIDE + 64 * field + 16 * t,
                                   acc[m][n]);
    }
#pragma unroll
    for (uint32_t n = 0; n < MANY_TOKENS / 8; n++)
#pragma unroll
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t token = 8 * n + 2 * t + i;
            if (token0 + token >= a->n_tokens)
                continue;
            const struct token_factors f = factors[token];
            float *y = a->y + (uint64_t)(token0 + token) * a->y_stride;
#pragma unroll
            for (uint32_t m = 0; m < n_m; m++) {
                const int32_t pair[2] = {acc[m][n][i], acc[m][n][2 + i]};
                const uint32_t row = row0 + 16 * m;
                store_pair(a, row, y, pair_before(a, row, y), &f, pair);
            }
        }
}

/* Grid: groups of MANY_ROWS rows, groups of MANY_TOKENS tokens. */
KERNEL(linear_many, linear_args, 128)
{
    multiply_many(&a, 2);
}

/* For few rows or tokens: twice as many thread blocks, each with half the rows of linear_many. */
KERNEL(linear_half, linear_args, 128)
{
    multiply_many(&a, 1);
}

#endif
