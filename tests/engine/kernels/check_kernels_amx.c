/*
 * The table of the emulated AMX kernels. It mirrors set_amx of engine/cpu/kernels.c.
 */
#include "tests/engine/kernels/check_kernels_amx.h"

#if defined(__x86_64__)
#include "tests/engine/kernels/amx_emulated.h"
/* The kernels' prototypes, under their new names. */
#include "engine/cpu/x86/kernels_x86.h"

void use_emulated_amx(struct cpu_kernels *k)
{
    k->isa = ISA_AMX;
    k->medium = (struct ternary_gemm){pack_token_ref,  gather_tokens_avx512,
                                      unpack_rows_ref, ternary_matmul_amx_medium,
                                      PACK_TOKENS,     2 * PANEL_ROWS};
    k->many = (struct ternary_gemm){pack_token_amx,     gather_tokens_ref, unpack_rows_amx,
                                    ternary_matmul_amx, MATMUL_TOKENS,     PANEL_ROWS};
    k->r16.matmul = r16_matmul_amx;
    k->coarse_bound_states = coarse_bound_states_amx;
}
#else
void use_emulated_amx(struct cpu_kernels *k)
{
    (void)k;
}
#endif
