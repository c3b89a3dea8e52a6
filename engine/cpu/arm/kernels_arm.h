/*
 * The kernels for ARM. engine/cpu/kernels.h has the contracts. Every function returns the same bits
 * as its reference in engine/cpu/ref/.
 */
#ifndef ENGINE_CPU_ARM_KERNELS_ARM_H
#define ENGINE_CPU_ARM_KERNELS_ARM_H

#include "engine/cpu/kernels.h"

/* NEON with fused multiply-add: every 64-bit ARM processor */
void rms_norm_neon(const float *x, const float *w, size_t n, float eps, float *y);
void quantise_neon(const struct act_in *in, int8_t *q, struct act_scale *out);
void ternary_matvec_neon(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                         int32_t q_sum, int32_t *acc);
void ternary_matmul_neon(const struct ternary_mat *w, size_t row0, size_t row1,
                         const struct ternary_batch *batch);
void scale_acc_neon(const int32_t *acc, size_t n, float d, float *y);
void add_neon(float *h, const float *y, size_t n);
void relu2_gate_neon(const float *gate, const float *up, size_t n, float *out);
void silu_gate_neon(const float *gate, const float *up, size_t n, float *out);
void rope_neox_neon(float *x, const float *c, const float *s, size_t n_rot);
void rope_norm_neon(float *x, const float *c, const float *s, size_t n_rot);
void to_f16_neon(const float *x, size_t n, uint16_t *out);
void attn_block_neon(const struct attn_block *b);
void attn_tile_neon(const struct attn_tile *a);
void attn_block_q8_neon(const struct attn_block *b);
void attn_tile_q8_neon(const struct attn_tile *a);
void attn_merge_neon(float *big_m, float *big_l, float *big_o, const float *m, const float *l,
                     const float *o, size_t head_dim);
void attn_finish_neon(const float *big_o, float big_l, size_t head_dim, float *out);
float coarse_pack_neon(const float *w, size_t n_blocks, size_t row, uint8_t *lines,
                       uint16_t *steps);
void coarse_bound_neon(const struct coarse_mat *m, size_t row0, size_t row1,
                       const struct coarse_query *q, float *up);
void row_kernels_neon(row_decode_fn decode[TENSOR_N_TYPES], rows_dot_fn dot[TENSOR_N_TYPES]);

/* dotprod: dot products of bytes */
void ternary_matvec_dotprod(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                            int32_t q_sum, int32_t *acc);
void ternary_matmul_dotprod(const struct ternary_mat *w, size_t row0, size_t row1,
                            const struct ternary_batch *batch);

/* i8mm: matrix products of bytes */
void pack_token_i8mm(const int8_t *q, size_t n_lines, size_t t, int8_t *packed);
void ternary_matmul_i8mm(const struct ternary_mat *w, size_t row0, size_t row1,
                         const struct ternary_batch *batch);

#endif
