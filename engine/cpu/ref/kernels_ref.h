/*
 * The reference kernels: docs/kernels.md in plain C, for every processor. engine/cpu/kernels.h has
 * the contracts.
 */
#ifndef ENGINE_CPU_REF_KERNELS_REF_H
#define ENGINE_CPU_REF_KERNELS_REF_H

#include "engine/cpu/kernels.h"

/* Prototypes of the kernels that the reference, AVX2, AVX-512 and NEON have. row_kernels sets the
 * entries for which the instruction set has a kernel, never those of ternary types. Other entries
 * keep their values. */
#define BASE_KERNELS(isa)                                                                          \
    void rotate_##isa(const float *x, const float *signs, size_t n, size_t block, float *y);       \
    void quantise_##isa(const struct act_in *in, int8_t *q, struct act_scale *out);                \
    void ternary_matvec_##isa(const struct ternary_mat *w, size_t row0, size_t row1,               \
                              const int8_t *q, int32_t q_sum, int32_t *acc);                       \
    void ternary_matmul_##isa(const struct ternary_mat *w, size_t row0, size_t row1,               \
                              const struct ternary_batch *batch);                                  \
    void quantise_blocks_##isa(const float *x, size_t n, size_t block_cols, int8_t *q,             \
                               float *units, int32_t *q_sums);                                     \
    void r16_matvec_##isa(const struct r16_mat *w, size_t group0, size_t group1,                   \
                          const struct block_acts *x, float *y);                                   \
    void r16_matmul_##isa(const struct r16_mat *w, size_t group0, size_t group1,                   \
                          const struct r16_batch *batch);                                          \
    void attn_block_##isa(const struct attn_block *b);                                             \
    void attn_tile_##isa(const struct attn_tile *a);                                               \
    void attn_block_q8_##isa(const struct attn_block *b);                                          \
    void attn_tile_q8_##isa(const struct attn_tile *a);                                            \
    float coarse_pack_##isa(const float *w, size_t n_blocks, size_t row, uint8_t *lines,           \
                            uint16_t *steps);                                                      \
    void coarse_bound_##isa(const struct coarse_mat *m, size_t row0, size_t row1,                  \
                            const struct coarse_query *q, float *bound);                           \
    void row_kernels_##isa(row_decode_fn decode[TENSOR_N_TYPES], rows_dot_fn dot[TENSOR_N_TYPES])

/* Prototypes of the kernels that the reference, AVX2 and NEON have. */
#define COMMON_KERNELS(isa)                                                                        \
    void rms_norm_##isa(const float *x, const float *w, size_t n, float eps, float *y);            \
    void scale_acc_##isa(const int32_t *acc, size_t n, float d, float *y);                         \
    void add_##isa(float *h, const float *y, size_t n);                                            \
    void relu2_gate_##isa(const float *gate, const float *up, size_t n, float *out);               \
    void silu_gate_##isa(const float *gate, const float *up, size_t n, float *out);                \
    void rope_neox_##isa(float *x, const float *c, const float *s, size_t n_rot);                  \
    void rope_norm_##isa(float *x, const float *c, const float *s, size_t n_rot);                  \
    void to_f16_##isa(const float *x, size_t n, uint16_t *out);                                    \
    void attn_merge_##isa(float *big_m, float *big_l, float *big_o, const float *m,                \
                          const float *l, const float *o, size_t head_dim);                        \
    void attn_finish_##isa(const float *big_o, float big_l, size_t head_dim, float *out)

/* Prototypes of the kernels that the reference, AVX2 and AVX-512 have, but not NEON. */
#define WIDE_KERNELS(isa)                                                                          \
    void r16_unpack_##isa(const struct r16_mat *w, size_t group0, size_t group1, uint8_t *panel);  \
    void conv_silu_##isa(const float *const x[DELTA_TAPS], const float *w, size_t w_stride,        \
                         size_t n, float *y);                                                      \
    void delta_run_##isa(const struct delta_run *r);                                               \
    void ternary_listed_##isa(const struct ternary_mat *w, const int32_t *rows, size_t n,          \
                              const int8_t *q, int32_t q_sum, int32_t *acc);                       \
    void ternary_columns_##isa(const struct ternary_cols *w, const int32_t *cols, size_t n,        \
                               const int8_t *q, int32_t *acc);                                     \
    size_t live_gates_##isa(const float *gate, size_t n, int32_t *out);                            \
    size_t live_inputs_##isa(const int8_t *q, size_t n, int32_t *out);                             \
    void acc_store_##isa(const struct acc_tile *a, float *y, size_t stride);                       \
    void acc_add_##isa(const struct acc_tile *a, float *y, size_t stride);                         \
    void acc_relu2_##isa(const struct acc_tile *gate, const struct acc_tile *up, float *y,         \
                         size_t stride);                                                           \
    void acc_silu_##isa(const struct acc_tile *gate, const struct acc_tile *up, float *y,          \
                        size_t stride);                                                            \
    size_t mac_peak_##isa(size_t n_rounds);                                                        \
    size_t fma_peak_##isa(size_t n_rounds)

BASE_KERNELS(ref);
COMMON_KERNELS(ref);
WIDE_KERNELS(ref);

/* Building blocks that docs/kernels.md defines. */
float exp0_ref(float x); /* exp(x) for x <= 0; +0 below -60 and for a NaN */
float sigmoid_ref(float x);
float softplus_ref(float x);           /* log(1 + exp(x)) */
float sum64_tree_ref(float lanes[64]); /* the pairwise tree of sum64; overwrites lanes */
float dot64_ref(const float *a, const float *b, size_t n);

/* Kernels that no macro above declares: each other instruction set has only some of them or none,
 * and declares those itself. */
void unit_norm_ref(const float *x, size_t n, float eps, float factor, float *y);
void sigmoid_gate_ref(const float *gate, const float *up, size_t n, float *out);

void quantise_planes_ref(const float *x, size_t n, size_t block_cols,
                         const struct block_plane planes[MAX_PLANES]);
void r16_float_ref(const struct r16_mat *w, size_t group0, size_t group1, const float *x, size_t n,
                   float *y);

void pack_token_ref(const int8_t *q, size_t n_lines, size_t t, int8_t *packed);
const int8_t *gather_tokens_ref(const int8_t *packed, size_t n_lines, size_t n_tokens, int8_t *own);
void unpack_rows_ref(const struct ternary_mat *w, size_t row0, size_t row1, uint8_t *panel);

void coarse_gather_ref(const int8_t *const *x, size_t n, size_t n_blocks, int8_t *out);
void coarse_bound_states_ref(const struct coarse_mat *m, size_t row0, size_t row1,
                             const struct coarse_states *g, float *const *bounds);

#endif
