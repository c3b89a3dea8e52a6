/*
 * Products of int8 activations and ternary weights for the training of the demo model (model.py).
 * model.py compiles and calls this file. Needs AVX2. Uses AVX-512 VNNI if the processor has it.
 *
 * Activations are stored as unsigned bytes, value + 128, because VPMADDUBSW and VPDPBUSD multiply
 * unsigned by signed bytes. So each result is too large by 128 times the sum of its weights, which
 * is subtracted. The functions split rows among the OpenMP threads. The results do not depend on
 * the number of threads.
 */
#ifdef __AVX512VNNI__
#include "app/demo/ternary_tile_vnni.h"
#else
#include "app/demo/ternary_tile_avx2.h"
#endif

#include <math.h>
#include <stdint.h>

/* x (rows, cols) -> a (rows, cols) and s (rows): a - 128 is x * s, rounded half to even, and s is
 * 127 divided by the largest |x| of the row, or by `least` (above 0) if that is larger. */
void quantise(const float *x, uint8_t *a, float *s, float least, int64_t rows, int64_t cols)
{
#pragma omp parallel for
    for (int64_t row = 0; row < rows; row++) {
        const float *in = x + row * cols;
        float most = least;
        for (int64_t i = 0; i < cols; i++)
            most = fmaxf(most, fabsf(in[i]));
        const float scale = 127.0f / most;
        for (int64_t i = 0; i < cols; i++)
            a[row * cols + i] = (uint8_t)((int32_t)nearbyintf(in[i] * scale) + 128);
        s[row] = scale;
    }
}

/* a (n) -> x (n): a - 128, the rounded values before they are divided by their scale. */
void restore(const uint8_t *a, float *x, int64_t n)
{
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((int32_t)a[i] - 128);
}

/* The arguments of `product` from Python. outputs is a multiple of OUTPUTS, cols of 4. */
struct product {
    const uint8_t *a;   /* (rows, cols), from `quantise` */
    const float *scale; /* (rows): y is the integer result times this number, which is the scale of
                           the weights divided by s of `quantise` */
    const int8_t *w;    /* (outputs, cols) of -1, 0, +1; (cols, outputs) if is_transposed */
    int64_t is_transposed;
    /* (outputs / OUTPUTS, cols / 4, OUTPUTS, 4): memory for the weights in another order */
    int8_t *packed;
    int32_t *sums; /* (outputs): memory for 128 times the sum of the weights of an output */
    float *y;      /* (rows, outputs) */
    int64_t rows, outputs, cols;
};

static void pack(const struct product *p)
{
#pragma omp parallel for
    for (int64_t out = 0; out < p->outputs; out++) {
        int8_t *to = p->packed + out / OUTPUTS * OUTPUTS * p->cols + out % OUTPUTS * 4;
        int32_t sum = 0;
        for (int64_t i = 0; i < p->cols; i++) {
            const int8_t code =
                p->is_transposed ? p->w[i * p->outputs + out] : p->w[out * p->cols + i];
            to[i / 4 * OUTPUTS * 4 + i % 4] = code;
            sum += code;
        }
        p->sums[out] = 128 * sum;
    }
}

/* A full tile has a function of its own: with a constant number of rows, the compiler keeps the
 * sums in registers. */
static __attribute__((noinline)) void full_tile(const uint8_t *a, const int8_t *w, int64_t cols,
                                                int32_t result[ROWS][OUTPUTS])
{
    tile(a, w, cols, ROWS, result);
}

static __attribute__((noinline)) void part_tile(const uint8_t *a, const int8_t *w, int64_t cols,
                                                int rows, int32_t result[ROWS][OUTPUTS])
{
    tile(a, w, cols, rows, result);
}

/* y = (a - 128) w^T for w (outputs, cols), each row multiplied by its scale. */
void product(const struct product *p)
{
    const int64_t cols = p->cols;
    pack(p);
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < p->rows; row += ROWS) {
        const int n = (int)(p->rows - row < ROWS ? p->rows - row : ROWS);
        int32_t result[ROWS][OUTPUTS];
        for (int64_t out = 0; out < p->outputs; out += OUTPUTS) {
            if (n == ROWS)
                full_tile(p->a + row * cols, p->packed + out * cols, cols, result);
            else
                part_tile(p->a + row * cols, p->packed + out * cols, cols, n, result);
            for (int r = 0; r < n; r++) {
                float *y = p->y + (row + r) * p->outputs + out;
                for (int i = 0; i < OUTPUTS; i++)
                    y[i] = (float)(result[r][i] - p->sums[out + i]) * p->scale[row + r];
            }
        }
    }
}
