/*
 * The arguments of the kernels for gated delta nets, and for the gates of attention that models
 * with delta nets have. docs/kernels.md, "Gated delta nets", has the arithmetic.
 *
 * In a delta net, a token's row of qkv has the queries and keys of all key heads, the values of all
 * value heads, and the output gates z of all value heads, each head with `dim` elements.
 */
#ifndef ENGINE_CUDA_KERNELS_CUDA_DELTA_ARGS_H
#define ENGINE_CUDA_KERNELS_CUDA_DELTA_ARGS_H

#include <stdint.h>

#define STATE_TAPS 4      /* tokens of the convolution, the current one included */
#define STATE_COLS 64     /* columns of a state that are stored together */
#define GATE_HEADS 2      /* value heads per thread block of delta_gates: a warp for each row */
#define GATE_BATCH 16     /* pairs of elements of a row that a lane of delta_gates loads ahead */
#define DELTA_THREADS 128 /* of delta_gates and delta_run */
#define HELD_ROWS 64      /* most rows of a column that a lane of delta_run has in registers */
#define DELTA_BATCH 4     /* tokens that delta_run loads together */
#define CONVOLVE_THREADS 128
#define SPLIT_GATE_FLOATS 8192 /* most elements of queries and gates of a KV head: 32 kB */

/* The tokens of one sequence in a pass, and its recurrent state before and after them. A state
 * consists of the states of all delta nets. Each has a (dim, dim) matrix for each value head, in
 * strips of STATE_COLS columns, then the last STATE_TAPS - 1 inputs of the convolution, oldest
 * first. */
struct cuda_run {
    const float *from; /* NULL: zeros, because the sequence has no earlier tokens */
    float *to;
    uint32_t token0, n_tokens;
};

/* The decay and beta of each value head. Grid: tokens, heads / GATE_HEADS rounded up. */
struct delta_gates_args {
    const float *h, *norm;            /* h (n_tokens, h_stride); norm (n) */
    const uint8_t *alpha, *beta;      /* (n_heads) rows of n elements */
    const float *dt_bias, *a;         /* (n_heads) */
    float *gates;                     /* (n_tokens, n_heads, 2): decay, beta */
    uint64_t alpha_bytes, beta_bytes; /* of a row */
    uint32_t alpha_type, beta_type;   /* enum tensor_type: F32, F16 or BF16 */
    uint32_t n, h_stride, n_heads;
    float eps;
};

/* Convolution and SiLU of queries, keys and values, in place. Also writes the inputs that the next
 * pass needs. Grid: runs, channels / CONVOLVE_THREADS rounded up. */
struct delta_convolve_args {
    const struct cuda_run *runs;
    const float *taps; /* (n_channels, STATE_TAPS), oldest first */
    float *qkv;        /* (n_tokens, qkv_stride) */
    uint64_t kept;     /* floats from the beginning of a state to the inputs of this layer */
    uint32_t qkv_stride, n_channels;
};

/* Divides each query and key by its length (by eps, if the length is less), and multiplies queries
 * by q_scale, in place. Grid: tokens, 2 n_key_heads. */
struct delta_norm_args {
    float *qkv; /* (n_tokens, qkv_stride) */
    uint32_t qkv_stride, n_key_heads, dim;
    float q_scale, eps;
};

/* The tokens of each run pass through the state of each value head. Grid: runs, value heads, strips
 * of STATE_COLS columns. */
struct delta_run_args {
    const struct cuda_run *runs;
    const float *qkv, *gates; /* gates as in delta_gates_args */
    float *out;               /* (n_tokens, out_stride) */
    uint64_t matrices; /* floats from the beginning of a state to the matrices of this layer */
    uint32_t qkv_stride, out_stride, n_key_heads, n_heads, dim;
};

/* RMSNorm of each head's result, and its gate z. Grid: tokens, value heads. */
struct delta_out_args {
    const float *z, *norm; /* z: the gates in qkv (n_tokens, qkv_stride); norm (dim) */
    float *out;            /* (n_tokens, out_stride) */
    uint32_t qkv_stride, out_stride, dim;
    float eps;
};

/* Brings the query and the gate of each head, which alternate, into the order queries, gates within
 * the query heads of a KV head. Grid: tokens, KV heads. */
struct split_gates_args {
    float *qkv; /* (n_tokens, qkv_stride) */
    uint32_t qkv_stride, n_q_per_kv, head_dim;
};

/* Multiplies the results of attention by the sigmoid of their gates. Grid: tokens, KV heads. */
struct attn_gate_args {
    const float *qkv; /* after split_gates */
    float *out;       /* (n_tokens, out_stride) */
    uint32_t qkv_stride, out_stride, n_q_per_kv, head_dim;
};

#endif
