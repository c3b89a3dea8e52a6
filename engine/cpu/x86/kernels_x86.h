/*
 * The kernels for x86. engine/cpu/kernels.h has the contracts. Every function returns the same bits
 * as its reference in engine/cpu/ref/.
 */
#ifndef ENGINE_CPU_X86_KERNELS_X86_H
#define ENGINE_CPU_X86_KERNELS_X86_H

#include "engine/cpu/ref/kernels_ref.h"

/* AVX2, FMA, F16C */
COMMON_KERNELS(avx2);
WIDE_KERNELS(avx2);

/* AVX-VNNI: 256-bit dot products of bytes, with AVX2 */
void ternary_matvec_avxvnni(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                            int32_t q_sum, int32_t *acc);
void ternary_some_avxvnni(const struct ternary_mat *w, const int32_t *rows, size_t n,
                          const int8_t *q, int32_t q_sum, int32_t *acc);
void ternary_matmul_avxvnni(const struct ternary_mat *w, size_t row0, size_t row1,
                            const struct ternary_batch *batch);
size_t mac_peak_avxvnni(size_t n_rounds);

/* AVX-512 F, BW, DQ, VL, VNNI */
WIDE_KERNELS(avx512);
void ternary_matvec_avx512(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                           int32_t q_sum, int32_t *acc);
void ternary_matmul_avx512(const struct ternary_mat *w, size_t row0, size_t row1,
                           const struct ternary_batch *batch);
void ternary_matmul_few_avx512(const struct ternary_mat *w, size_t row0, size_t row1,
                               const struct ternary_batch *batch);
void quantise_avx512(const struct act_in *in, int8_t *q, struct act_scale *out);
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
