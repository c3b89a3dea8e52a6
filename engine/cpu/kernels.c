/*
 * The ladder: which function runs on which processor. Each rung overwrites what it does better.
 *
 * A pure function of the capability set: tests and --isa hand in smaller sets than the machine has.
 */
#include "engine/cpu/kernels.h"

#include "engine/cpu/ref/kernels_ref.h"

static void rung_ref(struct cpu_kernels *k)
{
    *k = (struct cpu_kernels){
        .isa = ISA_REF,
        .rms_norm = rms_norm_ref,
        .quantise = quantise_ref,
        .ternary_matvec = ternary_matvec_ref,
        .ternary_matmul = ternary_matmul_ref,
        .scale_acc = scale_acc_ref,
        .add = add_ref,
        .relu2_gate = relu2_gate_ref,
        .silu_gate = silu_gate_ref,
        .rope_neox = rope_neox_ref,
        .rope_norm = rope_norm_ref,
        .to_f16 = to_f16_ref,
        .attn_block = attn_block_ref,
        .attn_merge = attn_merge_ref,
        .attn_finish = attn_finish_ref,
    };
    row_kernels_ref(k->row_decode, k->rows_dot);
}

void cpu_kernels_init(struct cpu_kernels *k, const struct cpu_caps *caps)
{
    (void)caps; /* nothing above ref on this processor */
    rung_ref(k);
}
