/*
 * The product of one token with ternary weights in R1-256, exact in int32, followed by scale, bias,
 * and residual or gate. cuda_ternary_mma.cuh and cuda_ternary_many.cuh are for more tokens.
 *
 * Eight or more warp lanes share two rows and load 16 bytes, a chunk, at a time. Field f of a byte
 * is its bits 2 f and 2 f + 1, the code of a column; that of field f + 1 is 64 columns further. So
 * a 32-bit word of a line, masked, has the codes of four columns. A lane multiplies the words of
 * its chunk with the activations of the same columns, with dot products of four bytes.
 */
#ifndef CUDA_TERNARY_CUH
#define CUDA_TERNARY_CUH

#include "engine/cuda/kernels/products/cuda_norm.cuh"

#define FIELD_0 0x03030303u /* field 0 of each byte */
#define FIELD_1 0x0c0c0c0cu /* field 1 of each byte, in place: four times the code */

/* The section of a row: see linear_args. */
DEV uint32_t section_of(const struct linear_args *a, uint32_t row)
{
    if (a->kind >= LINEAR_RELU2)
        return row % 2;
    return row < a->row_end[0] ? 0 : row < a->row_end[1] ? 1 : 2;
}

/* The factors of a token's results for each section, scale / s, and the sum of its int8 values. */
struct token_factors {
    float at[3];
    int32_t sum;
};
DEV struct token_factors factors_of(const struct linear_args *a, struct row_scale scale)
{
    struct token_factors f;
#pragma unroll
    for (uint32_t section = 0; section < 3; section++)
        f.at[section] = a->scale[section] / scale.s;
    f.sum = scale.sum;
    return f;
}

/* The result of a row. acc is the sum of code * q; the weight is code - 1. */
DEV float scaled(const struct linear_args *a, uint32_t row, const struct token_factors *f,
                 int32_t acc)
{
    const uint32_t section = section_of(a, row);
    const float factor = section == 0 ? f->at[0] : section == 1 ? f->at[1] : f->at[2];
    float y = (float)(acc - f->sum) * factor;
    y = y * a->extra[section];
    return a->bias ? y + a->bias[row] : y;
}

/* The output of a gate y0 and of up y1. */
DEV float gated(int32_t kind, float y0, float y1)
{
    if (kind == LINEAR_RELU2)
        return y0 <= 0.0f ? 0.0f : (y0 * y0) * y1; /* NaN is kept */
    return (y0 * sigmoid(y0)) * y1;
}

/* Two results of a token. */
struct result_pair {
    float at[2];
};

/* The elements of y to which the results of an even row and the next row are added. */
DEV struct result_pair pair_before(const struct linear_args *a, uint32_t row, const float *y)
{
    struct result_pair before = {{0.0f, 0.0f}};
    if (a->kind == LINEAR_ADD && row < a->n_rows)
        before.at[0] = load_written(y + row);
    if (a->kind == LINEAR_ADD && row + 1 < a->n_rows)
        before.at[1] = load_written(y + row + 1);
    return before;
}

/* Computes the results of an even row and the next row from acc, and stores them in y, after adding
 * `before` if the kind demands it, or stores the output of gate and up (enum linear_kind). Rows
 * past the last one are left out. */
DEV void store_pair(const struct linear_args *a, uint32_t row, float *y, struct result_pair before,
                    const struct token_factors *f, const int32_t *acc)
{
    if (row >= a->n_rows)
        return;
    const float y0 = scaled(a, row, f, acc[0]);
    const float y1 = row + 1 < a->n_rows ? scaled(a, row + 1, f, acc[1]) : 0.0f;
    if (a->kind >= LINEAR_RELU2) {
        y[row / 2] = gated(a->kind, y0, y1);
        return;
    }
    y[row] = a->kind == LINEAR_ADD ? before.at[0] + y0 : y0;
    if (row + 1 < a->n_rows)
        y[row + 1] = a->kind == LINEAR_ADD ? before.at[1] + y1 : y1;
}

/* 64 columns (16 bytes of codes) of two rows. `high` sums fields 1 and 3, four times too large. */
DEV void multiply_chunk(const struct words *w, const int8_t *q, int32_t *low, int32_t *high)
{
#pragma unroll
    for (uint32_t field = 0; field < 4; field++) {
        const struct words x = load_words(q + 64 * field);
#pragma unroll
        for (uint32_t r = 0; r < 2; r++)
#pragma unroll
            for (uint32_t i = 0; i < 4; i++) {
                const uint32_t v = w[r].at[i] >> (field < 2 ? 0 : 4);
                if (field % 2 == 0)
                    low[r] = dot4(v & FIELD_0, x.at[i], low[r]);
                else
                    high[r] = dot4(v & FIELD_1, x.at[i], high[r]);
            }
    }
}

/* Loads one chunk of two rows, or zeros past the end of a row. */
DEV void load_chunk(const uint8_t *const *lines, uint32_t chunk, uint32_t n_chunks, struct words *w)
{
    const struct words none = {{0, 0, 0, 0}};
    w[0] = chunk < n_chunks ? load_early(lines[0] + 16 * chunk) : none;
    w[1] = chunk < n_chunks ? load_early(lines[1] + 16 * chunk) : none;
}

/* One token with its norm. Most grids have fewer thread blocks than fit at once, so thread blocks
 * of this kernel start while the previous one still runs. Each thread starts the loads of its
 * weights before it reads the input, so that memory is busy during the norm. A thread preloads
 * ONE_CHUNKS chunks of each row. Together the lanes of a row preload the whole row, unless it is
 * too long for 32 lanes. */
KERNEL_EARLY_DENSE(linear_one, norm_linear_args, ONE_THREADS, ONE_BLOCKS)
{
    SHARED_WIDE float tile[ROW_TILE];
    SHARED_WIDE float w_tile[ONE_NORM_TILE];
    const struct linear_args *l = &a.linear;
    const uint32_t member = thread_x() & (a.n_lanes - 1), n_chunks = 4 * l->n_lines;
    const uint32_t pair = (block_x() * n_threads_x() + thread_x()) >> lowest_bit(a.n_lanes);
    const uint32_t row = 2 * pair;
    const uint64_t row_bytes = (uint64_t)l->n_lines * LINE_BYTES;
    const uint8_t *lines[2];
    struct words w[ONE_CHUNKS][2];
    int32_t low[2] = {0}, high[2] = {0}, acc[2];
    for (uint32_t r = 0; r < 2; r++)
        lines[r] = l->lines + (row + r < l->n_rows ? row + r : l->n_rows - 1) * row_bytes;
#pragma unroll
    for (uint32_t c = 0; c < ONE_CHUNKS; c++)
        load_chunk(lines, member + c * a.n_lanes, n_chunks, w[c]);
    /* y is the residual stream if results are added to it. Only a kernel before the previous one
     * has written to it. */
    const struct result_pair before =
        pair_before(l, member == 0 ? row : l->n_rows /* no load */, l->y);
    int8_t *q = (int8_t *)w_tile; /* the int8 values later replace the norm weights */
    struct row_scale scale;
    if (a.norm.n <= ROW_TILE) {
        const struct norm_weights norm_w = load_norm(&a.norm, w_tile, ONE_NORM_TILE);
        wait_for_grid();
        scale = quantise_tile(&a.norm, a.norm.x, &norm_w, tile, q);
    } else {
        q = (int8_t *)tile;
        prefetch_norm(&a.norm);
        wait_for_grid();
        scale = quantise_long(&a.norm, a.norm.x, tile, q, LINE_STRIDE);
    }

    for (uint32_t first = member; first < n_chunks; first += ONE_CHUNKS * a.n_lanes) {
        if (first != member)
#pragma unroll
            for (uint32_t c = 0; c < ONE_CHUNKS; c++)
                load_chunk(lines, first + c * a.n_lanes, n_chunks, w[c]);
#pragma unroll
        for (uint32_t c = 0; c < ONE_CHUNKS; c++) {
            const uint32_t chunk = first + c * a.n_lanes;
            if (chunk < n_chunks)
                multiply_chunk(w[c], q + chunk / 4 * LINE_STRIDE + chunk % 4 * 16, low, high);
        }
    }
#pragma unroll
    for (uint32_t r = 0; r < 2; r++) {
        acc[r] = low[r] + high[r] / 4;
        for (uint32_t mask = a.n_lanes / 2; mask > 0; mask /= 2)
            acc[r] += (int32_t)shuffle_xor_u32((uint32_t)acc[r], mask);
    }
    if (member == 0) {
        const struct token_factors f = factors_of(l, scale);
        store_pair(l, row, l->y, before, &f, acc);
    }
}

#endif
