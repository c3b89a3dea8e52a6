/*
 * The kernels for x86. engine/cpu/kernels.h has the contracts. Results have the same bits as those
 * of the references in engine/cpu/ref/; only packed and unpacked operands may have other layouts.
 */
#ifndef ENGINE_CPU_X86_KERNELS_X86_H
#define ENGINE_CPU_X86_KERNELS_X86_H

#include "engine/cpu/ref/kernels_ref.h"

/* AVX2, FMA, F16C */
BASE_KERNELS(avx2);
COMMON_KERNELS(avx2);
WIDE_KERNELS(avx2);
void unit_norm_avx2(const float *x, size_t n, float eps, float factor, float *y);
void sigmoid_gate_avx2(const float *gate, const float *up, size_t n, float *out);

/* AVX-VNNI: 256-bit dot products of bytes, with AVX2 */
void ternary_matvec_avxvnni(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                            int32_t q_sum, int32_t *acc);
void ternary_listed_avxvnni(const struct ternary_mat *w, const int32_t *rows, size_t n,
                            const int8_t *q, int32_t q_sum, int32_t *acc);
void ternary_matmul_avxvnni(const struct ternary_mat *w, size_t row0, size_t row1,
                            const struct ternary_batch *batch);
void r16_matvec_avxvnni(const struct r16_mat *w, size_t group0, size_t group1,
                        const struct block_acts *x, float *y);
void r16_matmul_avxvnni(const struct r16_mat *w, size_t group0, size_t group1,
                        const struct r16_batch *batch);
size_t mac_peak_avxvnni(size_t n_rounds);

/* AVX-512 F, BW, DQ, VL, VNNI */
BASE_KERNELS(avx512);
WIDE_KERNELS(avx512);
void ternary_matmul_few_avx512(const struct ternary_mat *w, size_t row0, size_t row1,
                               const struct ternary_batch *batch);
void coarse_gather_avx512(const int8_t *const *x, size_t n, size_t n_blocks, int8_t *out);
void coarse_bound_states_avx512(const struct coarse_mat *m, size_t row0, size_t row1,
                                const struct coarse_states *g, float *const *bounds);
const int8_t *gather_tokens_avx512(const int8_t *packed, size_t n_lines, size_t n_tokens,
                                   int8_t *own);

/* AMX: tile products of bytes, with AVX-512 */
void pack_token_amx(const int8_t *q, size_t n_lines, size_t t, int8_t *packed);
void unpack_rows_amx(const struct ternary_mat *w, size_t row0, size_t row1, uint8_t *panel);
void ternary_matmul_amx(const struct ternary_mat *w, size_t row0, size_t row1,
                        const struct ternary_batch *batch);
void ternary_matmul_amx_medium(const struct ternary_mat *w, size_t row0, size_t row1,
                               const struct ternary_batch *batch);
void r16_matmul_amx(const struct r16_mat *w, size_t group0, size_t group1,
                    const struct r16_batch *batch);
void coarse_bound_states_amx(const struct coarse_mat *m, size_t row0, size_t row1,
                             const struct coarse_states *g, float *const *bounds);
size_t mac_peak_amx(size_t n_rounds);

#endif
