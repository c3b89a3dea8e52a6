/*
 * Products of ternary weights in R1-256 on tensor cores: what linear_few and linear_many share, and
 * linear_few. linear_few is for passes whose time is that of reading the weights.
 *
 * Lines need no transposition for mma: any order of columns is correct if weights and activations
 * are in the same order. A 32-bit word of a line, masked, has four columns. Of each four lanes,
 * lane t uses the words of bytes 16 t .. 16 t + 15 of a line, and the activations of these columns.
 */
#ifndef CUDA_TERNARY_MMA_CUH
#define CUDA_TERNARY_MMA_CUH

#include "engine/cuda/kernels/products/cuda_ternary.cuh"

#define FEW_WARPS 4 /* warps of linear_few, which share the lines of FEW_ROWS rows */
#define FEW_LINES 3 /* lines that a warp loads ahead: 12 in all, 2,560 columns are 10 */

/* Where this lane's 16 bytes of line 0 of a row are, as an offset from the lines of row row0. The
 * row is number r, 0 or 1, of the two that a lane has in the mma tile of 16 rows from `first` on.
 * Lane 4 g + t has rows 2 g and 2 g + 1 as rows g and g + 8 of the mma, so that it receives both
 * rows of a pair (see linear_args). The last row takes the place of rows that do not exist. */
DEV uint32_t lane_row(const struct linear_args *a, uint32_t row0, uint32_t first, uint32_t r)
{
    const uint32_t row = first + thread_x() % 32 / 4 * 2 + r, last = a->n_rows - 1 - row0;
    return (row < last ? row : last) * a->n_lines * LINE_BYTES + thread_x() % 4 * 16;
}

/* Multiplies 16 rows by 8 tokens by the 64 columns of a field (see cuda_ternary.cuh). w: 16 bytes
 * of a line of the two rows of this lane; x: 16 activations of token (lane / 4). */
DEV void multiply_field(const struct words *w, uint32_t field, const struct words *x, int32_t *acc)
{
#pragma unroll
    for (uint32_t i = 0; i < 4; i += 2) {
        const uint32_t rows[4] = {
            w[0].at[i] >> 2 * field & FIELD_0, w[1].at[i] >> 2 * field & FIELD_0,
            w[0].at[i + 1] >> 2 * field & FIELD_0, w[1].at[i + 1] >> 2 * field & FIELD_0};
        mma_16x8x32(acc, rows, x->at + i);
    }
}

/* Adds the product of one line with n_tiles tiles of 8 tokens (1 or 2). q: the activations of this
 * lane in line 0, of token (lane / 4) of each tile. */
DEV void multiply_few_line(const struct words *w, const int8_t *const *q, uint32_t line,
                           uint32_t n_tiles, int32_t (*acc)[4])
{
    struct words x[4][FEW_TOKENS / 8];
#pragma unroll
    for (uint32_t field = 0; field < 4; field++)
#pragma unroll
        for (uint32_t n = 0; n < n_tiles; n++)
            x[field][n] = load_words(q[n] + line * LINE_COLS + field * FIELD_COLS);
#pragma unroll
    for (uint32_t field = 0; field < 4; field++)
#pragma unroll
        for (uint32_t n = 0; n < n_tiles; n++)
            multiply_field(w, field, &x[field][n], acc[n]);
}

/* Loads 16 bytes of one line of both rows of this lane. */
DEV void load_few(const uint8_t *lines, uint32_t line, const uint32_t *rows, struct words *w)
{
    w[0] = load_early(lines + line * LINE_BYTES + rows[0]);
    w[1] = load_early(lines + line * LINE_BYTES + rows[1]);
}

/* The sums of a warp over its lines, for the first n_tiles tiles of 8 tokens of the block. w has
 * the first FEW_LINES of the lines; when one has been multiplied, a later one takes its place.
 * n_tiles must be a compile-time constant in the caller. */
DEV void multiply_few(const struct linear_args *a, uint32_t n_tiles, const uint8_t *lines,
                      const uint32_t *rows, struct words (*w)[2], int32_t (*acc)[4])
{
    const uint32_t warp = thread_x() / 32, g = thread_x() % 32 / 4, t = thread_x() % 4;
    const uint32_t token0 = block_y() * FEW_TOKENS;
    const int8_t *q[FEW_TOKENS / 8];
#pragma unroll
    for (uint32_t n = 0; n < n_tiles; n++) {
        const uint32_t token = token0 + 8 * n + g;
        /* the last token takes the place of those that do not exist */
        const uint32_t existing = token < a->n_tokens ? token : a->n_tokens - 1;
        q[n] = a->q + (uint64_t)existing * a->n_lines * LINE_COLS + 16 * t;
    }
    for (uint32_t first = warp; first < a->n_lines; first += FEW_LINES * FEW_WARPS)
#pragma unroll
        for (uint32_t i = 0; i < FEW_LINES; i++) {
            const uint32_t line = first + i * FEW_WARPS, later = line + FEW_LINES * FEW_WARPS;
            if (line >= a->n_lines)
                break;
            multiply_few_line(w[i], q, line, n_tiles, acc);
            if (later < a->n_lines)
                load_few(lines, later, rows, w[i]);
        }
}

/* Up to FEW_TOKENS tokens times FEW_ROWS rows. Each warp has every FEW_WARPS-th line of the rows.
 * Grid: sets of FEW_ROWS rows, sets of FEW_TOKENS tokens. */
KERNEL_EARLY(linear_few, linear_args, FEW_THREADS)
{
    /* Of each warp, of even and odd rows, of each token. The padding lets the lanes of a warp use
     * different banks. */
    SHARED int32_t sums[FEW_WARPS][2][FEW_TOKENS][FEW_ROWS / 2 + 4];
    const uint32_t warp = thread_x() / 32, g = thread_x() % 32 / 4, t = thread_x() % 4;
    const uint32_t row0 = block_x() * FEW_ROWS, token0 = block_y() * FEW_TOKENS;
    const uint32_t rows[2] = {lane_row(&a, row0, 0, 0), lane_row(&a, row0, 0, 1)};
    const uint8_t *lines = a.lines + (uint64_t)row0 * a.n_lines * LINE_BYTES;
    struct words w[FEW_LINES][2];
    int32_t acc[FEW_TOKENS / 8][4] = {{0}}, pair[2] = {0, 0};
#pragma unroll
    for (uint32_t i = 0; i < FEW_LINES; i++)
        if (warp + i * FEW_WARPS < a.n_lines)
            load_few(lines, warp + i * FEW_WARPS, rows, w[i]);

    wait_for_grid();
    if (a.n_tokens - token0 > 8)
        multiply_few(&a, 2, lines, rows, w, acc);
    else
        multiply_few(&a, 1, lines, rows, w, acc);

    /* The token and the pair of rows whose results this thread stores (no row if no such token
     * exists). It loads what they need before it waits for the other warps. */
    const uint32_t my_token = thread_x() / (FEW_ROWS / 2), my_pair = thread_x() % (FEW_ROWS / 2);
    const bool exists = token0 + my_token < a.n_tokens;
    const uint32_t token = exists ? token0 + my_token : token0;
    const uint32_t row = exists ? row0 + 2 * my_pair : a.n_rows;
    float *y = a.y + (uint64_t)token * a.y_stride;
    const struct result_pair before = pair_before(&a, row, y);
    const struct row_scale scale = {a.q_s[token], a.q_sum[token]};
#pragma unroll
    for (uint32_t n = 0; n < FEW_TOKENS / 8; n++)
#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
            sums[warp][i / 2][8 * n + 2 * t + i % 2][g] = acc[n][i];
    block_sync();
    for (uint32_t i = 0; i < FEW_WARPS; i++)
#pragma unroll
        for (uint32_t r = 0; r < 2; r++)
            pair[r] += sums[i][r][my_token][my_pair];
    const struct token_factors f = factors_of(&a, scale);
    store_pair(&a, row, y, before, &f, pair);
}

#endif
