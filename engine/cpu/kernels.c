/*
 * Fills the kernel table for a choice of instruction sets. They are applied in ascending order, and
 * each one replaces the kernels of which it has a faster version. Tests and --isa choose fewer
 * instruction sets than the machine has.
 */
#include "engine/cpu/kernels.h"

#include "engine/cpu/ref/kernels_ref.h"

#if defined(__x86_64__)
#include "engine/cpu/x86/kernels_x86.h"

/* Values of medium_from and many_from, measured: docs/kernels.md, "Several tokens". */
#define AVX512_MANY_FROM 7
#define AMD_MANY_FROM 17 /* AVX-512 VNNI on AMD */
#define AMX_MEDIUM_FROM 5
#define AMX_MANY_FROM 17
/* Values of coarse_states_from: "Several hidden states in the head" in the same section. */
#define AMX_STATES_FROM 3
#define AVX512_STATES_FROM 8
#elif defined(__aarch64__)
#include "engine/cpu/arm/kernels_arm.h"
#endif

/* Bytes. docs/kernels.md, "Why the kernels are fast". AMD's hardware prefetches several streams as
 * fast as memory delivers them, and software prefetching made the products slower. */
#define STREAM_AHEAD 2560
#define AMD_STREAM_AHEAD 0

static void set_ref(struct cpu_kernels *k)
{
    *k = (struct cpu_kernels){
        .isa = ISA_REF,
        .rms_norm = rms_norm_ref,
        .rotate = rotate_ref,
        .quantise = quantise_ref,
        .ternary_matvec = ternary_matvec_ref,
        .ternary_listed = ternary_listed_ref,
        .ternary_columns = ternary_columns_ref,
        .live_gates = live_gates_ref,
        .live_inputs = live_inputs_ref,
        .quantise_blocks = quantise_blocks_ref,
        .quantise_planes = quantise_planes_ref,
        .r16_matvec = r16_matvec_ref,
        .r16 = {r16_unpack_ref, r16_matmul_ref},
        .r16_float = r16_float_ref,
        .few = {pack_token_ref, gather_tokens_ref, unpack_rows_ref, ternary_matmul_ref, PACK_TOKENS,
                PANEL_ROWS},
        .scale_acc = scale_acc_ref,
        .add = add_ref,
        .relu2_gate = relu2_gate_ref,
        .silu_gate = silu_gate_ref,
        .sigmoid_gate = sigmoid_gate_ref,
        .conv_silu = conv_silu_ref,
        .unit_norm = unit_norm_ref,
        .delta_run = delta_run_ref,
        .acc_store = acc_store_ref,
        .acc_add = acc_add_ref,
        .acc_relu2 = acc_relu2_ref,
        .acc_silu = acc_silu_ref,
        .rope_neox = rope_neox_ref,
        .rope_norm = rope_norm_ref,
        .to_f16 = to_f16_ref,
        .attn_block = attn_block_ref,
        .attn_tile = attn_tile_ref,
        .attn_block_q8 = attn_block_q8_ref,
        .attn_tile_q8 = attn_tile_q8_ref,
        .attn_merge = attn_merge_ref,
        .attn_finish = attn_finish_ref,
        .coarse_pack = coarse_pack_ref,
        .coarse_bound = coarse_bound_ref,
        .coarse_gather = coarse_gather_ref,
        .coarse_bound_states = coarse_bound_states_ref,
        .coarse_states_from = SIZE_MAX,
        .mac_peak = mac_peak_ref,
        .fma_peak = fma_peak_ref,
        .skips_zeros = true,
    };
    k->medium = k->many = k->few;
    row_kernels_ref(k->row_decode, k->rows_dot);
}

#if defined(__x86_64__)
static void set_avx2(struct cpu_kernels *k)
{
    k->isa = ISA_AVX2;
    k->rms_norm = rms_norm_avx2;
    k->rotate = rotate_avx2;
    k->quantise = quantise_avx2;
    k->ternary_matvec = ternary_matvec_avx2;
    k->ternary_listed = ternary_listed_avx2;
    k->ternary_columns = ternary_columns_avx2;
    k->live_gates = live_gates_avx2;
    k->live_inputs = live_inputs_avx2;
    k->few.matmul = k->medium.matmul = k->many.matmul = ternary_matmul_avx2;
    k->quantise_blocks = quantise_blocks_avx2;
    k->r16_matvec = r16_matvec_avx2;
    k->r16 = (struct r16_gemm){r16_unpack_avx2, r16_matmul_avx2};
    k->scale_acc = scale_acc_avx2;
    k->add = add_avx2;
    k->relu2_gate = relu2_gate_avx2;
    k->silu_gate = silu_gate_avx2;
    k->sigmoid_gate = sigmoid_gate_avx2;
    k->conv_silu = conv_silu_avx2;
    k->unit_norm = unit_norm_avx2;
    k->delta_run = delta_run_avx2;
    k->acc_store = acc_store_avx2;
    k->acc_add = acc_add_avx2;
    k->acc_relu2 = acc_relu2_avx2;
    k->acc_silu = acc_silu_avx2;
    k->rope_neox = rope_neox_avx2;
    k->rope_norm = rope_norm_avx2;
    k->to_f16 = to_f16_avx2;
    k->attn_block = attn_block_avx2;
    k->attn_tile = attn_tile_avx2;
    k->attn_block_q8 = attn_block_q8_avx2;
    k->attn_tile_q8 = attn_tile_q8_avx2;
    k->attn_merge = attn_merge_avx2;
    k->attn_finish = attn_finish_avx2;
    k->coarse_pack = coarse_pack_avx2;
    k->coarse_bound = coarse_bound_avx2;
    k->mac_peak = mac_peak_avx2;
    k->fma_peak = fma_peak_avx2;
    row_kernels_avx2(k->row_decode, k->rows_dot);
}

static void set_avxvnni(struct cpu_kernels *k)
{
    k->isa = ISA_AVXVNNI;
    k->ternary_matvec = ternary_matvec_avxvnni;
    k->mac_peak = mac_peak_avxvnni;
    k->ternary_listed = ternary_listed_avxvnni;
    k->few.matmul = k->medium.matmul = k->many.matmul = ternary_matmul_avxvnni;
    k->r16_matvec = r16_matvec_avxvnni;
    k->r16.matmul = r16_matmul_avxvnni;
}

static void set_avx512vnni(struct cpu_kernels *k, bool is_amd)
{
    k->isa = ISA_AVX512VNNI;
    k->ternary_matvec = ternary_matvec_avx512;
    k->ternary_listed = ternary_listed_avx512;
    k->ternary_columns = ternary_columns_avx512;
    k->live_gates = live_gates_avx512;
    k->live_inputs = live_inputs_avx512;
    k->few.matmul = ternary_matmul_few_avx512;
    k->few.panel_rows = 2 * PANEL_ROWS; /* the kernel reads distant parts of them as streams */
    k->medium.matmul = k->many.matmul = ternary_matmul_avx512;
    k->medium_from = k->many_from = is_amd ? AMD_MANY_FROM : AVX512_MANY_FROM;
    k->rotate = rotate_avx512;
    k->quantise = quantise_avx512;
    k->quantise_blocks = quantise_blocks_avx512;
    k->r16_matvec = r16_matvec_avx512;
    k->r16 = (struct r16_gemm){r16_unpack_avx512, r16_matmul_avx512};
    k->acc_store = acc_store_avx512;
    k->acc_add = acc_add_avx512;
    k->acc_relu2 = acc_relu2_avx512;
    k->acc_silu = acc_silu_avx512;
    k->attn_block = attn_block_avx512;
    k->attn_tile = attn_tile_avx512;
    k->attn_block_q8 = attn_block_q8_avx512;
    k->attn_tile_q8 = attn_tile_q8_avx512;
    k->coarse_pack = coarse_pack_avx512;
    k->coarse_bound = coarse_bound_avx512;
    k->coarse_gather = coarse_gather_avx512;
    k->coarse_bound_states = coarse_bound_states_avx512;
    k->coarse_states_from = AVX512_STATES_FROM;
    k->conv_silu = conv_silu_avx512;
    k->delta_run = delta_run_avx512;
    k->mac_peak = mac_peak_avx512;
    k->fma_peak = fma_peak_avx512;
    row_kernels_avx512(k->row_decode, k->rows_dot);
}

static void set_amx(struct cpu_kernels *k)
{
    k->isa = ISA_AMX;
    k->medium = (struct ternary_gemm){pack_token_ref,  gather_tokens_avx512,
                                      unpack_rows_ref, ternary_matmul_amx_medium,
                                      PACK_TOKENS,     2 * PANEL_ROWS};
    k->many = (struct ternary_gemm){pack_token_amx,     gather_tokens_ref, unpack_rows_amx,
                                    ternary_matmul_amx, MATMUL_TOKENS,     PANEL_ROWS};
    k->r16.matmul = r16_matmul_amx;
    k->coarse_bound_states = coarse_bound_states_amx;
    k->coarse_states_from = AMX_STATES_FROM;
    k->mac_peak = mac_peak_amx;
    k->medium_from = AMX_MEDIUM_FROM;
    k->many_from = AMX_MANY_FROM;
}
#elif defined(__aarch64__)
static void set_neon(struct cpu_kernels *k)
{
    k->isa = ISA_NEON;
    k->skips_zeros = false; /* the kernels that skip zeros are those of ref */
    k->rms_norm = rms_norm_neon;
    k->rotate = rotate_neon;
    k->quantise = quantise_neon;
    k->ternary_matvec = ternary_matvec_neon;
    k->few.matmul = k->medium.matmul = k->many.matmul = ternary_matmul_neon;
    k->quantise_blocks = quantise_blocks_neon;
    k->r16_matvec = r16_matvec_neon;
    k->r16.matmul = r16_matmul_neon;
    k->scale_acc = scale_acc_neon;
    k->add = add_neon;
    k->relu2_gate = relu2_gate_neon;
    k->silu_gate = silu_gate_neon;
    k->rope_neox = rope_neox_neon;
    k->rope_norm = rope_norm_neon;
    k->to_f16 = to_f16_neon;
    k->attn_block = attn_block_neon;
    k->attn_tile = attn_tile_neon;
    k->attn_block_q8 = attn_block_q8_neon;
    k->attn_tile_q8 = attn_tile_q8_neon;
    k->attn_merge = attn_merge_neon;
    k->attn_finish = attn_finish_neon;
    k->coarse_pack = coarse_pack_neon;
    k->coarse_bound = coarse_bound_neon;
    row_kernels_neon(k->row_decode, k->rows_dot);
}

static void set_dotprod(struct cpu_kernels *k)
{
    k->isa = ISA_DOTPROD;
    k->ternary_matvec = ternary_matvec_dotprod;
    k->few.matmul = k->medium.matmul = k->many.matmul = ternary_matmul_dotprod;
    k->r16_matvec = r16_matvec_dotprod;
    k->r16.matmul = r16_matmul_dotprod;
}

static void set_i8mm(struct cpu_kernels *k)
{
    k->isa = ISA_I8MM;
    k->medium.pack = pack_token_i8mm;
    k->medium.matmul = ternary_matmul_i8mm;
    k->many = k->medium; /* many_from is 0, so every pass of several tokens uses `many` */
}
#endif

void cpu_kernels_init(struct cpu_kernels *k, const struct cpu_caps *caps)
{
    set_ref(k);
    k->stream_ahead = caps->is_amd ? AMD_STREAM_AHEAD : STREAM_AHEAD;
#if defined(__x86_64__)
    if (caps->has[ISA_AVX2])
        set_avx2(k);
    if (caps->has[ISA_AVXVNNI])
        set_avxvnni(k);
    if (caps->has[ISA_AVX512VNNI])
        set_avx512vnni(k, caps->is_amd);
    if (caps->has[ISA_AMX])
        set_amx(k);
#elif defined(__aarch64__)
    if (caps->has[ISA_NEON])
        set_neon(k);
    if (caps->has[ISA_DOTPROD])
        set_dotprod(k);
    if (caps->has[ISA_I8MM])
        set_i8mm(k);
#else
    (void)caps; /* only ref exists for this processor */
#endif
}
