/*
 * The kernels for x86. engine/cpu/kernels.h has the contracts. Every function returns the same bits
 * as its reference in engine/cpu/ref/.
 */
#ifndef ENGINE_CPU_X86_KERNELS_X86_H
#define ENGINE_CPU_X86_KERNELS_X86_H

#include "engine/cpu/kernels.h"

/* AVX2, FMA, F16C */
void rms_norm_avx2(const float *x, const float *w, size_t n, float eps, float *y);
void quantise_avx2(const struct act_in *in, int8_t *q, struct act_scale *out);
void ternary_matvec_avx2(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                         int32_t q_sum, int32_t *acc);
void ternary_matmul_avx2(const struct ternary_mat *w, size_t row0, size_t row1,
                         const struct ternary_batch *batch);
void scale_acc_avx2(const int32_t *acc, size_t n, float d, float *y);
void add_avx2(float *h, const float *y, size_t n);
void relu2_gate_avx2(const float *gate, const float *up, size_t n, float *out);
void silu_gate_avx2(const float *gate, const float *up, size_t n, float *out);
void rope_neox_avx2(float *x, const float *c, const float *s, size_t n_rot);
void rope_norm_avx2(float *x, const float *c, const float *s, size_t n_rot);
void to_f16_avx2(const float *x, size_t n, uint16_t *out);
void acc_store_avx2(const struct acc_tile *a, float *y, size_t stride);
void acc_add_avx2(const struct acc_tile *a, float *y, size_t stride);
void acc_relu2_avx2(const struct acc_tile *gate, const struct acc_tile *up, float *y,
                    size_t stride);
void acc_silu_avx2(const struct acc_tile *gate, const struct acc_tile *up, float *y, size_t stride);
void attn_block_avx2(const struct attn_block *b);
void attn_tile_avx2(const struct attn_tile *a);
void attn_block_q8_avx2(const struct attn_block *b);
void attn_tile_q8_avx2(const struct attn_tile *a);
void attn_merge_avx2(float *big_m, float *big_l, float *big_o, const float *m, const float *l,
                     const float *o, size_t head_dim);
void attn_finish_avx2(const float *big_o, float big_l, size_t head_dim, float *out);
float coarse_pack_avx2(const float *w, size_t n_blocks, size_t row, uint8_t *lines,
                       uint16_t *steps);
void coarse_bound_avx2(const struct coarse_mat *m, size_t row0, size_t row1,
                       const struct coarse_query *q, float *up);
void row_kernels_avx2(row_decode_fn decode[TENSOR_N_TYPES], rows_dot_fn dot[TENSOR_N_TYPES]);
size_t mac_peak_avx2(size_t n_rounds);
size_t fma_peak_avx2(size_t n_rounds);
void ternary_some_avx2(const struct ternary_mat *w, const int32_t *rows, size_t n, const int8_t *q,
                       int32_t q_sum, int32_t *acc);
void ternary_columns_avx2(const struct ternary_cols *w, const int32_t *cols, size_t n,
                          const int8_t *q, int32_t *acc);
size_t live_gates_avx2(const float *gate, size_t n, int32_t *out);
size_t live_inputs_avx2(const int8_t *q, size_t n, int32_t *out);

/* AVX-VNNI: 256-bit dot products of bytes, with AVX2 */
void ternary_matvec_avxvnni(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                            int32_t q_sum, int32_t *acc);
void ternary_some_avxvnni(const struct ternary_mat *w, const int32_t *rows, size_t n,
                          const int8_t *q, int32_t q_sum, int32_t *acc);
void ternary_matmul_avxvnni(const struct ternary_mat *w, size_t row0, size_t row1,
                            const struct ternary_batch *batch);
size_t mac_peak_avxvnni(size_t n_rounds);

/* AVX-512 F, BW, DQ, VL, VNNI */
void ternary_matvec_avx512(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                           int32_t q_sum, int32_t *acc);
void ternary_some_avx512(const struct ternary_mat *w, const int32_t *rows, size_t n,
                         const int8_t *q, int32_t q_sum, int32_t *acc);
void ternary_columns_avx512(const struct ternary_cols *w, const int32_t *cols, size_t n,
                            const int8_t *q, int32_t *acc);
size_t live_gates_avx512(const float *gate, size_t n, int32_t *out);
size_t live_inputs_avx512(const int8_t *q, size_t n, int32_t *out);
void ternary_matmul_avx512(const struct ternary_mat *w, size_t row0, size_t row1,
                           const struct ternary_batch *batch);
void ternary_matmul_few_avx512(const struct ternary_mat *w, size_t row0, size_t row1,
                               const struct ternary_batch *batch);
void quantise_avx512(const struct act_in *in, int8_t *q, struct act_scale *out);
void acc_store_avx512(const struct acc_tile *a, float *y, size_t stride);
void acc_add_avx512(const struct acc_tile *a, float *y, size_t stride);
void acc_relu2_avx512(const struct acc_tile *gate, const struct acc_tile *up, float *y,
                      size_t stride);
void acc_silu_avx512(const struct acc_tile *gate, const struct acc_tile *up, float *y,
                     size_t stride);
void attn_block_avx512(const struct attn_block *b);
void attn_tile_avx512(const struct attn_tile *a);
void attn_block_q8_avx512(const struct attn_block *b);
void attn_tile_q8_avx512(const struct attn_tile *a);
float coarse_pack_avx512(const float *w, size_t n_blocks, size_t row, uint8_t *lines,
                         uint16_t *steps);
void coarse_bound_avx512(const struct coarse_mat *m, size_t row0, size_t row1,
                         const struct coarse_query *q, float *up);
void coarse_gather_avx512(const int8_t *const *x, size_t n, size_t n_blocks, int8_t *out);
void coarse_bounds_avx512(const struct coarse_mat *m, size_t row0, size_t row1,
                          const struct coarse_group *g, float *const *up);
const int8_t *gather_tokens_avx512(const int8_t *packed, size_t n_lines, size_t n_tokens,
                                   int8_t *own);
void row_kernels_avx512(row_decode_fn decode[TENSOR_N_TYPES], rows_dot_fn dot[TENSOR_N_TYPES]);
size_t mac_peak_avx512(size_t n_rounds);
size_t fma_peak_avx512(size_t n_rounds);

/* AMX: tile products of bytes, with AVX-512 */
void pack_token_amx(const int8_t *q, size_t n_lines, size_t t, int8_t *packed);
void unpack_rows_amx(const struct ternary_mat *w, size_t row0, size_t row1, uint8_t *panel);
void ternary_matmul_amx(const struct ternary_mat *w, size_t row0, size_t row1,
                        const struct ternary_batch *batch);
void ternary_matmul_amx_few(const struct ternary_mat *w, size_t row0, size_t row1,
                            const struct ternary_batch *batch);
void coarse_bounds_amx(const struct coarse_mat *m, size_t row0, size_t row1,
                       const struct coarse_group *g, float *const *up);
size_t mac_peak_amx(size_t n_rounds);

#endif
