/*
 * The reference kernels: docs/kernels.md in plain C, for every processor. engine/cpu/kernels.h has
 * the contracts. The first four functions are building blocks that docs/kernels.md defines.
 */
#ifndef ENGINE_CPU_REF_KERNELS_REF_H
#define ENGINE_CPU_REF_KERNELS_REF_H

#include "engine/cpu/kernels.h"

float exp0_ref(float x); /* exp(x) for x <= 0; +0 below -60 and for a NaN */
float sigmoid_ref(float x);
float sum64_tree_ref(float lanes[64]); /* overwrites lanes */
float dot64_ref(const float *a, const float *b, size_t n);

void rms_norm_ref(const float *x, const float *w, size_t n, float eps, float *y);
void quantise_ref(const struct act_in *in, int8_t *q, struct act_scale *out);

void ternary_matvec_ref(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                        int32_t q_sum, int32_t *acc);
void ternary_some_ref(const struct ternary_mat *w, const int32_t *rows, size_t n, const int8_t *q,
                      int32_t q_sum, int32_t *acc);
void ternary_columns_ref(const struct ternary_cols *w, const int32_t *cols, size_t n,
                         const int8_t *q, int32_t *acc);
size_t live_gates_ref(const float *gate, size_t n, int32_t *out);
size_t live_inputs_ref(const int8_t *q, size_t n, int32_t *out);
void pack_token_ref(const int8_t *q, size_t n_lines, size_t t, int8_t *packed);
const int8_t *gather_tokens_ref(const int8_t *packed, size_t n_lines, size_t n_tokens, int8_t *own);
void unpack_rows_ref(const struct ternary_mat *w, size_t row0, size_t row1, uint8_t *panel);
void ternary_matmul_ref(const struct ternary_mat *w, size_t row0, size_t row1,
                        const struct ternary_batch *batch);

void scale_acc_ref(const int32_t *acc, size_t n, float d, float *y);
void add_ref(float *h, const float *y, size_t n);
void relu2_gate_ref(const float *gate, const float *up, size_t n, float *out);
void silu_gate_ref(const float *gate, const float *up, size_t n, float *out);
void rope_neox_ref(float *x, const float *c, const float *s, size_t n_rot);
void rope_norm_ref(float *x, const float *c, const float *s, size_t n_rot);
void to_f16_ref(const float *x, size_t n, uint16_t *out);

void acc_store_ref(const struct acc_tile *a, float *y, size_t stride);
void acc_add_ref(const struct acc_tile *a, float *y, size_t stride);
void acc_relu2_ref(const struct acc_tile *gate, const struct acc_tile *up, float *y, size_t stride);
void acc_silu_ref(const struct acc_tile *gate, const struct acc_tile *up, float *y, size_t stride);
void attn_block_ref(const struct attn_block *b);
void attn_tile_ref(const struct attn_tile *a);
void attn_block_q8_ref(const struct attn_block *b);
void attn_tile_q8_ref(const struct attn_tile *a);
void attn_merge_ref(float *big_m, float *big_l, float *big_o, const float *m, const float *l,
                    const float *o, size_t head_dim);
void attn_finish_ref(const float *big_o, float big_l, size_t head_dim, float *out);

float coarse_pack_ref(const float *w, size_t n_blocks, size_t row, uint8_t *lines, uint16_t *steps);
void coarse_bound_ref(const struct coarse_mat *m, size_t row0, size_t row1,
                      const struct coarse_query *q, float *up);
void coarse_gather_ref(const int8_t *const *x, size_t n, size_t n_blocks, int8_t *out);
void coarse_bounds_ref(const struct coarse_mat *m, size_t row0, size_t row1,
                       const struct coarse_group *g, float *const *up);

size_t mac_peak_ref(size_t n_rounds);
size_t fma_peak_ref(size_t n_rounds);

/* Set the entries of the tensor types that an embedding or output head may have. */
void row_kernels_ref(row_decode_fn decode[TENSOR_N_TYPES], rows_dot_fn dot[TENSOR_N_TYPES]);

#endif
