/*
 * Products with ternary weights in R1-256, exact in int32, and what follows them: scale, bias,
 * residual or gate.
 *
 * One token and few: eight lanes or more take two rows, 16 bytes a load, dot products of four
 * bytes. A word of a line, masked, is four columns; a lane takes the words of its 16 bytes, and of
 * the activations the same columns. For many tokens see cuda_many.cuh.
 */
#ifndef ENGINE_CUDA_CUDA_TERNARY_CUH
#define ENGINE_CUDA_CUDA_TERNARY_CUH

#include "engine/cuda/cuda_vec.cuh"

#define FIELD_0 0x03030303u /* codes at bits 0 and 1 of four bytes */
#define FIELD_1 0x0c0c0c0cu /* the next field, four times the code */

DEV uint32_t section_of(const struct linear_args *a, uint32_t row)
{
    if (a->kind >= LINEAR_RELU2)
        return row % 2;
    return row < a->row_end[0] ? 0 : row < a->row_end[1] ? 1 : 2;
}

/* acc is the sum of code * q. */
DEV float scaled(const struct linear_args *a, uint32_t row, struct quantity of, int32_t acc)
{
    const uint32_t section = section_of(a, row);
    float y = (float)(acc - of.sum) * (a->scale[section] / of.s);
    y = y * a->extra[section];
    return a->bias ? y + a->bias[row] : y;
}

/* The sums of an even row and the one after it, to where they go. */
DEV void leave_pair(const struct linear_args *a, uint32_t row, float *y, struct quantity of,
                    const int32_t *acc)
{
    if (row >= a->n_rows)
        return;
    const float y0 = scaled(a, row, of, acc[0]);
    const float y1 = row + 1 < a->n_rows ? scaled(a, row + 1, of, acc[1]) : 0.0f;
    if (a->kind == LINEAR_RELU2) {
        y[row / 2] = y0 <= 0.0f ? 0.0f : (y0 * y0) * y1; /* a NaN stays */
    } else if (a->kind == LINEAR_SILU) {
        y[row / 2] = (y0 * sigmoid(y0)) * y1;
    } else if (a->kind == LINEAR_ADD) {
        y[row] = y[row] + y0;
        if (row + 1 < a->n_rows)
            y[row + 1] = y[row + 1] + y1;
    } else {
        y[row] = y0;
        if (row + 1 < a->n_rows)
            y[row + 1] = y1;
    }
}

/* The same for one token of several. */
DEV void finish_pair(const struct linear_args *a, uint32_t row, uint32_t token, int32_t acc0,
                     int32_t acc1)
{
    const int32_t acc[2] = {acc0, acc1};
    if (token >= a->n_tokens)
        return;
    const struct quantity of = {a->q_s[token], a->q_sum[token]};
    leave_pair(a, row, a->y + (uint64_t)token * a->y_stride, of, acc);
}

/* 64 columns of two rows and n_t tokens. Fields 1 and 3 are summed at four times the code. */
DEV void multiply_chunk(const struct words *w, const int8_t *q, uint64_t q_stride, uint32_t n_t,
                        int32_t (*low)[FEW_TOKENS], int32_t (*high)[FEW_TOKENS])
{
#pragma unroll
    for (uint32_t t = 0; t < n_t; t++)
#pragma unroll
        for (uint32_t field = 0; field < 4; field++) {
            const struct words x = load_words(q + t * q_stride + 64 * field);
#pragma unroll
            for (uint32_t r = 0; r < 2; r++)
#pragma unroll
                for (uint32_t i = 0; i < 4; i++) {
                    const uint32_t v = w[r].at[i] >> (field < 2 ? 0 : 4);
                    if (field % 2 == 0)
                        low[r][t] = dot4(v & FIELD_0, x.at[i], low[r][t]);
                    else
                        high[r][t] = dot4(v & FIELD_1, x.at[i], high[r][t]);
                }
        }
}

/* n_t is a constant of the caller, so that the sums stay in registers. */
DEV void multiply_rows(const struct linear_args *a, uint32_t token0, uint32_t n_t)
{
    const uint32_t part = thread_x() % 8;
    const uint32_t row = (block_x() * n_threads_x() + thread_x()) / 8 * 2;
    const uint64_t row_bytes = (uint64_t)a->n_lines * LINE_BYTES;
    const uint64_t q_stride = (uint64_t)a->n_lines * LINE_COLS;
    const uint8_t *line0 = a->lines + (row < a->n_rows ? row : a->n_rows - 1) * row_bytes;
    const uint8_t *line1 = a->lines + (row + 1 < a->n_rows ? row + 1 : a->n_rows - 1) * row_bytes;
    int32_t low[2][FEW_TOKENS] = {{0}}, high[2][FEW_TOKENS] = {{0}};
#pragma unroll 4
    for (uint32_t chunk = part; chunk < 4 * a->n_lines; chunk += 8) {
        const struct words w[2] = {load_once(line0 + 16 * chunk), load_once(line1 + 16 * chunk)};
        const uint32_t column = chunk / 4 * LINE_COLS + chunk % 4 * 16;
        multiply_chunk(w, a->q + token0 * q_stride + column, q_stride, n_t, low, high);
    }
#pragma unroll
    for (uint32_t t = 0; t < n_t; t++) {
        int32_t acc[2];
#pragma unroll
        for (uint32_t r = 0; r < 2; r++) {
            acc[r] = low[r][t] + high[r][t] / 4;
            for (uint32_t mask = 4; mask > 0; mask /= 2)
                acc[r] += (int32_t)swap_u32((uint32_t)acc[r], mask);
        }
        if (part == 0)
            finish_pair(a, row, token0 + t, acc[0], acc[1]);
    }
}

/* One chunk of two rows, or zeros past the end of a row. */
DEV void hold_chunk(const uint8_t *const *lines, uint32_t chunk, uint32_t n_chunks,
                    struct words *w)
{
    const struct words none = {{0, 0, 0, 0}};
    w[0] = chunk < n_chunks ? load_ahead(lines[0] + 16 * chunk) : none;
    w[1] = chunk < n_chunks ? load_ahead(lines[1] + 16 * chunk) : none;
}

/* One token, with its norm. The weights of a block are under way before its input is looked at, so
 * that memory has something to do while the norm runs; a lane holds ONE_HELD chunks of each row,
 * which is all of it where the host could choose enough lanes. */
KERNEL_AHEAD(linear_one, norm_linear_args, ONE_THREADS)
{
    SHARED_WIDE float tile[ROW_TILE];
    SHARED_WIDE int8_t room[ROW_TILE / LINE_COLS * LINE_ROOM];
    const struct linear_args *l = &a.linear;
    const uint32_t part = thread_x() % a.lanes, n_chunks = 4 * l->n_lines;
    const uint32_t row = (block_x() * n_threads_x() + thread_x()) / a.lanes * 2;
    const uint64_t row_bytes = (uint64_t)l->n_lines * LINE_BYTES;
    const uint8_t *lines[2];
    struct words w[ONE_HELD][2];
    int32_t low[2][FEW_TOKENS] = {{0}}, high[2][FEW_TOKENS] = {{0}}, acc[2];
    for (uint32_t r = 0; r < 2; r++)
        lines[r] = l->lines + (row + r < l->n_rows ? row + r : l->n_rows - 1) * row_bytes;
#pragma unroll
    for (uint32_t c = 0; c < ONE_HELD; c++)
        hold_chunk(lines, part + c * a.lanes, n_chunks, w[c]);

    wait_for_grid();
    int8_t *q = a.norm.n <= ROW_TILE ? room : (int8_t *)tile;
    const struct quantity of = quantise_row(&a.norm, a.norm.x, tile, q, LINE_ROOM);

    for (uint32_t first = part; first < n_chunks; first += ONE_HELD * a.lanes) {
        if (first != part)
#pragma unroll
            for (uint32_t c = 0; c < ONE_HELD; c++)
                hold_chunk(lines, first + c * a.lanes, n_chunks, w[c]);
#pragma unroll
        for (uint32_t c = 0; c < ONE_HELD; c++) {
            const uint32_t chunk = first + c * a.lanes;
            if (chunk < n_chunks)
                multiply_chunk(w[c], q + chunk / 4 * LINE_ROOM + chunk % 4 * 16, 0, 1, low, high);
        }
    }
#pragma unroll
    for (uint32_t r = 0; r < 2; r++) {
        acc[r] = low[r][0] + high[r][0] / 4;
        for (uint32_t mask = a.lanes / 2; mask > 0; mask /= 2)
            acc[r] += (int32_t)swap_u32((uint32_t)acc[r], mask);
    }
    if (part == 0)
        leave_pair(l, row, l->y, of, acc);
}

/* FEW_TOKENS tokens a block; rows of q past the last token exist. */
KERNEL(linear_few, linear_args, 64)
{
    multiply_rows(&a, FEW_TOKENS * block_y(), FEW_TOKENS);
}

#endif
