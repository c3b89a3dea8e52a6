/*
 * Reference for products with ternary weights in R16. docs/kernels.md specifies the formulas and
 * the order of the operations.
 */
#include "engine/base/fp16.h"
#include "engine/base/size.h"
#include "engine/cpu/ref/kernels_ref.h"
#include "engine/layout/fixed_point.h"

#include <math.h>
#include <string.h>

/* Quantise one block x (n), n <= block_cols; q (block_cols) gets zeros from n on. */
static void quantise_block(const float *x, size_t n, size_t block_cols, int8_t *q, float *unit,
                           int32_t *q_sum)
{
    float m = 0.0f;
    for (size_t i = 0; i < n; i++)
        if (fabsf(x[i]) > m)
            m = fabsf(x[i]);
    memset(q, 0, block_cols);
    *unit = 0.0f;
    *q_sum = 0;
    if (m < BLOCK_MIN_ABS)
        return;
    const float s = 127.0f / m;
    for (size_t i = 0; i < n; i++) {
        /* |v| <= 127: |x[i]| <= m, and the rounding error of m * (127 / m) is below one half. */
        const float v = rintf(x[i] * s);
        q[i] = v == v ? (int8_t)v : 0; /* 0 for a NaN */
        *q_sum += q[i];
    }
    *unit = m / 127.0f;
}

void quantise_blocks_ref(const float *x, size_t n, size_t block_cols, int8_t *q, float *units,
                         int32_t *q_sums)
{
    const size_t n_blocks = size_round_up(n, R16_PAD_COLS) / block_cols;
    for (size_t b = 0; b < n_blocks; b++) {
        const size_t begin = size_min(b * block_cols, n);
        quantise_block(x + begin, size_min(block_cols, n - begin), block_cols, q + b * block_cols,
                       &units[b], &q_sums[b]);
    }
}

/* Quantise block number b, x (n), to two bytes per element (quantise_planes_fn). */
static void quantise_two_planes(const float *x, size_t n, size_t block_cols, size_t b,
                                const struct block_plane planes[MAX_PLANES])
{
    const struct block_plane *high = &planes[0], *low = &planes[1];
    float m = 0.0f;
    for (size_t i = 0; i < n; i++)
        if (fabsf(x[i]) > m)
            m = fabsf(x[i]);
    memset(high->q + b * block_cols, 0, block_cols);
    memset(low->q + b * block_cols, 0, block_cols);
    high->units[b] = low->units[b] = 0.0f;
    high->q_sums[b] = low->q_sums[b] = 0;
    if (m < BLOCK_MIN_ABS)
        return;
    const float s = (float)FIXED_POINT_MAX / m;
    for (size_t i = 0; i < n; i++) {
        const float rounded = rintf(x[i] * s); /* at most FIXED_POINT_MAX in magnitude, or a NaN */
        const int32_t v = rounded == rounded ? (int32_t)rounded : 0;
        const int32_t h = (v + 64) >> 7, l = v - 128 * h; /* -127 .. 127, -64 .. 63 */
        high->q[b * block_cols + i] = (int8_t)h;
        low->q[b * block_cols + i] = (int8_t)l;
        high->q_sums[b] += h;
        low->q_sums[b] += l;
    }
    low->units[b] = m / (float)FIXED_POINT_MAX;
    high->units[b] = low->units[b] * 128.0f;
}

void quantise_planes_ref(const float *x, size_t n, size_t block_cols,
                         const struct block_plane planes[MAX_PLANES])
{
    const size_t n_blocks = size_round_up(n, R16_PAD_COLS) / block_cols;
    for (size_t b = 0; b < n_blocks; b++) {
        const size_t begin = size_min(b * block_cols, n);
        quantise_two_planes(x + begin, size_min(block_cols, n - begin), block_cols, b, planes);
    }
}

/* Code of a row and a column of a row group; i and k are those of struct r16_mat's comment. */
static int32_t code_at(const uint8_t *group, size_t row, size_t col)
{
    const uint8_t *line = group + col / R16_LINE_COLS * LINE_BYTES;
    const size_t i = col % R16_LINE_COLS / 4, k = col % 4;
    return line[4 * row + k] >> (2 * i) & 3;
}

/* Sum of code * q over columns col0 .. col0 + n_cols - 1 of one row; n_cols is a multiple of
 * R16_LINE_COLS. q starts at column 0. A call of code_at for each column would take more than
 * twice as long. */
static int32_t block_sum(const uint8_t *group, size_t row, size_t col0, size_t n_cols,
                         const int8_t *q)
{
    int32_t sum = 0;
    for (size_t c = col0; c < col0 + n_cols; c += R16_LINE_COLS) {
        const uint8_t *bytes = group + c / R16_LINE_COLS * LINE_BYTES + 4 * row;
        for (size_t i = 0; i < 4; i++)
            for (size_t k = 0; k < 4; k++)
                sum += (bytes[k] >> (2 * i) & 3) * q[c + 4 * i + k];
    }
    return sum;
}

/* Returns y + the product of one row with x, in the order of r16_matvec_fn. */
static float row_product(const struct r16_mat *w, size_t group, size_t row,
                         const struct block_acts *x, float y)
{
    const uint8_t *lines = w->lines + group * w->n_lines * LINE_BYTES;
    const size_t n_spans = w->n_lines * R16_LINE_COLS / w->span_cols;
    const size_t span_blocks = w->span_cols / x->block_cols;
    for (size_t span = 0; span < n_spans; span++) {
        float g = 0.0f;
        for (size_t b = span * span_blocks; b < (span + 1) * span_blocks; b++) {
            const int32_t sum = block_sum(lines, row, b * x->block_cols, x->block_cols, x->q);
            g = fmaf((float)(sum - x->q_sums[b]), x->units[b], g);
        }
        const size_t at = (group * n_spans + span) * w->scale_step;
        y = fmaf(g, f16_to_f32(w->scales[at + row]), y);
    }
    return y;
}

void r16_matvec_ref(const struct r16_mat *w, size_t group0, size_t group1,
                    const struct block_acts *x, float *y)
{
    for (size_t g = group0; g < group1; g++)
        for (size_t r = 0; r < R16_ROWS; r++, y++)
            *y = row_product(w, g, r, x, *y);
}

void r16_unpack_ref(const struct r16_mat *w, size_t group0, size_t group1, uint8_t *panel)
{
    (void)w, (void)group0, (void)group1, (void)panel; /* matmul reads the lines directly */
}

void r16_matmul_ref(const struct r16_mat *w, size_t group0, size_t group1,
                    const struct r16_batch *batch)
{
    for (size_t t = 0; t < batch->n_tokens; t++) {
        const struct block_acts x = {batch->q + t * batch->q_stride,
                                     batch->units + t * batch->block_stride,
                                     batch->q_sums + t * batch->block_stride, batch->block_cols};
        r16_matvec_ref(w, group0, group1, &x, batch->y + t * batch->y_stride);
    }
}

void r16_float_ref(const struct r16_mat *w, size_t group0, size_t group1, const float *x, size_t n,
                   float *y)
{
    const size_t n_spans = w->n_lines * R16_LINE_COLS / w->span_cols;
    for (size_t group = group0; group < group1; group++)
        for (size_t r = 0; r < R16_ROWS; r++, y++) {
            const uint8_t *lines = w->lines + group * w->n_lines * LINE_BYTES;
            for (size_t span = 0; span < n_spans; span++) {
                const size_t end = size_min((span + 1) * w->span_cols, n);
                const size_t at = (group * n_spans + span) * w->scale_step;
                float g = 0.0f;
                /* The product is exact, so this has the bits of an fma and needs no libm call. */
                for (size_t c = span * w->span_cols; c < end; c++)
                    g += (float)(code_at(lines, r, c) - 1) * x[c];
                *y = fmaf(g, f16_to_f32(w->scales[at + r]), *y);
            }
        }
}
