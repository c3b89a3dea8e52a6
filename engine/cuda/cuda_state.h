/*
 * What the files of the CUDA backend share: the device and its functions, weights on it, the
 * buffers of one pass. Private to engine/cuda.
 *
 * One pass evaluates up to n_ubatch tokens of one or several sequences. All work goes to one
 * stream; everything is allocated when the backend or a sequence opens. Pointers into structs of
 * cuda_args.h are addresses on the device.
 */
#ifndef ENGINE_CUDA_CUDA_STATE_H
#define ENGINE_CUDA_CUDA_STATE_H

#include "engine/backend/backend.h"
#include "engine/cuda/cuda_args.h"
#include "engine/cuda/cuda_driver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROW_UNIT 16      /* floats: rows of activations start at multiples of 64 bytes */
#define DEVICE_ALIGN 256 /* of everything that is handed out of one allocation */
#define STAGING_BYTES ((size_t)4 << 20) /* host memory that uploads go through */
#define IDS_CHUNK 4096                  /* ids whose logits are fetched at once */

#define KERNEL_ID(name, args, n_threads) KERNEL_##name,
enum cuda_kernel { CUDA_KERNELS(KERNEL_ID) KERNEL_N };

/* One device, made current on the calling thread by cuda_enter. */
struct cuda_device {
    struct cuda_driver driver;
    CUdevice id;
    CUcontext context; /* the primary one, held once */
    CUmodule module;
    CUfunction functions[KERNEL_N];
    CUstream stream;
    char name[96];
    int n_processors;
    bool is_ahead;   /* a kernel may begin before the one in front of it has ended */
    CUresult failed; /* the first launch of a pass that failed, and its kernel */
    const char *failed_name;
    CUresult lost; /* what every call has failed with since; CUDA_SUCCESS: it works */
};

struct cuda_layer {
    const float *attn_norm, *ffn_norm;         /* (n_embd) */
    const float *attn_sub_norm, *ffn_sub_norm; /* (n_heads * head_dim), (n_ff); NULL if absent */
    struct linear_args qkv, o, gate_up, down;  /* complete but for n_tokens */
};

/* Sizes that follow from the model, in elements unless said. */
struct cuda_shape {
    size_t q_width, kv_width; /* n_heads * head_dim, n_kv_heads * head_dim */
    size_t group;             /* query heads a KV head */
    size_t h_stride, qkv_stride, attn_stride, ffn_stride, vocab_stride, part_stride;
    size_t n_coarse;  /* blocks of a row of the head's coarse plane, 0: there is none */
    size_t q8_stride; /* bytes of the widest input, whole lines */
    size_t row_bytes, head_row_bytes;
    size_t slot_bytes;  /* of a block of positions: partial results of every head */
    size_t block_bytes; /* of a block of positions: keys and values of all layers */
    struct kv_shape kv;
};

/* Buffers of a pass on the device, sized for n_ubatch tokens. */
struct cuda_scratch {
    CUdeviceptr memory;
    float *h, *qkv, *attn, *ffn; /* (n_ubatch, their strides) */
    int8_t *q8;                  /* (n_ubatch rounded up to FEW_TOKENS, q8_stride) */
    float *q8_s;                 /* (n_ubatch rounded up) */
    int32_t *q8_sum;
    uint8_t *table;           /* see pass_layout */
    float *head_x;            /* (HEAD_GROUP, h_stride) */
    float *z;                 /* (HEAD_GROUP, vocab_stride) logits, or bounds of them */
    struct cuda_cand *parts;  /* (HEAD_GROUP, part_stride) */
    struct cuda_cand *more;   /* (HEAD_GROUP, vocab_stride) candidates */
    struct query_room query;  /* room alone: see cuda_screen_room */
    struct cuda_found *found; /* (HEAD_GROUP) */
    int32_t *ids;             /* (IDS_CHUNK) */
    float *gathered;          /* (IDS_CHUNK) */
};

/* The same on the host. */
struct cuda_host {
    uint8_t *table;           /* pinned; what a pass uploads at its start */
    struct cuda_found *found; /* (HEAD_GROUP) pinned */
    struct head_cand *cands;  /* (n_vocab) one row's candidates */
    float *z;                 /* (n_vocab) one row of logits */
    uint64_t *seen;           /* (n_vocab) bits; all zero between uses */
    int32_t *ids;             /* (IDS_CHUNK) */
    float *gathered;          /* (IDS_CHUNK) */
    float *trace;             /* widest step, NULL without a trace */
    struct want *wants;       /* (n_ubatch) */
};

/* Where the parts of a pass's table lie, in bytes: one upload whatever the pass. */
struct pass_layout {
    size_t wants, tokens, rope_c, rope_s, end;
};

/* One row of the head that somebody wants. */
struct want {
    const struct head_request *head;
    struct head_row *row;
    size_t n_found;    /* candidates in row->cands */
    uint64_t position; /* of the token that is drawn */
};

struct pass {
    struct eval_item *items;
    size_t n_items, n_tokens, n_wants;
    size_t n_asked; /* rows of the table multiplied one by one */
    bool split;     /* positions of a sequence over blocks of threads: one token of each */
    struct pass_layout layout;
    const atomic_bool *cancel;
};

struct seq {
    struct backend *backend;
    CUdeviceptr memory; /* keys and values, then slots */
    CUdeviceptr slots;
    size_t n_ctx, length; /* positions */
};

struct backend {
    const struct model *model;
    struct backend_config cfg;
    struct backend_info info;
    struct cuda_device device;
    struct cuda_shape shape;
    size_t n_ubatch;
    CUdeviceptr weights; /* lines in the order a pass reads them, floats, tables */
    size_t line_bytes;
    const uint8_t *embd, *head; /* tables as in the file */
    const float *output_norm;   /* (n_embd) */
    struct coarse_plane coarse; /* of the head; no blocks: every row is read */
    double *rope_freq;          /* (n_rot / 2) radians a position */
    struct cuda_layer *layers;  /* (n_layers) */
    struct cuda_scratch scratch;
    struct cuda_host host;
    CUgraphExec graphs[2]; /* one token, one row: the whole head, and screened; may be NULL */
    struct pass pass;
};

/* cuda_check.c: can the device be used, and opening it. probe text as backend_ops. open:
 * BN_EDEVICE, BN_ENOMEM; half-built devices are closed by cuda_device_close. */
bool cuda_probe(const struct backend_config *cfg, char *text, size_t text_bytes);
bool cuda_device_open(struct cuda_device *d, size_t index, struct bn_error *err);
void cuda_device_close(struct cuda_device *d);
/* BN_ELOST: the device was lost before; BN_EDEVICE. */
bool cuda_enter(struct cuda_device *d, struct bn_error *err);
/* After a failure: BN_EDEVICE becomes BN_ELOST if nothing works any more. Always false. */
bool cuda_look_after(struct cuda_device *d, struct bn_error *err);
/* Launch with the kernel's own number of threads, or n_threads if that is not 0. A failure is kept
 * for cuda_finish, which waits for the stream. */
struct cuda_grid {
    size_t x, y, z, n_threads;
};
void cuda_launch(struct cuda_device *d, enum cuda_kernel k, struct cuda_grid grid, void *args);
void cuda_keep(struct cuda_device *d, CUresult result, const char *what);
bool cuda_finish(struct cuda_device *d, struct bn_error *err);

/* cuda_selftest.c: a small layer against plain C. BN_EDEVICE: other numbers, or none; BN_ENOMEM. */
bool cuda_selftest(struct cuda_device *d, struct bn_error *err);

/* cuda_plan.c. */
bool cuda_shape_init(struct cuda_shape *s, const struct model *m, enum bn_head_mode head,
                     struct bn_error *err);
bool cuda_plan_bytes(const struct model *m, const struct backend_config *cfg,
                     struct backend_plan *plan, struct bn_error *err);
bool cuda_scratch_open(struct backend *b, struct bn_error *err);
void cuda_scratch_close(struct backend *b);
struct pass_layout cuda_pass_layout(const struct model *m, size_t n_tokens, size_t n_wants);

/* cuda_pack.c: upload. BN_EFORMAT, BN_ENOMEM, BN_ECANCELLED, BN_EDEVICE. */
bool cuda_weight_bytes(const struct model *m, enum bn_head_mode head, size_t *n_bytes);
bool cuda_pack_model(struct backend *b, const struct backend_control *control,
                     struct bn_error *err);

/* cuda_screen.c: make the plane at `at`; a table with a weight that is too large, or no number,
 * leaves b without one: that is no error. */
bool cuda_screen_pack(struct backend *b, CUdeviceptr at, size_t n_blocks, struct bn_error *err);
struct query_room cuda_screen_room(const struct backend *b);
bool cuda_screen_serves(const struct backend *b, const struct head_request *head);

/* cuda_head.c: the head for n rows from `first`, queued; is it screened for them? The arguments for
 * exact logits of row i of a group. */
void cuda_head_apply(struct backend *b, size_t first, size_t n);
bool cuda_head_screened(const struct backend *b, size_t first, size_t n);
struct dot_args cuda_head_dots(const struct backend *b, size_t i, size_t n);

/* cuda_forward.c: queue a whole pass; capture the graphs of one token. */
bool cuda_forward(struct backend *b, struct bn_error *err);
bool cuda_forward_capture(struct backend *b, struct bn_error *err);

/* cuda_rows.c: from what the device found to the rows wanted, HEAD_GROUP of them at most.
 * BN_EDEVICE: a logit is not a finite number; BN_EARG: a row lacks room. */
bool cuda_rows_finish(struct backend *b, struct want *wants, size_t n_wants, struct bn_error *err);

/* cuda_kv.c: members of backend_ops. */
bool cuda_kv_open(struct backend *b, size_t n_ctx, struct seq **out, struct bn_error *err);
void cuda_kv_close(struct seq *s);
size_t cuda_kv_length(const struct seq *s);
void cuda_kv_truncate(struct seq *s, size_t n_keep);
bool cuda_kv_save(struct seq *s, const struct bn_stream *out, struct bn_error *err);
bool cuda_kv_load(struct seq *s, size_t length, const struct bn_stream *in, struct bn_error *err);

#endif
