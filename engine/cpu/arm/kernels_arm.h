/*
 * The kernels for ARM. engine/cpu/kernels.h has the contracts. Results have the same bits as those
 * of the references in engine/cpu/ref/; only tokens packed by pack_token_i8mm have a layout of
 * their own.
 */
#ifndef ENGINE_CPU_ARM_KERNELS_ARM_H
#define ENGINE_CPU_ARM_KERNELS_ARM_H

#include "engine/cpu/ref/kernels_ref.h"

/* NEON with fused multiply-add: every 64-bit ARM processor */
BASE_KERNELS(neon);
COMMON_KERNELS(neon);

/* dotprod: dot products of bytes */
void ternary_matvec_dotprod(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                            int32_t q_sum, int32_t *acc);
void ternary_matmul_dotprod(const struct ternary_mat *w, size_t row0, size_t row1,
                            const struct ternary_batch *batch);

void r16_matvec_dotprod(const struct r16_mat *w, size_t group0, size_t group1,
                        const struct block_acts *x, float *y);
void r16_matmul_dotprod(const struct r16_mat *w, size_t group0, size_t group1,
                        const struct r16_batch *batch);

/* i8mm: matrix products of bytes */
void pack_token_i8mm(const int8_t *q, size_t n_lines, size_t t, int8_t *packed);
void ternary_matmul_i8mm(const struct ternary_mat *w, size_t row0, size_t row1,
                         const struct ternary_batch *batch);

#endif
