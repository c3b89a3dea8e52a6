/*
 * Types and functions that the host files of the CUDA backend share: the weights on the device and
 * the buffers of one pass. Private to engine/cuda.
 *
 * One pass evaluates up to n_ubatch tokens of one or several sequences. All its kernels run on one
 * stream. All memory of a pass is allocated when the backend or a sequence opens.
 */
#ifndef ENGINE_CUDA_CUDA_STATE_H
#define ENGINE_CUDA_CUDA_STATE_H

#include "engine/backend/backend.h"
#include "engine/backend/recurrent_copies.h"
#include "engine/cuda/cuda_buffers.h"
#include "engine/cuda/cuda_device.h"
#include "engine/layout/pass_widths.h"
#include "engine/layout/window_ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEGA 1000000.0 /* bytes per megabyte, for messages */
#define IDS_CHUNK 4096 /* most ids whose logits are computed together */

/* A matrix of a pass as arguments of its kernels; each launch adds n_tokens. If groups.n_groups is
 * not 0, the matrix is in R16 (engine/layout/r16_pack.h) and `groups` applies. Otherwise it is in
 * R1-256 and `lines` applies. */
struct cuda_matrix {
    struct linear_args lines;
    struct r16_args groups;
};

/* A small matrix in the tensor type of the file, not packed. */
struct cuda_unpacked {
    const uint8_t *rows;
    size_t row_bytes;
    enum tensor_type type;
};

/* The tensors of a gated delta net that struct cuda_layer does not have. In such a layer, qkv
 * combines the tensors attn_qkv and attn_gate (z) of the file, and o is ssm_out. */
struct cuda_delta {
    size_t state_at; /* floats from the beginning of a recurrent state to the part of this layer */
    const float *conv;                /* (channels, DELTA_TAPS) */
    struct cuda_unpacked alpha, beta; /* (n_value_heads, n_embd) */
    const float *dt_bias, *a;         /* (n_value_heads) */
    const float *norm;                /* (dim) */
};

struct cuda_layer {
    const float *attn_norm, *ffn_norm;         /* (n_embd) */
    const float *q_norm, *k_norm;              /* (head_dim); NULL if absent */
    const float *attn_sub_norm, *ffn_sub_norm; /* (n_heads * head_dim), (n_ff); NULL if absent */
    struct cuda_matrix qkv, o, gate_up, down;  /* last two: the rows of all experts, if any */
    const float *router;                       /* (n_experts, n_embd); NULL without experts */
    bool has_ring;                             /* keys and values of the last positions only */
    /* Number among the layers with a ring, or among the attention layers without one. */
    size_t kv_index;
    struct cuda_delta delta; /* only if the layer is a delta net */
};

/* Sizes that follow from the model and the configuration, in elements unless noted. */
struct cuda_shape {
    struct pass_widths widths;
    size_t n_head_chunks;  /* of all KV heads; a chunk is up to ATTN_HEADS query heads of one */
    size_t best_stride;    /* candidates of a row of scratch.bests: one per BEST_ROWS ids */
    size_t n_coarse;       /* blocks in a row of the head's coarse plane, if it is made; 0: none */
    size_t q8_stride;      /* bytes of the widest input, in whole lines */
    bool any_r16;          /* any matrix is in R16 */
    bool can_split;        /* attn_split supports the model and the configuration */
    size_t rotated_stride; /* of a rotated input; 0: the file is not rotated */
    /* Of a row of the embedding and of the output head, as in the file. */
    size_t row_bytes, head_row_bytes;
    size_t slot_bytes;  /* partial results of all heads for a position block */
    size_t block_bytes; /* keys and values of a position block in layers without a ring */
    size_t state_bytes; /* of a copy of the recurrent state, rings not included; 0: no delta nets */
    struct kv_shape kv; /* of layers without a ring */
    struct window_ring ring;
    struct kv_shape ring_kv; /* of layers with a ring */
};

/* The table of a pass has its inputs, except rows of a ternary embedding, and is copied to the
 * device at once. Byte offsets of its arrays: struct cuda_request (n_requests), struct cuda_token
 * (n_tokens), struct cuda_run (n_runs), cosines and sines (n_tokens, n_rot / 2); end: size. */
struct pass_layout {
    size_t requests, tokens, runs, rope_c, rope_s, end;
};

/* A requested row on the host: the request and the caller's row for its result. */
struct row_request {
    const struct head_request *head;
    struct head_row *row;
    size_t n_found;    /* candidates stored in row->cands */
    uint64_t position; /* position of the token to draw */
};

/* The current pass. n_requests counts requested rows; a run (struct cuda_run) is the tokens of one
 * sequence, and only delta nets use runs. */
struct pass {
    struct eval_item *items;
    size_t n_items, n_tokens, n_requests, n_runs;
    size_t n_single_rows; /* rows of the head that are multiplied one by one, after screening or for
                             a list of ids; the few rows of pick_floor are not counted */
    bool split; /* attention runs as attn_split: shape.can_split, at most one token per sequence */
    size_t n_shares; /* thread blocks of attn_split for the position blocks of a token */
    struct pass_layout layout;
    const atomic_bool *cancel;
};

struct seq {
    struct backend *backend;
    CUdeviceptr memory; /* keys and values, ring, slots, both copies of the recurrent state */
    CUdeviceptr ring, slots, states; /* addresses in `memory` */
    struct ring_contents contents;   /* of the ring; n_blocks 0: there is none */
    struct recurrent_copies copies;
    size_t n_ctx, length;    /* in positions */
    const double *rope_freq; /* (n_rot / 2) the half of backend.rope_freq for this n_ctx */
};

struct backend {
    const struct model *model;
    struct backend_config cfg;
    struct backend_info info;
    struct cuda_device device;
    struct cuda_shape shape;
    size_t n_ubatch;
    CUdeviceptr weights;        /* all weights, in the order of upload_all (cuda_pack.c) */
    size_t layer_bytes;         /* part of `weights`: all tensors of all layers */
    size_t expert_bytes;        /* part of layer_bytes: matrices of experts; 0 without experts */
    const uint8_t *embd, *head; /* tables as stored in the file; NULL if ternary */
    struct cuda_matrix ternary_head; /* groups.n_groups is 0 if the head is a table */
    const float *output_norm;        /* (n_embd) */
    const float *signs;              /* those of model->rotation; NULL: none */
    struct coarse_plane coarse;      /* of the head; n_blocks 0: no screening */
    double *rope_freq;         /* (2, n_rot / 2) radians per position; row 1 if rope_is_long */
    struct cuda_layer *layers; /* (n_layers) */
    struct cuda_scratch scratch;
    struct cuda_host host;
    /* Graphs of a pass of one token with one requested row: 0 with the whole head, 1 with the
     * screened head. NULL: the kernels are launched one by one. */
    CUgraphExec graphs[2];
    char graph_note[100]; /* why decoding is slower than with normal graphs, or "" */
    struct pass pass;
};

/* cuda_plan.c: sizes, scratch memory and the layout of a pass. cuda_shape_init fails with
 * BN_EUNSUPPORTED; cuda_plan_bytes is backend_ops.plan. cuda_scratch_open fails with BN_ENOMEM or
 * BN_EDEVICE, and cuda_scratch_close also frees what it had opened by then. */
bool cuda_shape_init(struct cuda_shape *s, const struct model *m, const struct backend_config *cfg,
                     struct bn_error *err);
bool cuda_plan_bytes(const struct model *m, const struct backend_config *cfg,
                     struct backend_plan *plan, struct bn_error *err);
bool cuda_scratch_open(struct backend *b, struct bn_error *err);
void cuda_scratch_close(struct backend *b);
struct pass_layout cuda_pass_layout(const struct model *m, size_t n_tokens, size_t n_requests);

/* cuda_pack.c: size and upload of the weights. cuda_weight_bytes returns false if the size
 * overflows. cuda_pack_model fails with BN_EFORMAT, BN_EUNSUPPORTED, BN_ENOMEM, BN_ECANCELLED or
 * BN_EDEVICE; the caller closes the backend also then. */
bool cuda_weight_bytes(const struct model *m, enum bn_head_mode head, size_t *n_bytes);
bool cuda_pack_model(struct backend *b, const struct backend_control *control,
                     struct bn_error *err);

/* cuda_head.c: blocks in a row of the coarse plane of the head; 0: there is no plane. */
size_t cuda_head_blocks(const struct model *m, enum bn_head_mode head);
/* cuda_head.c: builds the coarse plane of b->head at device address `at` and sets b->coarse, which
 * stays empty if a weight is too large or NaN. Errors: BN_ENOMEM, BN_EDEVICE. */
bool cuda_head_pack(struct backend *b, CUdeviceptr at, size_t n_blocks, struct bn_error *err);
/* Bytes of the coarse plane of the head if there is one, else of all rows of the head. */
size_t cuda_head_bytes(const struct backend *b);
/* True if the head is screened for n requests starting at `first`. */
bool cuda_head_screened(const struct backend *b, size_t first, size_t n);
/* Enqueues the head for n requests starting at `first`, at most HEAD_PASS_ROWS. */
void cuda_head_apply(struct backend *b, size_t first, size_t n);
/* Arguments for the exact logits of n requests, starting with request i of the last
 * cuda_head_apply. But `out` and `found` start with request 0. */
struct dot_args cuda_head_dots(const struct backend *b, size_t i, size_t n);

/* cuda_r16.c: matrices in R16. Enqueues RMSNorm with the weights w (unless w is NULL) and
 * quantisation (for ACT_FLOAT: a copy) of n_rows rows of x as the input of `matrix`. */
void cuda_groups_quantise(struct backend *b, const float *x, const float *w, size_t x_stride,
                          size_t n_rows, const struct cuda_matrix *matrix);
/* As cuda_groups_quantise, and enqueues the product with the matrix. */
void cuda_groups_apply(struct backend *b, const float *x, const float *w, size_t x_stride,
                       size_t n_tokens, const struct cuda_matrix *matrix);

/* cuda_head.c: enqueues a copy by a kernel. For a few kilobytes this is faster than a copy by the
 * driver. Both addresses and n_bytes are multiples of 4. */
void cuda_copy(struct backend *b, CUdeviceptr to, CUdeviceptr from, size_t n_bytes);

/* cuda_rotate.c: enqueues the norm and the rotation of n_rows rows. The caller sets x, w, y, n and
 * the strides in args, and is_inverse if needed; this function sets the rest. r->block is not 0. */
void cuda_rotate_rows(struct backend *b, const struct rotation *r, struct rotate_args *args,
                      size_t n_rows);
/* Enqueues the rotation of x (n_rows, h_stride) in place, or nothing if r->block is 0. is_inverse:
 * apply the signs after the transform, as rows of the embedding need it. */
void cuda_rotate(struct backend *b, const struct rotation *r, float *x, size_t n_rows,
                 bool is_inverse);

/* cuda_delta.c: enqueue the two parts of a gated delta net. cuda_delta_gates computes decay and
 * beta of each token from scratch.h. cuda_delta_apply runs after the product with the qkv matrix:
 * it computes scratch.attn from scratch.qkv and the gates. */
void cuda_delta_gates(struct backend *b, size_t layer);
void cuda_delta_apply(struct backend *b, size_t layer);
/* cuda_delta.c: gates of attention in models with delta nets; nothing in other models. The first
 * function runs before RoPE and separates queries and gates. The second runs after attention and
 * multiplies the results by the sigmoid of the gates. */
void cuda_gates_split(struct backend *b);
void cuda_gates_apply(struct backend *b);
/* Device address of a sequence's recurrent state: copy i, 0 or 1. Not used without delta nets. */
CUdeviceptr cuda_state_at(const struct seq *s, size_t i);

/* cuda_forward.c: runs b->pass. BN_ECANCELLED, or an error of cuda_finish or cuda_rows_finish. */
bool cuda_forward(struct backend *b, struct bn_error *err);
/* Captures b->graphs, unless cfg has trace, profile or no_graph. If the driver cannot capture
 * early starts of kernels, graphs are captured without them. If that fails too, they stay NULL. In
 * both cases b->graph_note has the reason. BN_EDEVICE: the device no longer works. */
bool cuda_forward_capture(struct backend *b, struct bn_error *err);

/* cuda_rows.c: fills at most HEAD_PASS_ROWS requested rows (row->cands, n_found) from the results
 * of the last cuda_head_apply, after cuda_finish. cuda_eval sets row->n. BN_EDEVICE: a logit is not
 * finite, a result is impossible, or a driver call failed. BN_EARG: a row is too small. */
bool cuda_rows_finish(struct backend *b, struct row_request *requests, size_t n_requests,
                      struct bn_error *err);

/* Members of backend_ops: of cuda_eval.c, then of cuda_kv.c. */
bool cuda_eval(struct backend *b, struct eval_item *items, size_t n_items,
               const struct backend_control *control, uint64_t *n_bytes, struct bn_error *err);
bool cuda_kv_open(struct backend *b, size_t n_ctx, struct seq **out, struct bn_error *err);
void cuda_kv_close(struct seq *s);
size_t cuda_kv_reachable(const struct seq *s, size_t n_keep);
void cuda_kv_truncate(struct seq *s, size_t n_keep);
bool cuda_kv_state_save(struct seq *s, void *to);
bool cuda_kv_state_load(struct seq *s, const void *from, size_t length);
bool cuda_kv_save(struct seq *s, const struct bn_stream *out, struct bn_error *err);
size_t cuda_kv_save_bytes(const struct seq *s);
bool cuda_kv_load(struct seq *s, size_t length, const struct bn_stream *in, struct bn_error *err);

#endif
