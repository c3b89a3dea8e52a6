/*
 * Products of several tokens with ternary weights in R16, on tensor cores, and of inputs that are
 * not quantised.
 */
#ifndef CUDA_R16_MANY_CUH
#define CUDA_R16_MANY_CUH

#include "engine/cuda/kernels/products/cuda_r16.cuh"

/* The rows of the inputs that a tile multiplies. Input i of the tile is at place first + i of the
 * list `pairs`, or at `last` if that is lower. Its row is pairs[place] / pairs_per_input. */
struct input_rows {
    const uint32_t *pairs; /* NULL: there is no list, and the row is the place */
    uint32_t first, last, pairs_per_input;
};
DEV uint64_t input_row(const struct input_rows *r, uint32_t i)
{
    const uint32_t place = r->first + i < r->last ? r->first + i : r->last;
    return r->pairs ? r->pairs[place] / r->pairs_per_input : place;
}

/* Adds to y the products of a row group with R16_WARP_TOKENS rows of the inputs, by a warp. Lane 4
 * g + t has rows g (y[n][0], y[n][1]) and g + 8 (y[n][2], y[n][3]) for tokens 8 n + 2 t and 8 n + 2
 * t + 1. inputs[n][i] is the input of token 8 n + 2 t + i; q_inputs are the inputs whose bytes the
 * lane passes to mma_16x8x32. */
DEV void multiply_group(const struct r16_args *a, const struct group_at *at,
                        const struct input_rows *from, float (*y)[4])
{
    const uint32_t g = thread_x() % 32 / 4, t = thread_x() % 4;
    const uint64_t q_inputs[2] = {input_row(from, g), input_row(from, 8 + g)};
    const uint64_t inputs[2][2] = {{input_row(from, 2 * t), input_row(from, 2 * t + 1)},
                                   {input_row(from, 8 + 2 * t), input_row(from, 9 + 2 * t)}};
    const uint32_t block_cols = a->in.block_cols, span_blocks = at->s->span_cols / block_cols;
    for (uint32_t plane = 0; plane < a->in.n_planes; plane++)
        for (uint32_t span = 0; span < at->n_spans; span++) {
            float sums[2][4] = {{0.0f}};
            for (uint32_t b = span * span_blocks; b < (span + 1) * span_blocks; b++) {
                int32_t acc[2][4];
#pragma unroll
                for (uint32_t n = 0; n < 2; n++)
#pragma unroll
                    for (uint32_t i = 0; i < 2; i++)
                        acc[n][i] = acc[n][2 + i] =
                            -a->in.q_sums[plane][inputs[n][i] * a->in.block_stride + b];
                for (uint32_t c = b * block_cols; c < (b + 1) * block_cols; c += 32) {
                    const uint8_t *line = at->lines + (uint64_t)(c / R16_LINE_COLS) * LINE_BYTES;
                    uint32_t codes[4], x[2]; /* operands of the mma, four columns each */
#pragma unroll
                    for (uint32_t i = 0; i < 4; i++)
                        codes[i] =
                            ((const uint32_t *)(const void *)(line +
                                                              i / 2 * LINE_BYTES))[g + i % 2 * 8] >>
                                (2 * t) &
                            FIELD_0;
#pragma unroll
                    for (uint32_t n = 0; n < 2; n++) {
                        const int8_t *q = a->in.q[plane] + q_inputs[n] * a->in.q_stride + c + 4 * t;
                        x[0] = *(const uint32_t *)(const void *)q;
                        x[1] = *(const uint32_t *)(const void *)(q + R16_LINE_COLS);
                        mma_16x8x32(acc[n], codes, x);
                    }
                }
#pragma unroll
                for (uint32_t n = 0; n < 2; n++)
#pragma unroll
                    for (uint32_t i = 0; i < 2; i++) {
                        const float u = a->in.units[plane][inputs[n][i] * a->in.block_stride + b];
                        sums[n][i] = fmaf((float)acc[n][i], u, sums[n][i]);
                        sums[n][2 + i] = fmaf((float)acc[n][2 + i], u, sums[n][2 + i]);
                    }
            }
            const float d[2] = {group_scale(at, span, g), group_scale(at, span, g + 8)};
#pragma unroll
            for (uint32_t n = 0; n < 2; n++)
#pragma unroll
                for (uint32_t i = 0; i < 4; i++)
                    y[n][i] = fmaf(sums[n][i], d[i / 2], y[n][i]);
        }
}

/* Grid: row groups (with a gate: those of the gate) / 4 rounded up; tokens / R16_WARP_TOKENS
 * rounded up. */
KERNEL(r16_many, r16_args, R16_THREADS)
{
    const uint32_t g = thread_x() % 32 / 4, t = thread_x() % 4,
                   token0 = block_y() * R16_WARP_TOKENS;
    const uint32_t group = block_x() * (n_threads_x() / 32) + thread_x() / 32;
    const uint32_t n_gates = a.sections[0].n_groups;
    /* A warp beyond the last row group of the gate repeats this group and stores nothing. */
    const bool beyond = is_gated(&a) && group >= n_gates;
    struct group_at at = group_find(&a, beyond ? n_gates - 1 : group);
    const struct group_at up =
        is_gated(&a) ? group_find(&a, (beyond ? n_gates - 1 : group) + n_gates) : at;
    const struct input_rows rows = {NULL, token0, a.n_tokens - 1, 1};
    float y[2][2][4] = {{{0.0f}}};
    at.exists = at.exists && !beyond;
    multiply_group(&a, &at, &rows, y[0]);
    if (is_gated(&a))
        multiply_group(&a, &up, &rows, y[1]);
#pragma unroll
    for (uint32_t n = 0; n < 2; n++)
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t row = g + i / 2 * 8, token = token0 + 8 * n + 2 * t + i % 2;
            const float y0 = group_finish(&a, &at, row, y[0][n][i]);
            const float y1 = is_gated(&a) ? group_finish(&a, &up, row, y[1][n][i]) : 0.0f;
            group_store(&a, &at, row, token, y0, y1);
        }
}

/* One row times inputs that are not quantised. */
DEV float multiply_floats(const struct r16_args *a, const struct group_at *at, uint32_t row,
                          const float *x)
{
    float y = 0.0f;
    for (uint32_t span = 0; span < at->n_spans; span++) {
        const uint32_t first = span * at->s->span_cols;
        const uint32_t end =
            first + at->s->span_cols < a->n_cols ? first + at->s->span_cols : a->n_cols;
        float g = 0.0f;
        for (uint32_t c = first; c < end; c++) {
            const uint8_t *line = at->lines + (uint64_t)(c / R16_LINE_COLS) * LINE_BYTES;
            const int32_t code = line[4 * row + c % 4] >> (c % R16_LINE_COLS / 4 * 2) & 3;
            g = fmaf((float)(code - 1), x[c], g);
        }
        y = fmaf(g, group_scale(at, span, row), y);
    }
    return y;
}

/* For `--activations float`, with which tests check everything except the quantisation. Grid: row
 * groups (with a gate: those of the gate) / 8 rounded up; tokens. */
KERNEL(r16_float, r16_args, R16_THREADS)
{
    const uint32_t row = thread_x() % R16_ROWS, token = block_y();
    const uint32_t group = (block_x() * n_threads_x() + thread_x()) / R16_ROWS;
    const uint32_t n_gates = a.sections[0].n_groups;
    const float *x = a.in.x + (uint64_t)token * a.in.q_stride;
    if (group >= (is_gated(&a) ? n_gates : a.n_groups))
        return;
    const struct group_at at = group_find(&a, group);
    const float y0 = group_finish(&a, &at, row, multiply_floats(&a, &at, row, x));
    float y1 = 0.0f;
    if (is_gated(&a)) {
        const struct group_at up = group_find(&a, group + n_gates);
        y1 = group_finish(&a, &up, row, multiply_floats(&a, &up, row, x));
    }
    group_store(&a, &at, row, token, y0, y1);
}

#endif
