/*
 * Reference for products with ternary weights in R1-256, and for the lists of gates that are not
 * closed and of inputs that are not zero.
 *
 * A line of R1-256 is 64 bytes with 256 two-bit codes of one row: field i of byte b (bits 2i and
 * 2i + 1) is the code of column 64 i + b. The weight is code - 1. Products of rows sum code * q
 * and subtract the sum of q once.
 */
#include "engine/cpu/ref/kernels_ref.h"

#include <string.h>

/* Sum of code * q over one row. */
static int32_t row_dot(const uint8_t *row, size_t n_lines, const int8_t *q)
{
    int32_t sum = 0;
    for (size_t l = 0; l < n_lines; l++)
        for (size_t i = 0; i < 4; i++)
            for (size_t b = 0; b < FIELD_COLS; b++) {
                const int32_t code = row[l * LINE_BYTES + b] >> (2 * i) & 3;
                sum += code * q[l * LINE_COLS + FIELD_COLS * i + b];
            }
    return sum;
}

void ternary_matvec_ref(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                        int32_t q_sum, int32_t *acc)
{
    for (size_t r = row0; r < row1; r++)
        acc[r - row0] = row_dot(w->lines + r * w->n_lines * LINE_BYTES, w->n_lines, q) - q_sum;
}

void ternary_listed_ref(const struct ternary_mat *w, const int32_t *rows, size_t n, const int8_t *q,
                        int32_t q_sum, int32_t *acc)
{
    for (size_t i = 0; i < n; i++)
        acc[rows[i]] =
            row_dot(w->lines + (size_t)rows[i] * w->n_lines * LINE_BYTES, w->n_lines, q) - q_sum;
}

void ternary_columns_ref(const struct ternary_cols *w, const int32_t *cols, size_t n,
                         const int8_t *q, int32_t *acc)
{
    memset(acc, 0, w->n_lines * LINE_ROWS * sizeof *acc);
    for (size_t c = 0; c < n; c++) {
        const uint8_t *line = w->lines + (size_t)cols[c] * w->n_lines * LINE_BYTES;
        for (size_t l = 0; l < w->n_lines; l++, line += LINE_BYTES)
            for (size_t i = 0; i < 4; i++)
                for (size_t b = 0; b < FIELD_COLS; b++) {
                    const int32_t code = line[b] >> (2 * i) & 3;
                    acc[l * LINE_ROWS + FIELD_COLS * i + b] += (code - 1) * q[cols[c]];
                }
    }
}

/* An index stays in `out` only if n_live then advances. Otherwise the next index overwrites it, or
 * it is the last one and does not count. */
size_t live_gates_ref(const float *gate, size_t n, int32_t *out)
{
    size_t n_live = 0;
    for (size_t i = 0; i < n; i++) {
        out[n_live] = (int32_t)i;
        n_live += !(gate[i] <= 0.0f);
    }
    return n_live;
}

size_t live_inputs_ref(const int8_t *q, size_t n, int32_t *out)
{
    size_t n_live = 0;
    for (size_t i = 0; i < n; i++) {
        out[n_live] = (int32_t)i;
        n_live += q[i] != 0;
    }
    return n_live;
}

/* Row-major, for every matmul or gather that reads tokens in this order. */
void pack_token_ref(const int8_t *q, size_t n_lines, size_t t, int8_t *packed)
{
    memcpy(packed + t * n_lines * LINE_COLS, q, n_lines * LINE_COLS);
}

const int8_t *gather_tokens_ref(const int8_t *packed, size_t n_lines, size_t n_tokens, int8_t *own)
{
    (void)n_lines, (void)n_tokens, (void)own;
    return packed;
}

void unpack_rows_ref(const struct ternary_mat *w, size_t row0, size_t row1, uint8_t *panel)
{
    (void)w, (void)row0, (void)row1, (void)panel; /* matmul reads the lines directly */
}

void ternary_matmul_ref(const struct ternary_mat *w, size_t row0, size_t row1,
                        const struct ternary_batch *batch)
{
    for (size_t t = 0; t < batch->n_tokens; t++)
        ternary_matvec_ref(w, row0, row1, batch->q + t * w->n_lines * LINE_COLS, batch->q_sums[t],
                           batch->acc + t * batch->acc_stride);
}
