/*
 * A model as the file describes it: numbers range-checked, every tensor found and its shape
 * checked, graph differences as data. Nothing is copied; the only thing computed is the scale of
 * each ternary tensor. Backends read this.
 *
 * A model is immutable once open and may be read by several threads. Its bytes are those of the
 * file: no alignment is promised, so read numbers with memcpy or byte by byte.
 */
#ifndef ENGINE_MODEL_MODEL_H
#define ENGINE_MODEL_MODEL_H

#include "engine/base/error.h"
#include "engine/base/notes.h"
#include "engine/gguf/gguf.h"
#include "engine/gguf/ternary_codec.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ffn_act { FFN_RELU2, FFN_SILU };
enum rope_style { ROPE_NEOX, ROPE_NORM }; /* pairs (i, i + n_rot / 2) | (2i, 2i + 1) */

/* Graph differences between architectures, a row each; see docs/formats.md, "Graphs". */
struct arch {
    const char *name; /* general.architecture */
    enum rope_style rope;
    bool sub_norms;    /* attn_sub_norm and ffn_sub_norm exist */
    bool rotates_part; /* n_rot may be less than head_dim */
};
const struct arch *arch_find(struct bn_str name); /* NULL: not one we run */

/* Most a file may ask for; a buffer of these sizes holds any model that opens. A dot product of
 * MODEL_MAX_WIDTH codes and int8 activations stays far inside int32. */
#define MODEL_MAX_LAYERS 1024
#define MODEL_MAX_WIDTH ((size_t)1 << 20)
#define MODEL_MAX_HEADS 4096
#define MODEL_MAX_HEAD_DIM 1024
#define MODEL_MAX_VOCAB ((size_t)1 << 24)
#define MODEL_MAX_CTX ((size_t)1 << 30)

struct hparams {
    size_t n_layers, n_embd, n_ff, n_heads, n_kv_heads, head_dim, n_rot, n_vocab, n_ctx_train;
    float rms_eps;
    double rope_base, rope_scale; /* angle = pos * rope_scale * base^(-2i / n_rot) / freq_i */
    enum ffn_act act;
};

/* A tensor where it lies in the file. */
struct tensor_ref {
    struct bn_str name;
    enum tensor_type type;
    const uint8_t *bytes; /* (n_bytes); NULL: the tensor does not exist */
    size_t n_bytes;
    size_t file_offset;
    size_t n_cols, n_rows;
};

/* y = ((codes - 1) . q(x)) * scale / s * extra + bias */
struct linear {
    struct ternary_source source;
    char name[64];          /* storage of source.name */
    float scale;            /* of the ternary values */
    float extra_scale;      /* of X.scale, 1 if absent */
    struct tensor_ref bias; /* F32 (n_rows), bytes NULL if absent */
};

struct layer {
    struct tensor_ref attn_norm, ffn_norm; /* F32 (n_embd) */
    struct tensor_ref attn_sub_norm,
        ffn_sub_norm; /* F32 (n_heads * head_dim), (n_ff); may be absent */
    struct linear q, k, v, o, gate, up, down;
};

struct model {
    const struct gguf *gguf;
    const struct arch *arch;
    struct hparams hp;
    struct tensor_ref embd; /* (n_vocab, n_embd), a type that is a table: F32 .. Q6_K */
    struct tensor_ref head; /* the same as embd when tied */
    bool tied;
    struct tensor_ref output_norm; /* F32 (n_embd) */
    struct tensor_ref rope_freqs;  /* F32 (n_rot / 2), may be absent */
    struct layer *layers;          /* (n_layers) */
    uint64_t n_params;
    enum tensor_type ternary_type; /* of most linear weights, for display */
};

struct model_config {
    enum bn_i2s_layout i2s_layout;
    const char *no_repair;     /* ids here: activation */
    struct bn_notes *notes;    /* may be NULL */
    const atomic_bool *cancel; /* may be NULL; polled once a layer */
};

/* BN_EUNSUPPORTED: architecture, tensor type (names tensor, type and what to do), dense linear
 * layers. BN_EFORMAT: a missing tensor or key, a wrong shape, a number out of range. BN_ENOMEM,
 * BN_ECANCELLED. The gguf outlives the model. Milliseconds for I2_S; other ternary containers are
 * read once for their scales. */
bool model_open(const struct gguf *g, const struct model_config *cfg, struct model **out,
                struct bn_error *err);
void model_close(struct model *m); /* NULL is fine */

#endif
