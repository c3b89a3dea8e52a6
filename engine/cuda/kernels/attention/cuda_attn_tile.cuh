/*
 * Products of small matrices in shared memory, for attn_apply: float rows times F16 columns. A
 * thread has a tile of n_rows x TILE_COLS sums in registers, so that each value that it loads
 * serves several fma. Each sum is one chain of fma in ascending order of k.
 */
#ifndef CUDA_ATTN_TILE_CUH
#define CUDA_ATTN_TILE_CUH

#include "engine/cuda/kernels/attention/cuda_attn_block.cuh"

#define TILE_COLS 4
#define TILE_MAX_ROWS 8
#define TILE_STEP 4    /* values of a row that a thread loads at once */
#define UNSEEN (-1.0f) /* instead of a probability, which is never negative and never a NaN */

/* Sums of a tile. Only the first n_rows rows are used. */
struct tile_sums {
    float at[TILE_MAX_ROWS][TILE_COLS];
};

/* Which products are added: all, or only those of row values other than UNSEEN. Adding zero instead
 * would turn a sum of -0 into +0, and infinite values into NaN. */
enum tile_terms { TERMS_ALL, TERMS_SEEN };

struct tile {
    const float *a;    /* (n_rows) rows, a_step floats apart; value k is at [k] */
    const uint16_t *b; /* TILE_COLS columns; row k is at [k * b_step] */
    uint32_t a_step, b_step, n_rows;
};

/* Values k .. k + TILE_STEP - 1 of the rows of a tile. */
struct tile_rows {
    float at[TILE_MAX_ROWS][TILE_STEP];
};

/* Adds the products of value u of each row. v: the values of the columns. */
DEV void add_products(const struct tile_rows *x, uint32_t u, const float *v, uint32_t n_rows,
                      enum tile_terms terms, struct tile_sums *sums)
{
#pragma unroll
    for (uint32_t r = 0; r < n_rows; r++)
        if (terms == TERMS_ALL || x->at[r][u] >= 0.0f) {
#pragma unroll
            for (uint32_t c = 0; c < TILE_COLS; c++)
                sums->at[r][c] = fmaf(x->at[r][u], v[c], sums->at[r][c]);
        }
}

DEV void load_columns(const uint16_t *b, float *v)
{
    const struct word_pair w = load_pair(b);
    const struct float_pair low = f32_of_halves(w.at[0]), high = f32_of_halves(w.at[1]);
    v[0] = low.at[0];
    v[1] = low.at[1];
    v[2] = high.at[0];
    v[3] = high.at[1];
}

/* sums += A B over k from 0 to n - 1. */
DEV void multiply_tile(const struct tile *t, uint32_t n, enum tile_terms terms,
                       struct tile_sums *sums)
{
    struct tile_rows x;
    float v[TILE_COLS];
    uint32_t k = 0;
#pragma unroll 1
    for (; k + TILE_STEP <= n; k += TILE_STEP) {
#pragma unroll
        for (uint32_t r = 0; r < t->n_rows; r++) {
            const struct words w = load_words(t->a + r * t->a_step + k);
#pragma unroll
            for (uint32_t u = 0; u < TILE_STEP; u++)
                x.at[r][u] = f32_of_bits(w.at[u]);
        }
#pragma unroll
        for (uint32_t u = 0; u < TILE_STEP; u++) {
            load_columns(t->b + (k + u) * t->b_step, v);
            add_products(&x, u, v, t->n_rows, terms, sums);
        }
    }
    for (; k < n; k++) {
        load_columns(t->b + k * t->b_step, v);
#pragma unroll
        for (uint32_t r = 0; r < t->n_rows; r++)
            x.at[r][0] = t->a[r * t->a_step + k];
        add_products(&x, 0, v, t->n_rows, terms, sums);
    }
}

#endif
