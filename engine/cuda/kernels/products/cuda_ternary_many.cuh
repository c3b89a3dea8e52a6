/*
 * Products of many tokens with ternary weights in R1-256, on tensor cores.
 *
 * The activations of MANY_STAGES lines have a tile in shared memory each: while one is multiplied,
 * the others are copied. At the end the sums of a thread block take the place of the tiles. So
 * neighbouring threads store neighbouring results, and a short loop computes them. Code for each
 * sum in the registers of a lane was slow: it did not fit in the instruction cache.
 */
#ifndef CUDA_TERNARY_MANY_CUH
#define CUDA_TERNARY_MANY_CUH

#include "engine/cuda/kernels/products/cuda_ternary_mma.cuh"

#define MANY_STAGES 3
#define MANY_TILE (MANY_TOKENS * LINE_COLS) /* bytes of a tile: 16 kB */
#define SUMS_BATCH 16                       /* results that a thread loads before it adds to them */
/* More bytes than the sums need: 128 rows in one part, or 64 in each of two, and the padding. */
#define SUMS_BYTES (40 << 10)

/* The share of a thread block in the product: n_rows rows and MANY_TOKENS tokens. A warp has 32
 * rows. With one part the block has 128 rows. With two it has 64, each half of the warps has two of
 * the four fields of every line, and the sums of both halves are added. */
struct many_block {
    uint32_t row0, token0, n_rows, n_parts;
};

/* Where the activations of a token in one field of a line are in a tile. Eight lanes that copy or
 * load 16 bytes each, of two neighbouring tokens, use every bank once. */
DEV uint32_t field_offset(uint32_t field, uint32_t token)
{
    return (field * MANY_TOKENS + token) * FIELD_COLS;
}

/* Starts copying the activations of one line for MANY_TOKENS tokens. Four threads copy a field of a
 * token. The last token takes the place of those that do not exist, whose results are not
 * stored. */
DEV void copy_tile(const struct linear_args *a, uint32_t token0, uint32_t line, int8_t *tile)
{
    const uint32_t n_row = a->n_lines * LINE_COLS, last = a->n_tokens - 1 - token0;
    const int8_t *from = a->q + (uint64_t)token0 * n_row + line * LINE_COLS;
    const uint32_t byte = thread_x() % 4 * 16;
#pragma unroll
    for (uint32_t i = thread_x() / 4; i < MANY_TOKENS; i += MANY_THREADS / 4) {
        const uint32_t at = (i < last ? i : last) * n_row + byte;
#pragma unroll
        for (uint32_t field = 0; field < 4; field++)
            copy_async(tile + field_offset(field, i) + byte, from + at + field * FIELD_COLS, true);
    }
}

/* Loads 16 bytes of one line for each of the four rows of this lane. lines: of the first row of the
 * block; rows: the offsets of the lane's rows from there. */
DEV void load_rows(const uint8_t *lines, uint32_t line, uint32_t (*rows)[2], struct words (*w)[2])
{
#pragma unroll
    for (uint32_t m = 0; m < 2; m++)
#pragma unroll
        for (uint32_t r = 0; r < 2; r++)
            w[m][r] = load_words(lines + line * LINE_BYTES + rows[m][r]);
}

/* Adds the product of n_fields fields of one line from field0 on. n_fields must be a compile-time
 * constant in the caller. */
DEV void multiply_line(struct words (*w)[2], uint32_t field0, uint32_t n_fields, const int8_t *tile,
                       int32_t (*acc)[MANY_TOKENS / 8][4])
{
    const uint32_t g = thread_x() % 32 / 4, t = thread_x() % 4;
    tile += field_offset(field0, 0) + 16 * t;
#pragma unroll
    for (uint32_t field = 0; field < n_fields; field++)
#pragma unroll
        for (uint32_t n = 0; n < MANY_TOKENS / 8; n++) {
            const struct words x = load_words(tile + field_offset(field, 8 * n + g));
#pragma unroll
            for (uint32_t m = 0; m < 2; m++)
                multiply_field(w[m], field0 + field, &x, acc[m][n]);
        }
}

/* Where the sum of a row of the block and a token is in shared memory. Odd rows have a plane of
 * their own. Lanes that write or read at the same time use different banks due to the padding. */
DEV uint32_t sum_index(const struct many_block *b, uint32_t part, uint32_t row, uint32_t token)
{
    const uint32_t stride = b->n_rows / 2 + 4, plane = MANY_TOKENS * stride + 16;
    return (2 * part + row % 2) * plane + token * stride + row / 2;
}

/* What all results of a row share: the factor after the scale, the bias, and the section. */
struct row_terms {
    float extra, bias;
    uint32_t section;
};
DEV struct row_terms terms_of(const struct linear_args *a, uint32_t row)
{
    const uint32_t section = section_of(a, row);
    /* adding -0 changes no bit */
    const struct row_terms terms = {a->extra[section], a->bias ? a->bias[row] : -0.0f, section};
    return terms;
}
/* The result of a row of the block and a token, with the operations of `scaled`. */
DEV float result_of(const struct many_block *b, const struct row_terms *terms, uint32_t row,
                    uint32_t token, const int32_t *sums, const struct token_factors *factors)
{
    int32_t acc = -factors[token].sum;
    for (uint32_t part = 0; part < b->n_parts; part++)
        acc += sums[sum_index(b, part, row, token)];
    return (float)acc * factors[token].at[terms->section] * terms->extra + terms->bias;
}

/* Stores the outputs of gates: a thread has two rows, of gate and up. */
DEV void store_gated(const struct linear_args *a, const struct many_block *b, uint32_t n_tokens,
                     const int32_t *sums, const struct token_factors *factors)
{
    const uint32_t row = thread_x() % (b->n_rows / 2) * 2, step = 2 * MANY_THREADS / b->n_rows;
    if (b->row0 + row >= a->n_rows)
        return;
    const struct row_terms gate = terms_of(a, b->row0 + row), up = terms_of(a, b->row0 + row + 1);
    float *y = a->y + (uint64_t)b->token0 * a->y_stride + (b->row0 + row) / 2;
#pragma unroll 4
    for (uint32_t token = 2 * thread_x() / b->n_rows; token < n_tokens; token += step)
        y[(uint64_t)token * a->y_stride] =
            gated(a->kind, result_of(b, &gate, row, token, sums, factors),
                  result_of(b, &up, row + 1, token, sums, factors));
}

/* Stores results or adds them to y: a thread has one row, and first loads a batch of values. */
DEV void store_rows(const struct linear_args *a, const struct many_block *b, uint32_t n_tokens,
                    const int32_t *sums, const struct token_factors *factors)
{
    const uint32_t row = thread_x() % b->n_rows, step = MANY_THREADS / b->n_rows;
    if (b->row0 + row >= a->n_rows)
        return;
    const struct row_terms terms = terms_of(a, b->row0 + row);
    float *y = a->y + (uint64_t)b->token0 * a->y_stride + b->row0 + row;
    for (uint32_t first = thread_x() / b->n_rows; first < n_tokens; first += SUMS_BATCH * step) {
        float before[SUMS_BATCH];
#pragma unroll
        for (uint32_t i = 0; i < SUMS_BATCH; i++) {
            const uint32_t token = first + i * step;
            before[i] = -0.0f;
            if (a->kind == LINEAR_ADD && token < n_tokens)
                before[i] = y[(uint64_t)token * a->y_stride];
        }
#pragma unroll
        for (uint32_t i = 0; i < SUMS_BATCH; i++) {
            const uint32_t token = first + i * step;
            if (token < n_tokens)
                y[(uint64_t)token * a->y_stride] =
                    before[i] + result_of(b, &terms, row, token, sums, factors);
        }
    }
}

/* Writes the sums of all warps to shared memory, and stores the results of the block. */
DEV void store_block(const struct linear_args *a, const struct many_block *b, uint32_t part,
                     uint32_t warp_row, int32_t (*acc)[MANY_TOKENS / 8][4], int8_t *shared)
{
    int32_t *sums = (int32_t *)(void *)shared;
    struct token_factors *factors = (struct token_factors *)(void *)(shared + SUMS_BYTES);
    const uint32_t g = thread_x() % 32 / 4, t = thread_x() % 4;
    const uint32_t n_left = a->n_tokens - b->token0;
    const uint32_t n_tokens = n_left < MANY_TOKENS ? n_left : MANY_TOKENS;
#pragma unroll
    for (uint32_t n = 0; n < MANY_TOKENS / 8; n++)
#pragma unroll
        for (uint32_t m = 0; m < 2; m++)
#pragma unroll
            for (uint32_t i = 0; i < 4; i++)
                sums[sum_index(b, part, warp_row + 16 * m + 2 * g + i / 2, 8 * n + 2 * t + i % 2)] =
                    acc[m][n][i];
    if (thread_x() < n_tokens) {
        const uint32_t token = b->token0 + thread_x();
        const struct row_scale scale = {a->q_s[token], a->q_sum[token]};
        factors[thread_x()] = factors_of(a, scale);
    }
    block_sync();
    if (a->kind >= LINEAR_RELU2)
        store_gated(a, b, n_tokens, sums, factors);
    else
        store_rows(a, b, n_tokens, sums, factors);
}

/* The product of the rows of a thread block with MANY_TOKENS tokens. n_parts is 1 or 2 and must be
 * a compile-time constant in the caller. A warp has two mma tiles of 16 rows. */
DEV void multiply_many(const struct linear_args *a, uint32_t n_parts)
{
    SHARED_WIDE int8_t tiles[MANY_STAGES * MANY_TILE];
    const uint32_t n_rows = MANY_ROWS / n_parts, warp = thread_x() / 32;
    const struct many_block b = {block_x() * n_rows, block_y() * MANY_TOKENS, n_rows, n_parts};
    const uint32_t part = warp / (n_rows / 32), warp_row = warp % (n_rows / 32) * 32;
    const uint8_t *lines = a->lines + (uint64_t)b.row0 * a->n_lines * LINE_BYTES;
    uint32_t rows[2][2];
    struct words next[2][2];
    int32_t acc[2][MANY_TOKENS / 8][4] = {{{0}}};
#pragma unroll
    for (uint32_t m = 0; m < 2; m++)
#pragma unroll
        for (uint32_t r = 0; r < 2; r++)
            rows[m][r] = lane_row(a, b.row0, warp_row + 16 * m, r);
    load_rows(lines, 0, rows, next);

    wait_for_grid();
#pragma unroll
    for (uint32_t line = 0; line < MANY_STAGES - 1; line++) {
        if (line < a->n_lines)
            copy_tile(a, b.token0, line, tiles + line * MANY_TILE);
        copy_async_commit();
    }
    for (uint32_t line = 0; line < a->n_lines; line++) {
        const uint32_t later = line + MANY_STAGES - 1;
        struct words w[2][2];
#pragma unroll
        for (uint32_t m = 0; m < 2; m++)
#pragma unroll
            for (uint32_t r = 0; r < 2; r++)
                w[m][r] = next[m][r];
        copy_async_wait_but_one();
        block_sync(); /* this line has arrived, and no thread still reads the previous one */
        if (later < a->n_lines)
            copy_tile(a, b.token0, later, tiles + later % MANY_STAGES * MANY_TILE);
        copy_async_commit();
        if (line + 1 < a->n_lines)
            load_rows(lines, line + 1, rows, next);
        multiply_line(w, part * (4 / n_parts), 4 / n_parts, tiles + line % MANY_STAGES * MANY_TILE,
                      acc);
    }
    block_sync(); /* no thread still reads the tiles, which the sums replace */
    store_block(a, &b, part, warp_row, acc, tiles);
}

/* Grid: sets of MANY_ROWS rows, sets of MANY_TOKENS tokens. */
KERNEL_EARLY(linear_many, linear_args, MANY_THREADS)
{
    multiply_many(&a, 1);
}

/* For few rows or tokens: twice as many thread blocks, each with half the rows of linear_many. */
KERNEL_EARLY(linear_half, linear_args, MANY_THREADS)
{
    multiply_many(&a, 2);
}

#endif
