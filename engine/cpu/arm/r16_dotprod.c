/*
 * r16_matvec and r16_matmul for the dot product instructions (SDOT). One instruction adds
 * the products of four columns of four rows to int32 sums.
 */
#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

/* The sums of four rows for r16_quads.h: one int32 for each row. */
struct quad_sums {
    int32x4_t rows;
};

static inline struct quad_sums quad_sums_add(struct quad_sums s, int8x16_t codes, int8x16_t q)
{
    return (struct quad_sums){vdotq_s32(s.rows, codes, q)};
}

static inline int32x4_t quad_sums_total(struct quad_sums s)
{
    return s.rows;
}

#define TILE_TOKENS 4 /* with four registers of rows: 16 of 32 registers hold the sums */

#include "engine/cpu/arm/r16_quads.h"

void r16_matvec_dotprod(const struct r16_mat *w, size_t group0, size_t group1,
                        const struct block_acts *x, float *y)
{
    r16_matvec_quads(w, group0, group1, x, y);
}

void r16_matmul_dotprod(const struct r16_mat *w, size_t group0, size_t group1,
                        const struct r16_batch *batch)
{
    r16_matmul_quads(w, group0, group1, batch);
}
