/*
 * The inner loops of the CPU backend: one function type a job, one table, filled as a ladder.
 *
 * Contracts are here; docs/kernels.md is the arithmetic. ref/ is the specification in C; every
 * other rung gives the same bits, which tests/engine/check_kernels compares. Pointers do not alias
 * unless said. Alignment: none needed unless said; buffers the backend makes are aligned to 64
 * bytes. Kernels allocate nothing, keep no state (AMX tiles are live within a call only), and may
 * run on several threads with disjoint outputs.
 */
#ifndef ENGINE_CPU_KERNELS_H
#define ENGINE_CPU_KERNELS_H

#include "engine/cpu/cpu_caps.h"
#include "engine/cpu/kernels_attn.h"
#include "engine/cpu/kernels_ternary.h"
#include "engine/gguf/gguf_types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACK_TOKENS 16   /* packed activations come in whole groups of so many tokens */
#define MATMUL_TOKENS 32 /* most tokens one call of ternary_matmul takes */
#define PANEL_ROWS 128   /* most rows that are unpacked together */
#define PANEL_ALIGN 16   /* unpacked rows come in whole groups of so many */

/* What a ternary layer multiplies with: x, or with weights RMSNorm(x) * w. */
struct act_in {
    const float *x; /* (n) */
    const float *w; /* (n), or NULL */
    size_t n;
    float eps; /* with w */
    const void
        *ahead; /* the x (n) that is quantised next, to be prefetched: any pointer, or NULL */
};
/* Quantised activations of one token. */
struct act_scale {
    float s;       /* 127 / max(absmax, 1e-5) */
    int32_t q_sum; /* sum of q */
};

/* y = RMSNorm(x) * w; x, w, y (n). y may be x. */
typedef void (*rms_norm_fn)(const float *x, const float *w, size_t n, float eps, float *y);

/* -> q (n rounded up to LINE_COLS, zeros past n; 64-byte aligned). */
typedef void (*quantise_fn)(const struct act_in *in, int8_t *q, struct act_scale *out);

/* Several tokens are multiplied in four steps, the first three of which bring activations and
 * weights into the form that the last is fast with. All must be of one struct ternary_gemm.
 *
 * pack: q (n_lines * LINE_COLS) of token t to its place in packed, which has room for whole groups
 * of PACK_TOKENS tokens; group g begins at byte g * PACK_TOKENS * n_lines * LINE_COLS. Both 64-byte
 * aligned. */
typedef void (*pack_token_fn)(const int8_t *q, size_t n_lines, size_t t, int8_t *packed);

/* gather: n_tokens (at most block_tokens, the first of a group) packed tokens into the form that
 * matmul takes. Returns `packed` where that is it already, else `own`, which has room for a group
 * and is 64-byte aligned. Every thread does it for itself, once all tokens are packed. */
typedef const int8_t *(*gather_tokens_fn)(const int8_t *packed, size_t n_lines, size_t n_tokens,
                                          int8_t *own);

/* unpack: rows row0 .. row1 - 1 to panel, (row1 - row0 rounded up to PANEL_ALIGN, n_lines *
 * LINE_COLS) bytes, 64-byte aligned. Ways that read the lines as they are leave it alone. */
typedef void (*unpack_rows_fn)(const struct ternary_mat *w, size_t row0, size_t row1,
                               uint8_t *panel);

/* matmul: acc[t * acc_stride + r - row0], t < n_tokens <= MATMUL_TOKENS, at most the way's
 * panel_rows rows. */
struct ternary_batch {
    const int8_t *q;       /* gathered, from the first token of a group */
    const int32_t *q_sums; /* (n_tokens) */
    const uint8_t *panel;  /* rows row0 .. row1 - 1 unpacked */
    size_t n_tokens;
    int32_t *acc;
    size_t acc_stride;
    const uint8_t *ahead; /* lines that will be read next, for a kernel that reads lines itself to
                             fetch; any address, or NULL */
    const float *out; /* (n_tokens, out_stride) where what follows from the sums will be stored, for
                         a kernel to fetch; 64-byte aligned, or NULL */
    size_t out_stride;
};
typedef void (*ternary_matmul_fn)(const struct ternary_mat *w, size_t row0, size_t row1,
                                  const struct ternary_batch *batch);

struct ternary_gemm {
    pack_token_fn pack;
    gather_tokens_fn gather;
    unpack_rows_fn unpack;
    ternary_matmul_fn matmul;
    size_t block_tokens; /* a call: a multiple of PACK_TOKENS, at most MATMUL_TOKENS */
    size_t panel_rows;   /* a call: times block_tokens at most MATMUL_TOKENS * PANEL_ROWS; above
                           PANEL_ROWS only where nothing is unpacked */
};

/* y[i] = (float)acc[i] * d; i < n */
typedef void (*scale_acc_fn)(const int32_t *acc, size_t n, float d, float *y);
/* h[i] = h[i] + y[i] */
typedef void (*add_fn)(float *h, const float *y, size_t n);
/* out[i] = act(gate[i]) * up[i]; out may be gate. relu2: +0 where the gate is not above 0, whatever
 * up is. */
typedef void (*gate_fn)(const float *gate, const float *up, size_t n, float *out);

/* Integer sums of several tokens on their way to F32: v = ((float)acc * d) * extra, then + bias if
 * there is one. Element (t, r) of an output y is at y + t * stride + r; y must not overlap acc. */
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

/* One head (n_rot of it): x in place, c and s (n_rot / 2). */
typedef void (*rope_fn)(float *x, const float *c, const float *s, size_t n_rot);
/* F32 to F16 as the KV recipe says: nearest even, saturating at 65504. */
typedef void (*to_f16_fn)(const float *x, size_t n, uint16_t *out);

/* Row of a table (embedding or head) to F32; n is a whole number of the type's blocks. */
typedef void (*row_decode_fn)(const uint8_t *row, size_t n, float *out);
/* Rows of a table: the n_rows from number 0 on, or those of these numbers. */
struct table_rows {
    const uint8_t *table;
    size_t row_bytes; /* from a row to the next */
    size_t n_rows;
    const int32_t *ids; /* (n_rows), NULL: neighbours */
};
static inline const uint8_t *table_row(const struct table_rows *t, size_t r)
{
    return t->table + (t->ids ? (size_t)t->ids[r] : r) * t->row_bytes;
}
/* z[r] = dot64(row r, h), n columns. scratch (n) floats. */
typedef void (*rows_dot_fn)(const struct table_rows *rows, const float *h, size_t n, float *z,
                            float *scratch);

/* A table at four bits a weight: (2 code - 15) * step. Blocks of COARSE_COLS columns are a line:
 * byte j holds column j below and column j + 64 above. */
#define COARSE_COLS 128
struct coarse_mat {
    const uint8_t *lines;  /* (n_rows, n_blocks, LINE_BYTES), 64-byte aligned */
    const uint16_t *steps; /* (n_rows, step_stride) BF16, zeros past n_blocks */
    size_t n_blocks;
    size_t step_stride; /* a multiple of 8 */
};
/* A hidden state as x = (128 high + low) * unit. */
struct coarse_query {
    const int8_t *x;    /* (n_blocks, 2, 128) high, twice low; 64-byte aligned */
    const int32_t *fix; /* (n_blocks, 16) lane j: -15 times the sum of (128 high + low) over columns
                           4 j .. 4 j + 3 and 64 on; 64-byte aligned */
    const float *spread; /* (step_stride) how far a step of a block may mislead, zeros past */
    float unit;
};

/* Row number `row` of a table, w (n_blocks * COARSE_COLS), to lines (n_blocks, LINE_BYTES) and
 * steps (n_blocks). Returns the largest magnitude; blocks above COARSE_MAX, or with a NaN, become
 * 0. */
typedef float (*coarse_pack_fn)(const float *w, size_t n_blocks, size_t row, uint8_t *lines,
                                uint16_t *steps);
/* up[r - row0] = coarse product + sqrt(sum over blocks of (step * spread)^2 + 1e-36) */
typedef void (*coarse_bound_fn)(const struct coarse_mat *m, size_t row0, size_t row1,
                                const struct coarse_query *q, float *up);

/* The same for up to COARSE_GROUP hidden states in one pass over the plane, with a recipe of its
 * own: bounds too, but other numbers. Past the last of them everything is zero. */
#define COARSE_GROUP 16
#define COARSE_LEAST 1e-37f /* least square of a step or spread: none is lost to underflow */
struct coarse_group {
    size_t n;
    const int8_t *x;    /* (n_blocks, 4, 16, COARSE_GROUP, 4) quarters as in coarse_query; line i of
                           one holds columns 4 i .. 4 i + 3 of each; 64-byte aligned */
    const int32_t *fix; /* (n_blocks, COARSE_GROUP) the sum of a block's lanes; aligned */
    const float *spread2; /* (n_blocks, COARSE_GROUP) the squares of it; aligned */
    const float *unit;    /* (COARSE_GROUP) aligned */
};
/* x of n queries, (n_blocks, 256) each, to the form of a group. */
typedef void (*coarse_gather_fn)(const int8_t *const *x, size_t n, size_t n_blocks, int8_t *out);
/* up[i][r - row0] = coarse product + sqrt(sum over blocks of max(step^2, COARSE_LEAST) * spread2 +
 * 1e-36), i < n */
typedef void (*coarse_bounds_fn)(const struct coarse_mat *m, size_t row0, size_t row1,
                                 const struct coarse_group *g, float *const *up);

/* The arithmetic that ternary_matmul is made of, or (fma_peak) attention, from registers, n_rounds
 * times some number of multiply-adds, which is returned. Computes nothing of use: see cpu_peak.c.
 */
typedef size_t (*mac_peak_fn)(size_t n_rounds);

struct cpu_kernels {
    enum cpu_isa isa; /* the highest rung in the table */
    rms_norm_fn rms_norm;
    quantise_fn quantise;
    ternary_matvec_fn ternary_matvec;
    ternary_some_fn ternary_some;
    ternary_columns_fn ternary_columns;
    live_gates_fn live_gates;
    live_inputs_fn live_inputs;
    struct ternary_gemm few, medium, many; /* right for any number of tokens, fast for its own; */
    size_t medium_from, many_from;         /* passes of so many tokens are faster with the next */
    scale_acc_fn scale_acc;
    add_fn add;
    gate_fn relu2_gate, silu_gate;
    acc_out_fn acc_store, acc_add;
    acc_gate_fn acc_relu2, acc_silu;
    rope_fn rope_neox, rope_norm;
    to_f16_fn to_f16;
    attn_block_fn attn_block, attn_block_q8; /* for a cache of F16, and of bytes */
    attn_tile_fn attn_tile, attn_tile_q8;
    attn_merge_fn attn_merge;
    attn_finish_fn attn_finish;
    row_decode_fn row_decode[TENSOR_N_TYPES]; /* NULL for types that are no tables */
    rows_dot_fn rows_dot[TENSOR_N_TYPES];     /* the same */
    coarse_pack_fn coarse_pack;
    coarse_bound_fn coarse_bound;
    coarse_gather_fn coarse_gather;
    coarse_bounds_fn coarse_bounds;
    size_t coarse_group_from; /* so many hidden states are faster as a group */
    mac_peak_fn mac_peak, fma_peak;
    bool skips_zeros; /* what zeros cancel is faster left out: the four kernels for it are the
                         rung's */
};

/* Fill the table for a capability set: reads top to bottom as a ladder, ref first. A pure function.
 */
void cpu_kernels_init(struct cpu_kernels *k, const struct cpu_caps *caps);

#endif
