/*
 * r16_matvec and r16_matmul for AVX-VNNI. The method is that of r16_halves.h; one
 * instruction adds four products of bytes to an int32 sum.
 */
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/r16_halves.h"

BN_FORCE_INLINE __m256i add(__m256i sum, __m256i codes, __m256i q)
{
    return _mm256_dpbusd_avx_epi32(sum, codes, q);
}

BN_FORCE_INLINE __m256i finish(__m256i plain, __m256i fourfold)
{
    return _mm256_add_epi32(plain, _mm256_srai_epi32(fourfold, 2));
}

#define PRODUCTS ((struct byte_products){add, finish})

void r16_matvec_avxvnni(const struct r16_mat *w, size_t group0, size_t group1,
                        const struct block_acts *x, float *y)
{
    r16_matvec_halves(PRODUCTS, w, group0, group1, x, y);
}

void r16_matmul_avxvnni(const struct r16_mat *w, size_t group0, size_t group1,
                        const struct r16_batch *batch)
{
    r16_matmul_halves(PRODUCTS, w, group0, group1, batch);
}
