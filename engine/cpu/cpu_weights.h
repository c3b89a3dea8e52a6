/*
 * The weights of the CPU backend, as its passes read them: packed matrices, norms, biases. Private
 * to engine/cpu.
 */
#ifndef ENGINE_CPU_CPU_WEIGHTS_H
#define ENGINE_CPU_CPU_WEIGHTS_H

#include "engine/cpu/kernels.h"
#include "engine/layout/pass_matrix.h"
#include "engine/model/rotation.h"

#include <stddef.h>
#include <stdint.h>

/* The rows of one matrix, such as q, within several matrices that are stored as one, such as qkv:
 * y = acc * (scale / s) * extra + bias, where s is the scale of the activations. */
struct section {
    size_t row0, n_rows;
    float scale, extra;
    const float *bias; /* (n_rows) or NULL */
    /* Only for a matrix in R16; then the products already include 1 / s and the scales of blocks.
     * `scale` is 1 unless the matrix of the file has one scale. */
    struct r16_mat groups;
    size_t group0;           /* number of the first row group among those of all sections */
    const float *row_scales; /* (n_rows), a factor besides `scale`; NULL: none */
};

/* A matrix that a pass multiplies (pass_matrix.h), packed in one of three forms:
 *
 *     R1-256             mat; n_groups and cols.n_cols are 0
 *     R1-256 by column   cols, and mat for several tokens; see pack_in_columns in cpu_pack.c
 *     R16                groups of each section; n_groups is not 0, mat and cols are empty
 *
 * cpu_linear.c multiplies the first two forms and passes the third to cpu_linear_r16.c. */
struct weights {
    struct ternary_mat mat; /* with cols: the bytes of the file, columns in file order */
    size_t n_cols;
    struct ternary_cols cols;                   /* for passes of one token */
    struct section sections[PASS_MAX_SECTIONS]; /* in row order; together they are all rows */
    size_t n_sections;
    /* R16: row groups of all sections, and columns of an activation block */
    size_t n_groups, block_cols;
    struct rotation rotation; /* of the input */
};

/* A small matrix of floats in the type of the file. */
struct float_matrix {
    const uint8_t *rows; /* (n_rows, row_bytes) */
    size_t row_bytes;
    enum tensor_type type;
};

/* A gated delta net, besides the matrices of struct cpu_layer: qkv has the sections attn_qkv and
 * attn_gate (z), and o is ssm_out. */
struct cpu_delta {
    size_t index;                    /* number among the delta nets */
    const float *conv;               /* (DELTA_TAPS, channels) */
    struct float_matrix alpha, beta; /* (n_value_heads, n_embd) */
    const float *dt_bias, *a;        /* (n_value_heads) a: ssm_a */
    const float *norm;               /* (dim) of the results of a head */
};

struct cpu_layer {
    const float *attn_norm, *ffn_norm;         /* (n_embd) */
    const float *q_norm, *k_norm;              /* (head_dim); NULL if absent */
    const float *attn_sub_norm, *ffn_sub_norm; /* (n_heads * head_dim), (n_ff); NULL if absent */
    const float *router;                       /* (n_experts, n_embd); NULL without experts */
    struct weights qkv, o, gate_up, down;
    struct cpu_delta delta; /* only if the layer is a delta net */
    bool has_ring;          /* keys and values are in the ring of each sequence */
    /* Number among the layers with a ring, or among those with keys and values of all positions.
     * Not used for a delta net. */
    size_t kv_index;
};

#endif
