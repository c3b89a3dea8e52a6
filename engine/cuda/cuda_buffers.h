/*
 * The buffers of a pass, on the device and on the host. cuda_scratch_open (cuda_plan.c) allocates
 * them when the backend opens, cuda_scratch_close frees them. Part of cuda_state.h.
 */
#ifndef ENGINE_CUDA_CUDA_BUFFERS_H
#define ENGINE_CUDA_CUDA_BUFFERS_H

#include "engine/cuda/cuda_device.h"
#include "engine/head.h"

#include <stdint.h>

struct row_request;

/* Buffers of a pass on the device, sized for n_ubatch tokens. Strides are those of struct
 * cuda_shape. A pair is a token with one of its chosen experts. */
struct cuda_scratch {
    CUdeviceptr memory;
    float *h, *qkv, *attn; /* (n_ubatch, h_stride or qkv_stride or attn_stride) */
    float *ffn;            /* (n_ubatch, ffn_stride); with experts a row per pair */
    /* The next three are for matrices in R1-256. */
    int8_t *q8;        /* (n_ubatch) quantised rows in whole lines, at most q8_stride bytes each */
    float *q8_s;       /* (n_ubatch) scale of each row of q8 */
    int32_t *q8_sum;   /* (n_ubatch) sum of each row of q8 */
    float *rotated;    /* (n_ubatch, rotated_stride) input of a linear layer after its rotation */
    float *gates;      /* (n_ubatch, n_value_heads, 2) decay and beta of delta nets */
    uint32_t *n_ended; /* (n_ubatch, n_head_chunks) see split_args */
    /* Input of a matrix in R16; without such matrices its arrays are NULL. Rows: n_ubatch or
     * HEAD_PASS_ROWS, whichever is larger. */
    struct block_inputs blocks;
    /* Only with experts; n_pairs is n_ubatch * n_used_experts. */
    float *expert_x;                 /* (n_ubatch, h_stride) input of router and experts */
    float *router_z;                 /* (n_ubatch, n_experts) */
    float *expert_y;                 /* (n_pairs, h_stride) results of the experts */
    struct block_inputs pair_blocks; /* (n_pairs) input of `down` */
    struct cuda_choice *chosen;      /* (n_pairs) */
    uint32_t *pair_starts, *pairs;   /* (n_experts + 1), (n_pairs) see sort_pairs_args */
    /* (n_layers, n_experts, 2) choices since the backend opened, as 64 bits: low word, high word */
    uint32_t *expert_counts;
    uint8_t *table;             /* table of the pass, see pass_layout */
    float *head_x;              /* (HEAD_PASS_ROWS, h_stride) input of the output head */
    float *z;                   /* (HEAD_PASS_ROWS, vocab_stride) logits or bounds */
    struct cuda_cand *bests;    /* (HEAD_PASS_ROWS, best_stride) best of each BEST_ROWS ids in z */
    struct cuda_cand *cands;    /* (HEAD_PASS_ROWS, vocab_stride) those that reach the floor */
    struct query_buffers query; /* buffers only; cuda_head.c adds the constants */
    struct cuda_found *found;   /* (HEAD_PASS_ROWS) */
    int32_t *ids;               /* (IDS_CHUNK) ids that a request lists */
    float *gathered;            /* (IDS_CHUNK) logits of ids */
};

/* Buffers on the host. Mapped memory also has an address on the device. */
struct cuda_host {
    uint8_t *table; /* table of the pass, pinned and mapped; copied at the start of a pass */
    struct cuda_found *found; /* (HEAD_PASS_ROWS) pinned and mapped */
    float *embd;        /* (n_ubatch, h_stride) pinned and mapped; only for a ternary embedding */
    uint32_t *n_active; /* (n_layers) pinned and mapped; experts that a layer used in the last
                           pass of several tokens. Only with experts. */
    CUdeviceptr table_at, found_at, embd_at, n_active_at; /* their device addresses */
    uint16_t *ring_block;    /* a position block of all layers with a ring; NULL without rings */
    struct head_cand *cands; /* (n_vocab) candidates of one row */
    float *z;                /* (n_vocab) one row of logits */
    uint64_t *seen;          /* a bit for each token id; all zero between uses */
    int32_t *ids;            /* (IDS_CHUNK) as in cuda_scratch */
    float *gathered;         /* (IDS_CHUNK) logits of ids */
    float *trace;            /* one row of the widest traced step; NULL without a trace */
    struct row_request *requests; /* (n_ubatch) */
};

#endif
