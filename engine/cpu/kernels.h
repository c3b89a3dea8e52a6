/*
 * The kernels of the CPU backend: a function type for each, and the table of the kernels in use.
 *
 * docs/kernels.md specifies the arithmetic, and ref/ is that specification in C. All other kernels
 * give the same bits; tests/engine/kernels/check_kernels compares them. Unless stated otherwise,
 * pointers do not alias and need no alignment. Kernels allocate nothing, keep no state (AMX tiles
 * are live only within a call), and may run on several threads with disjoint outputs. Addresses of
 * prefetches may be past the end of an array, so kernels compute them as integers (uintptr_t).
 */
#ifndef ENGINE_CPU_KERNELS_H
#define ENGINE_CPU_KERNELS_H

#include "engine/cpu/cpu_caps.h"
#include "engine/cpu/kernels_attn.h"
#include "engine/cpu/kernels_coarse.h"
#include "engine/cpu/kernels_delta.h"
#include "engine/cpu/kernels_r16.h"
#include "engine/cpu/kernels_ternary.h"
#include "engine/gguf/gguf_types.h"
#include "engine/model/rotation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACK_TOKENS 16   /* packed activations come in packs of this many tokens */
#define MATMUL_TOKENS 32 /* most tokens in a call of ternary_matmul */
#define PANEL_ROWS 128   /* most rows that are unpacked together */
#define PANEL_ALIGN 16   /* unpacked rows are padded to a multiple of this */

/* Input of a ternary layer: x, or RMSNorm(x) * w if w is not NULL. */
struct act_in {
    const float *x; /* (n) */
    const float *w; /* (n), or NULL */
    size_t n;
    float eps;         /* used only with w */
    const void *ahead; /* the x (n) that is quantised next, to prefetch; any pointer or NULL */
};
/* The scale and the sum of the quantised activations q of one token. */
struct act_scale {
    float s;       /* 127 / max(absmax, 1e-5) */
    int32_t q_sum; /* sum of q */
};

/* y = RMSNorm(x) * w; x, w, y (n). y may be x. */
typedef void (*rms_norm_fn)(const float *x, const float *w, size_t n, float eps, float *y);

/* The step "rotate" of docs/kernels.md, "Rotated inputs": signs (n), or NULL if all are +1, then a
 * Walsh-Hadamard transform of each rotation block of `block` elements. `block` is a power of two
 * from ROTATION_MIN to ROTATION_MAX and divides n. x, y (n); y may be x. */
typedef void (*rotate_fn)(const float *x, const float *signs, size_t n, size_t block, float *y);

/* Step "quantise" of docs/kernels.md. q (n rounded up to LINE_COLS): 0 past n, 64-byte aligned. */
typedef void (*quantise_fn)(const struct act_in *in, int8_t *q, struct act_scale *out);

/* Several tokens are multiplied in four steps. The first three bring activations and weights into
 * the layout for the fourth. All four must be from the same struct ternary_gemm.
 *
 * pack: store q (n_lines * LINE_COLS) of token t in packed (whole packs of PACK_TOKENS tokens).
 * Pack p begins at byte p * PACK_TOKENS * n_lines * LINE_COLS. Both are 64-byte aligned. */
typedef void (*pack_token_fn)(const int8_t *q, size_t n_lines, size_t t, int8_t *packed);

/* gather: bring n_tokens packed tokens (at most call_tokens, starting with the first of a pack)
 * into the layout for matmul. If no change is needed it returns `packed`, for any n_tokens; else
 * call_tokens is PACK_TOKENS, and it fills and returns `own` (a pack, 64-byte aligned). */
typedef const int8_t *(*gather_tokens_fn)(const int8_t *packed, size_t n_lines, size_t n_tokens,
                                          int8_t *own);

/* unpack: expand rows row0 .. row1 - 1 to panel, (row1 - row0 rounded up to PANEL_ALIGN, n_lines *
 * LINE_COLS) bytes, 64-byte aligned. Does nothing where matmul reads the lines directly. */
typedef void (*unpack_rows_fn)(const struct ternary_mat *w, size_t row0, size_t row1,
                               uint8_t *panel);

/* matmul: acc[t * acc_stride + r - row0] = sum over columns of (code - 1) * q of row r and token t,
 * for t < n_tokens <= call_tokens and at most panel_rows rows. */
struct ternary_batch {
    const int8_t *q;       /* gathered tokens, starting with the first of a pack */
    const int32_t *q_sums; /* (n_tokens) */
    const uint8_t *panel;  /* rows row0 .. row1 - 1 as unpack has written them, if it does */
    size_t n_tokens;
    int32_t *acc;
    size_t acc_stride;
    /* Only prefetched: the lines that are read next (any address or NULL), and the destination of
     * the results (n_tokens, out_stride), 64-byte aligned or NULL. */
    const uint8_t *ahead;
    const float *out;
    size_t out_stride;
};
typedef void (*ternary_matmul_fn)(const struct ternary_mat *w, size_t row0, size_t row1,
                                  const struct ternary_batch *batch);

struct ternary_gemm {
    pack_token_fn pack;
    gather_tokens_fn gather;
    unpack_rows_fn unpack;
    ternary_matmul_fn matmul;
    size_t call_tokens; /* tokens per call: a multiple of PACK_TOKENS, at most MATMUL_TOKENS */
    /* Rows per call. panel_rows * call_tokens is at most MATMUL_TOKENS * PANEL_ROWS, the size of
     * cpu_thread.acc. More than PANEL_ROWS is allowed only if nothing is unpacked. */
    size_t panel_rows;
};

/* y[i] = (float)acc[i] * d; acc, y (n) */
typedef void (*scale_acc_fn)(const int32_t *acc, size_t n, float d, float *y);
/* h[i] = h[i] + y[i] */
typedef void (*add_fn)(float *h, const float *y, size_t n);
/* out[i] = act(gate[i]) * up[i]; out may be gate or up. relu2: +0 where gate <= 0, for any up. */
typedef void (*gate_fn)(const float *gate, const float *up, size_t n, float *out);

/* Conversion of integer sums of several tokens to F32: v = ((float)acc * d) * extra, then + bias
 * unless it is NULL. Element (t, r) of an output y is at y + t * stride + r. */
struct acc_tile {
    const int32_t *acc; /* (n_tokens, acc_stride) */
    size_t acc_stride;
    size_t n_tokens, n_rows;
    const float *d; /* (n_tokens) */
    float extra;
    const float *bias; /* (n_rows) or NULL */
};
/* y = v, or y = y + v */
typedef void (*acc_out_fn)(const struct acc_tile *a, float *y, size_t stride);
/* y = act(v of gate) * (v of up). Both have the same tokens and rows. */
typedef void (*acc_gate_fn)(const struct acc_tile *gate, const struct acc_tile *up, float *y,
                            size_t stride);

/* RoPE on one head, in place: x (n_rot), c and s (n_rot / 2). */
typedef void (*rope_fn)(float *x, const float *c, const float *s, size_t n_rot);
/* F32 to F16 for the KV cache: round to nearest even, saturate at 65504. A NaN stays a NaN. */
typedef void (*to_f16_fn)(const float *x, size_t n, uint16_t *out);

/* Convert a table row (embedding, output head) to F32. n is a multiple of the type's block size. */
typedef void (*row_decode_fn)(const uint8_t *row, size_t n, float *out);
/* Rows of a table: the first n_rows, or those in ids. */
struct table_rows {
    const uint8_t *table;
    size_t row_bytes; /* distance between rows */
    size_t n_rows;
    const int32_t *ids; /* (n_rows) or NULL */
};
static inline const uint8_t *table_row(const struct table_rows *t, size_t r)
{
    return t->table + (t->ids ? (size_t)t->ids[r] : r) * t->row_bytes;
}
/* z[r] = dot64(row r, h), n columns. scratch (n) floats. */
typedef void (*rows_dot_fn)(const struct table_rows *rows, const float *h, size_t n, float *z,
                            float *scratch);

/* Work whose time cpu_measure.c measures: n_rounds of the multiply-adds of ternary_matmul, for
 * fma_peak those of attention, without reads from memory. Returns the number of multiply-adds. */
typedef size_t (*mac_peak_fn)(size_t n_rounds);

/* The kernels in use. docs/kernels.md, "From a step to its kernel", has the callers and shapes. */
struct cpu_kernels {
    enum cpu_isa isa; /* the highest instruction set in the table */
    /* input of a linear layer, and other norms */
    rms_norm_fn rms_norm;
    rotate_fn rotate;
    quantise_fn quantise;               /* R1-256; R16 with one scale per token; Q8 cache */
    quantise_blocks_fn quantise_blocks; /* R16 */
    quantise_planes_fn quantise_planes; /* R16, 16 bits */
    /* R1-256, one token: sums in int32, then scale_acc */
    ternary_matvec_fn ternary_matvec;
    live_gates_fn live_gates; /* skipping zeros, with the next three */
    live_inputs_fn live_inputs;
    ternary_listed_fn ternary_listed;
    ternary_columns_fn ternary_columns;
    bool skips_zeros; /* these four are faster than reading all weights */
    scale_acc_fn scale_acc;
    /* R1-256, several tokens: sums in int32, then acc_*. A pass gathers all its tokens at once. So
     * only `few` and `medium` may have a gather that copies, and then many_from is at most
     * PACK_TOKENS + 1. */
    struct ternary_gemm few, medium, many;
    size_t medium_from, many_from; /* tokens from which they are used; many_from 0: always many */
    acc_out_fn acc_store, acc_add;
    acc_gate_fn acc_relu2, acc_silu;
    /* R16: products in F32 */
    r16_matvec_fn r16_matvec; /* one token */
    struct r16_gemm r16;      /* several tokens */
    r16_float_fn r16_float;   /* one token that is not quantised */
    /* vectors of F32 */
    add_fn add;
    gate_fn relu2_gate, silu_gate;
    gate_fn sigmoid_gate; /* out[i] = sigmoid(gate[i]) * up[i] */
    /* attention */
    rope_fn rope_neox, rope_norm;
    to_f16_fn to_f16;
    attn_block_fn attn_block, attn_block_q8; /* for an F16 and for a Q8 cache */
    attn_tile_fn attn_tile, attn_tile_q8;
    attn_merge_fn attn_merge;
    attn_finish_fn attn_finish;
    /* gated delta nets */
    conv_silu_fn conv_silu;
    unit_norm_fn unit_norm;
    delta_run_fn delta_run;
    /* tables: embedding and output head */
    row_decode_fn row_decode[TENSOR_N_TYPES]; /* NULL for types that tables cannot have */
    rows_dot_fn rows_dot[TENSOR_N_TYPES];     /* as row_decode */
    coarse_pack_fn coarse_pack;
    coarse_bound_fn coarse_bound;
    coarse_gather_fn coarse_gather;
    coarse_bound_states_fn coarse_bound_states;
    size_t coarse_states_from; /* hidden states from which coarse_bound_states is faster */
    /* measurements and prefetching */
    mac_peak_fn mac_peak, fma_peak;
    size_t stream_ahead; /* the member `ahead` of ternary_mat, r16_mat and coarse_mat */
};

/* Fill the table for a set of instruction sets that this processor has. A pure function. */
void cpu_kernels_init(struct cpu_kernels *k, const struct cpu_caps *caps);

#endif
