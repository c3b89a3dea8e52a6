/*
 * Types and functions that the host files of the CUDA backend share: the weights on the device and
 * the buffers of one pass. Private to engine/cuda.
 *
 * One pass evaluates up to n_ubatch tokens of one or several sequences. All work is enqueued on one
 * stream. All memory is allocated when the backend or a sequence opens.
 */
#ifndef ENGINE_CUDA_CUDA_STATE_H
#define ENGINE_CUDA_CUDA_STATE_H

#include "engine/backend/backend.h"
#include "engine/backend/recurrent_copies.h"
#include "engine/cuda/cuda_buffers.h"
#include "engine/cuda/cuda_device.h"
#include "engine/model/window_ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROW_UNIT 16                     /* floats: rows of activations are aligned to 64 bytes */
#define STAGING_BYTES ((size_t)4 << 20) /* host memory for uploads */
#define MEGA 1000000.0
#define IDS_CHUNK 4096 /* most ids whose logits are computed together */

/* A matrix of a pass: all members of the arguments but n_tokens. It is in R16 if groups.n_groups is
 * not 0, else in R1-256. */
struct cuda_matrix {
    struct linear_args lines;
    struct grouped_args groups;
};

/* A small matrix whose rows are as in the file. */
struct cuda_table {
    const uint8_t *rows;
    size_t row_bytes;
    enum tensor_type type;
};

/* A gated delta net, besides the matrices of struct cuda_layer: qkv has the sections attn_qkv and
 * attn_gate (z), and o is ssm_out. */
struct cuda_delta {
    size_t state_at;               /* floats from the beginning of a recurrent state */
    const float *conv;             /* (channels, DELTA_TAPS) */
    struct cuda_table alpha, beta; /* (n_value_heads, n_embd) */
    const float *dt_bias, *a;      /* (n_value_heads) */
    const float *norm;             /* (dim) */
};

struct cuda_layer {
    const float *attn_norm, *ffn_norm;         /* (n_embd) */
    const float *q_norm, *k_norm;              /* (head_dim); NULL if absent */
    const float *attn_sub_norm, *ffn_sub_norm; /* (n_heads * head_dim), (n_ff); NULL if absent */
    struct cuda_matrix qkv, o, gate_up, down;  /* with experts: the rows of all experts */
    const float *router;                       /* (n_experts, n_embd), or NULL */
    bool has_ring;                             /* keys and values of the last positions only */
    size_t kv_index;                           /* number of the layer in the ring or in the cache */
    struct cuda_delta delta;                   /* only if the layer is a delta net */
};

/* Sizes that follow from the model, in elements unless noted. */
struct cuda_shape {
    size_t q_width, kv_width; /* n_heads * head_dim, n_kv_heads * head_dim */
    size_t q_rows;            /* q_width, or twice as many with a gate for each query */
    size_t group;             /* query heads per KV head */
    size_t h_stride, qkv_stride, attn_stride, ffn_stride, vocab_stride, best_stride;
    size_t n_coarse;       /* blocks in a row of the head's coarse plane; 0: no plane */
    size_t q8_stride;      /* bytes of the widest input, in whole lines */
    size_t n_planes;       /* of an input for R16; 0 if activations are not quantised */
    bool has_groups;       /* any matrix is in R16 */
    size_t rotated_stride; /* of a rotated input; 0: the file is not rotated */
    size_t row_bytes, head_row_bytes;
    size_t slot_bytes;  /* partial results of all heads for a position block */
    size_t block_bytes; /* keys and values of a position block in the cache of all positions */
    size_t state_bytes; /* of one copy of the recurrent state; 0 without delta nets */
    struct kv_shape kv;
    struct window_ring ring;
    struct kv_shape ring_kv;
};

/* Byte offsets in the table of a pass, which is the input of the pass and is copied at once. */
struct pass_layout {
    size_t requests, tokens, runs, rope_c, rope_s, end;
};

struct row_request {
    const struct head_request *head;
    struct head_row *row;
    size_t n_found;    /* candidates stored in row->cands */
    uint64_t position; /* position of the token to draw */
};

struct pass {
    struct eval_item *items;
    size_t n_items, n_tokens, n_requests, n_runs;
    size_t n_single_rows; /* table rows multiplied one by one */
    bool split;           /* each sequence has one token: attention is split over thread blocks */
    struct pass_layout layout;
    const atomic_bool *cancel;
};

struct seq {
    struct backend *backend;
    CUdeviceptr memory; /* keys and values, ring, slots, both copies of the recurrent state */
    CUdeviceptr ring, slots, states;
    size_t ring_blocks; /* position blocks of the ring; 0: there is none */
    size_t ring_first;  /* the ring holds the positions from here to the length */
    struct recurrent_copies copies;
    size_t n_ctx, length;    /* in positions */
    const double *rope_freq; /* (n_rot / 2) the backend's table for this context */
};

struct backend {
    const struct model *model;
    struct backend_config cfg;
    struct backend_info info;
    struct cuda_device device;
    struct cuda_shape shape;
    size_t n_ubatch;
    CUdeviceptr weights;        /* lines in the order of a pass, floats, tables */
    size_t line_bytes;          /* of all layers */
    size_t expert_bytes;        /* part of line_bytes: matrices of experts; 0 without experts */
    const uint8_t *embd, *head; /* tables as stored in the file; NULL if ternary */
    struct cuda_matrix ternary_head; /* groups.n_groups is 0 if the head is a table */
    const float *output_norm;        /* (n_embd) */
    const float *signs;              /* those of model->rotation; NULL: none */
    struct coarse_plane coarse;      /* of the head; n_blocks 0: no screening */
    double *rope_freq; /* (2, n_rot / 2) radians per position, in short and in long sessions */
    struct cuda_layer *layers; /* (n_layers) */
    struct cuda_scratch scratch;
    struct cuda_host host;
    CUgraphExec graphs[2]; /* for one token, one row: whole head, screened head; may be NULL */
    char graph_note[100];  /* what is missing of the graphs, and why; normally "" */
    struct pass pass;
};

/* cuda_plan.c: sizes, scratch memory and the layout of a pass. */
bool cuda_shape_init(struct cuda_shape *s, const struct model *m, const struct backend_config *cfg,
                     struct bn_error *err);
bool cuda_plan_bytes(const struct model *m, const struct backend_config *cfg,
                     struct backend_plan *plan, struct bn_error *err);
bool cuda_scratch_open(struct backend *b, struct bn_error *err);
void cuda_scratch_close(struct backend *b);
struct pass_layout cuda_pass_layout(const struct model *m, size_t n_tokens, size_t n_requests);

/* cuda_pack.c: size and upload of the weights. cuda_pack_model fails with BN_EFORMAT, BN_ENOMEM,
 * BN_ECANCELLED or BN_EDEVICE. */
bool cuda_weight_bytes(const struct model *m, enum bn_head_mode head, size_t *n_bytes);
bool cuda_pack_model(struct backend *b, const struct backend_control *control,
                     struct bn_error *err);

/* cuda_head.c: blocks in a row of the coarse plane of the head; 0: there is no plane. */
size_t cuda_head_blocks(const struct model *m, enum bn_head_mode head);
/* cuda_head.c: builds the coarse plane at address `at`. If a weight is too large or NaN, b gets no
 * plane; that is not an error. */
bool cuda_head_pack(struct backend *b, CUdeviceptr at, size_t n_blocks, struct bn_error *err);
/* Bytes that the head reads for one token. */
size_t cuda_head_bytes(const struct backend *b);
/* True if the head is screened for n requests starting at `first`. */
bool cuda_head_screened(const struct backend *b, size_t first, size_t n);
/* Enqueues the head for n requests starting at `first`, at most HEAD_GROUP. */
void cuda_head_apply(struct backend *b, size_t first, size_t n);
/* Arguments for the exact logits of n requests, starting with request i of the group. */
struct dot_args cuda_head_dots(const struct backend *b, size_t i, size_t n);

/* cuda_groups.c: whether the matrices of a model's layers are in R16. */
bool cuda_in_groups(const struct model *m);
/* Columns of a block of activations of a matrix that consists of these sections. */
size_t cuda_block_cols(const struct model *m, const struct linear *const *sections,
                       size_t n_sections);
/* Enqueues norm (unless w is NULL) and quantisation of n_rows rows of x for a matrix. */
void cuda_groups_quantise(struct backend *b, const float *x, const float *w, size_t x_stride,
                          size_t n_rows, const struct cuda_matrix *matrix);
/* As cuda_groups_quantise, and enqueues the product. */
void cuda_groups_apply(struct backend *b, const float *x, const float *w, size_t x_stride,
                       size_t n_tokens, const struct cuda_matrix *matrix);

/* cuda_head.c: enqueues a copy by a kernel. For a few kilobytes this is faster than a copy by the
 * driver. Both addresses and n_bytes are multiples of 4. */
void cuda_copy(struct backend *b, CUdeviceptr to, CUdeviceptr from, size_t n_bytes);

/* cuda_rotate.c: enqueues the norm and the rotation of n_rows rows. The caller sets the rows and
 * the norm in args; this sets the members that depend on the rotation. r has blocks. */
void cuda_rotate_rows(struct backend *b, const struct rotation *r, struct rotate_args *args,
                      size_t n_rows);
/* Enqueues the rotation of hidden states x (n_rows, h_stride) in place, or nothing if r has no
 * blocks. is_inverse: x are rows of the embedding. */
void cuda_rotate(struct backend *b, const struct rotation *r, float *x, size_t n_rows,
                 bool is_inverse);

/* cuda_delta.c: enqueue the parts of a gated delta net in the pass: decay and beta of each token
 * from scratch.h; then, from the product with qkv to the results in scratch.attn. */
void cuda_delta_gates(struct backend *b, size_t layer);
void cuda_delta_apply(struct backend *b, size_t layer);
/* cuda_delta.c: gates of attention in models with delta nets: before RoPE, and after attention. */
void cuda_gates_split(struct backend *b);
void cuda_gates_apply(struct backend *b);
/* Device address of a copy of a sequence's recurrent state. */
CUdeviceptr cuda_state_copy(const struct seq *s, size_t copy);

/* cuda_forward.c: runs a whole pass. */
bool cuda_forward(struct backend *b, struct bn_error *err);
/* Captures the graphs for one token. If the driver cannot capture them, they stay NULL and a pass
 * launches its kernels one by one; b->graph_note has the reason. Fails only if the device no longer
 * works. */
bool cuda_forward_capture(struct backend *b, struct bn_error *err);

/* cuda_rows.c: fills at most HEAD_GROUP requested rows with the device's candidates. BN_EDEVICE: a
 * logit is not finite, or a driver call failed. BN_EARG: a row is too small. */
bool cuda_rows_finish(struct backend *b, struct row_request *requests, size_t n_requests,
                      struct bn_error *err);

/* cuda_eval.c: member of backend_ops. */
bool cuda_eval(struct backend *b, struct eval_item *items, size_t n_items,
               const struct backend_control *control, uint64_t *n_bytes, struct bn_error *err);

/* cuda_kv.c: members of backend_ops. */
bool cuda_kv_open(struct backend *b, size_t n_ctx, struct seq **out, struct bn_error *err);
void cuda_kv_close(struct seq *s);
size_t cuda_kv_reachable(const struct seq *s, size_t n_keep);
void cuda_kv_truncate(struct seq *s, size_t n_keep);
bool cuda_kv_state_save(struct seq *s, void *to);
bool cuda_kv_state_load(struct seq *s, const void *from, size_t length);
bool cuda_kv_save(struct seq *s, const struct bn_stream *out, struct bn_error *err);
bool cuda_kv_load(struct seq *s, size_t length, const struct bn_stream *in, struct bn_error *err);

#endif
