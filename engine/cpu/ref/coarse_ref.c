/*
 * Reference for the coarse plane, a copy of the output head with four bits per weight (struct
 * coarse_mat): packing of a row, and upper bounds of the logits for one hidden state and for a
 * group of up to 16.
 *
 * The order of the float operations is fixed (docs/kernels.md, "The head, screened"), so that each
 * of the two kinds of bounds is the same on every machine.
 */
#include "engine/cpu/ref/coarse_pack.h"
#include "engine/cpu/ref/kernels_ref.h"

#include <math.h>
#include <string.h>

float coarse_pack_ref(const float *w, size_t n_blocks, size_t row, uint8_t *lines, uint16_t *steps)
{
    return coarse_pack_row(w, n_blocks, row, lines, steps);
}

/* Pairwise sum of n lanes; n is a power of two. Overwrites lanes. */
static float sum_tree(float *lanes, size_t n)
{
    for (size_t half = n / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

/* Integer sum of one lane of a block: columns 4 lane .. 4 lane + 3 and the four that are 64 columns
 * further. An element of the hidden state is 128 high + low. x holds high and 2 low, because
 * 2 c (128 high + low) = c (256 high + 2 low). Code c has the value (2 c - 15) steps; the part with
 * -15 is in `fix`, which the caller adds. */
static int32_t block_lane(const uint8_t *line, const int8_t *x, size_t lane)
{
    int32_t sum = 0;
    for (size_t j = 4 * lane; j < 4 * lane + 4; j++)
        sum += (line[j] & 15) * (256 * x[j] + x[COARSE_COLS + j]) +
               (line[j] >> 4) * (256 * x[64 + j] + x[COARSE_COLS + 64 + j]);
    return sum;
}

void coarse_bound_ref(const struct coarse_mat *m, size_t row0, size_t row1,
                      const struct coarse_query *q, float *bound)
{
    for (size_t r = row0; r < row1; r++) {
        const uint8_t *line = m->lines + r * m->n_blocks * LINE_BYTES;
        const uint16_t *steps = m->steps + r * m->step_stride;
        float lanes[16] = {0}, squares[8] = {0};
        for (size_t b = 0; b < m->n_blocks; b++, line += LINE_BYTES)
            for (size_t j = 0; j < 16; j++)
                lanes[j] = fmaf(
                    (float)(block_lane(line, q->x + 2 * COARSE_COLS * b, j) + q->fix[16 * b + j]),
                    bf16_to_f32(steps[b]), lanes[j]);
        for (size_t b = 0; b < m->step_stride; b++) {
            const float t = bf16_to_f32(steps[b]) * q->spread[b];
            squares[b % 8] = fmaf(t, t, squares[b % 8]);
        }
        bound[r - row0] =
            q->unit * sum_tree(lanes, 16) + sqrtf(sum_tree(squares, 8) + COARSE_UNDERFLOW);
    }
}

/* Each 64 bytes of `out` have four bytes of each of the 16 hidden states. */
void coarse_gather_ref(const int8_t *const *x, size_t n, size_t n_blocks, int8_t *out)
{
    for (size_t at = 0; at < n_blocks * 2 * COARSE_COLS; at += 4)
        for (size_t i = 0; i < COARSE_STATES; i++, out += 4)
            if (i < n)
                memcpy(out, x[i] + at, 4);
            else
                memset(out, 0, 4);
}

/* Integer product of one block of a row and hidden state i, as in block_lane but over all columns.
 * x is the part of coarse_states.x that belongs to the block. */
static int32_t block_product(const uint8_t *line, const int8_t *x, size_t i)
{
    /* Bytes from `high` to `2 low` of the same column, and from column j to column j + 64. */
    const size_t plane = COARSE_COLS * COARSE_STATES, half = plane / 2;
    int32_t sum = 0;
    for (size_t j = 0; j < COARSE_COLS / 2; j++) {
        const int8_t *at = x + j / 4 * COARSE_STATES * 4 + 4 * i + j % 4;
        sum += (line[j] & 15) * (256 * at[0] + at[plane]) +
               (line[j] >> 4) * (256 * at[half] + at[half + plane]);
    }
    return sum;
}

void coarse_bound_states_ref(const struct coarse_mat *m, size_t row0, size_t row1,
                             const struct coarse_states *g, float *const *bounds)
{
    for (size_t r = row0; r < row1; r++)
        for (size_t i = 0; i < g->n; i++) {
            const uint8_t *line = m->lines + r * m->n_blocks * LINE_BYTES;
            const uint16_t *steps = m->steps + r * m->step_stride;
            float product = 0.0f, squares = 0.0f;
            for (size_t b = 0; b < m->n_blocks; b++, line += LINE_BYTES) {
                const float step = bf16_to_f32(steps[b]);
                const float step2 = step * step;
                const int8_t *x = g->x + 2 * COARSE_COLS * COARSE_STATES * b;
                product = fmaf((float)(block_product(line, x, i) + g->fix[b * COARSE_STATES + i]),
                               step, product);
                squares = fmaf(step2 > COARSE_MIN ? step2 : COARSE_MIN,
                               g->spread2[b * COARSE_STATES + i], squares);
            }
            bounds[i][r - row0] = g->unit[i] * product + sqrtf(squares + COARSE_UNDERFLOW);
        }
}
