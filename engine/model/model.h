/*
 * The description of a model from its file: checked hyperparameters, all tensors with checked
 * shapes, and the properties of its architecture. Backends read it.
 *
 * Tensors are not copied; only the scales of ternary ones are computed. An open model is immutable
 * and several threads may read it. Tensor bytes are in the file and have no guaranteed alignment,
 * so read numbers with memcpy or byte by byte.
 */
#ifndef ENGINE_MODEL_MODEL_H
#define ENGINE_MODEL_MODEL_H

#include "engine/base/error.h"
#include "engine/base/notes.h"
#include "engine/gguf/gguf.h"
#include "engine/gguf/ternary_codec.h"
#include "engine/model/delta_shape.h"
#include "engine/model/rotation.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ffn_act { FFN_RELU2, FFN_SILU };
enum rope_style {
    ROPE_NEOX, /* rotates the pairs (i, i + n_rot / 2) */
    ROPE_NORM  /* rotates the pairs (2i, 2i + 1) */
};

/* Activations of ternary layers in training. The default of act_scheme depends on them. */
enum act_training {
    TRAINED_INT8,      /* int8, one scale per token */
    TRAINED_BY_SCALES, /* TRAINED_INT8 if each matrix has one scale, else TRAINED_16 */
    TRAINED_16         /* 16-bit floats */
};

/* How inputs of ternary layers are quantised: docs/kernels.md, "Activations in blocks". */
enum act_scheme {
    ACT_TOKEN,    /* int8, one scale per token */
    ACT_BLOCK32,  /* int8, one scale per 32 columns */
    ACT_BLOCK128, /* int8, one scale per 128 columns (64 if the weights have one per 64) */
    ACT_16,       /* two planes of int8: 16 bits */
    ACT_FLOAT     /* not quantised */
};

/* Shapes of published models for which some files name a wrong architecture. */
enum model_shape {
    SHAPE_NONE,
    SHAPE_2B4T,   /* BitNet b1.58 2B4T */
    SHAPE_1BITLLM /* 1bitLLM large, xl, 3B */
};

/* An architecture, by the differences of its graph; see docs/formats.md, "Graphs". */
struct arch {
    const char *name; /* general.architecture */
    enum rope_style rope;
    bool sub_norms;    /* attn_sub_norm and ffn_sub_norm exist */
    bool scaled;       /* embeddings, residuals and logits have factors, see hparams */
    bool qk_norms;     /* attn_q_norm and attn_k_norm exist: RMSNorm of each head */
    bool partial_rope; /* n_rot may be less than head_dim */
    bool windows;      /* some layers see a window of keys; the others see all and have no RoPE */
    bool experts;      /* the feed-forward part of a layer is a mixture of experts */
    /* Most layers are gated delta nets, and the attention of the others has a gate; the norm before
     * the feed-forward network is post_attention_norm. */
    bool delta_nets;
    bool large_rope_base; /* models have a RoPE base of 1e6 or more, far above the default */
    enum ffn_act ffn_act; /* default, if the file has no key hidden_activation */
    enum act_training training;
    /* Some files of models of this shape name this architecture by mistake. They need the other
     * activation function, see decide_ffn_act in hparams.c. */
    enum model_shape mislabels;
};
const struct arch *arch_find(struct bn_str name); /* NULL if it is not supported */

/* Upper limits of a model that opens. A dot product of MODEL_MAX_WIDTH codes and int8 activations
 * is far below the limit of int32. */
#define MODEL_MAX_LAYERS 1024
#define MODEL_MAX_WIDTH ((size_t)1 << 20)
#define MODEL_MAX_HEADS 4096
#define MODEL_MAX_HEAD_DIM 1024
#define MODEL_MAX_VOCAB ((size_t)1 << 24)
#define MODEL_MAX_CTX ((size_t)1 << 30)
#define MODEL_MAX_EXPERTS 1024
#define MODEL_MAX_USED_EXPERTS 64

/* YaRN slows down the RoPE pairs that turn rarely; see docs/formats.md, "Graphs". */
struct rope_yarn {
    double factor;       /* 0: no YaRN */
    double original_ctx; /* context length before the model was extended */
    double beta_fast, beta_slow;
    double ext_factor; /* 1: pairs that turn often keep their frequency; 0: none does */
};

struct hparams {
    /* n_embd: elements of a hidden state; n_rot: elements of a head that RoPE rotates. */
    size_t n_layers, n_embd, n_ff, n_heads, n_kv_heads, head_dim, n_rot, n_vocab, n_ctx_train;
    float rms_eps;
    /* Frequency of pair i: rope_scale * rope_base^(-2i / n_rot). rope_freq_init (rope.h) also
     * applies YaRN and the factors of the file. */
    double rope_base, rope_scale;
    struct rope_yarn yarn;
    /* factor of all cosines and sines: attn_factor, times a factor of YaRN */
    double rope_magnitude;
    /* Only with rope_factors_short and rope_factors_long: sessions with a context of more tokens
     * than this use the long ones. */
    size_t rope_short_ctx;
    bool needs_rope_factors; /* rope.scaling.type is longrope: the factors must be in the file */
    /* h = embd_scale * embedding; h = h + residual_scale * (output of attention or feed-forward
     * network); logits divided by logit_scale. All are 1 unless the architecture is scaled. */
    double embd_scale, residual_scale, logit_scale;
    enum ffn_act ffn_act;
    struct delta_shape delta;
    size_t n_attn_layers;  /* layers with keys and values: those that are not delta nets */
    size_t n_extra_layers; /* layers after the n_layers, which predict further tokens; not used */
    /* A mixture of experts: each token uses n_used_experts of the n_experts of a layer, and n_ff is
     * the width of one expert. Both are 0 without experts. */
    size_t n_experts, n_used_experts;
    size_t window_in_file; /* attention.sliding_window; 0 if the architecture has no windows */
    enum bn_window_rule window_rule;
};

/* Properties in which the layers of a model differ. */
struct layer_traits {
    bool is_delta_net;     /* otherwise attention, to which the next two apply */
    size_t n_visible_keys; /* keys that a token attends to, its own included; 0: all */
    bool has_rope;
    float clamp; /* with experts: upper limit of gate, and limit of the magnitude of up; else 0 */
};

/* A tensor in the file. */
struct tensor_ref {
    struct bn_str name;
    enum tensor_type type;
    const uint8_t *bytes; /* (n_bytes); NULL if the tensor does not exist */
    size_t n_bytes;
    size_t file_offset; /* gguf_tensor.offset */
    size_t n_cols, n_rows;
};

/* y = sum of (code - 1) q(x), times scale / s, times extra_scale, plus bias. For ACT_TOKEN, q(x) =
 * round(s x) with s = 127 / max |x|; docs/kernels.md has the other schemes. */
struct linear {
    struct ternary_source source;
    char name[64]; /* source.name points here */
    struct ternary_scales scales;
    float extra_scale;      /* value of the tensor X.scale, 1 if absent */
    struct tensor_ref bias; /* F32 (n_rows), bytes NULL if absent */
    /* Of x before it is quantised; layers with the same input have the same rotation. */
    struct rotation rotation;
};

#define EXPERT_ROW_UNIT 16 /* so that no row group of R16 belongs to two experts */

/* Tensors of a gated delta net. Its linear layers are q (queries, keys and values together,
 * delta_channels rows), k (the gate of the output, z, delta_width rows) and o (ssm_out, delta_width
 * columns) of struct layer. */
struct delta_tensors {
    struct tensor_ref conv;        /* F32 (channels, DELTA_TAPS), the last tap is the newest */
    struct tensor_ref alpha, beta; /* F32, F16 or BF16 (n_value_heads, n_embd) */
    struct tensor_ref dt_bias, a;  /* F32 (n_value_heads); a is not positive */
    struct tensor_ref norm;        /* F32 (dim) */
};

struct layer {
    struct tensor_ref attn_norm, ffn_norm; /* F32 (n_embd) */
    struct delta_tensors delta;            /* only with traits.is_delta_net */
    struct tensor_ref q_norm, k_norm;      /* F32 (head_dim); may be absent */
    struct tensor_ref attn_sub_norm;       /* F32 (n_heads * head_dim); may be absent */
    struct tensor_ref ffn_sub_norm;        /* F32 (n_ff); may be absent */
    struct tensor_ref router;              /* F32 (n_experts, n_embd); only with experts */
    /* q (n_heads * head_dim, n_embd), k and v (n_kv_heads * head_dim, n_embd), o (n_embd, n_heads *
     * head_dim), gate and up (n_ff, n_embd), down (n_embd, n_ff). With experts, the rows of gate,
     * up and down are those of all experts in order, and the number of rows of one expert is a
     * multiple of EXPERT_ROW_UNIT. With arch.delta_nets, the rows of q of an attention layer are
     * the query and the gate of each head in turn, 2 head_dim per head. In a delta net, struct
     * delta_tensors explains q, k and o, and v is absent. */
    struct linear q, k, v, o, gate, up, down;
    struct layer_traits traits;
};

struct model {
    const struct gguf *gguf;
    const struct arch *arch;
    struct hparams hp;
    struct tensor_ref embd;             /* (n_vocab, n_embd) of a type with is_table */
    struct tensor_ref head;             /* output head; equal to embd if tied */
    bool tied;                          /* embedding and output head are the same matrix */
    struct ternary_source ternary_embd; /* embd, if its type is ternary; else bytes is NULL */
    /* head, if its values are ternary, but not if they are floats and all 0; else source.bytes is
     * NULL. Its member rotation is not set: head_rotation applies. */
    struct linear head_linear;
    struct file_rotation rotation;                /* the keys of the file about rotations */
    struct rotation embd_rotation, head_rotation; /* of a row of embd, and of the head's input */
    struct ternary_scales finest;  /* the finest scales of the linear layers and head_linear */
    struct tensor_ref output_norm; /* F32 (n_embd) */
    struct tensor_ref rope_freqs;  /* F32 (n_rot / 2); may be absent */
    /* F32 (n_rot / 2), both or none. If they exist, rope_freqs does not apply, and rope_is_long
     * chooses between them. */
    struct tensor_ref rope_factors_short, rope_factors_long;
    struct layer *layers; /* (n_layers) */
    uint64_t n_params;    /* elements of all tensors in use, except X.scale */
    uint64_t n_finite;    /* elements of small tensors, with X.scale; all are known to be finite */
    enum tensor_type ternary_type; /* type of most weights of the layers, can be a float type */
    enum act_scheme act_scheme;
    const char *act_reason; /* why act_scheme was chosen, for display; static text */
};

struct model_config {
    enum bn_i2s_layout i2s_layout;
    enum bn_activations activations;
    enum bn_window_rule window_rule;
    const char *no_repair; /* for bn_repair_allowed; "activation" is the only repair here */
    /* (n_ignored_tensors) names of unknown tensors that are left out; a star stands for any text */
    const char *const *ignored_tensors;
    size_t n_ignored_tensors;
    bool file_mapped;       /* the bytes are a file mapping: pages may be dropped after reading */
    struct bn_notes *notes; /* may be NULL */
    const atomic_bool *cancel; /* may be NULL; read before each layer and table */
};

/* Open a model; `g` must outlive it. Takes milliseconds for I2_S; other types are read once for
 * their scales, and an output head that repeats the embedding is compared with it.
 * BN_EUNSUPPORTED: architecture, tensor type (the message has advice), dense linear layers, or a
 * tensor that the graph does not use. BN_EFORMAT: a missing tensor or key, a wrong shape, a
 * number out of range. BN_ENOMEM. BN_ECANCELLED. */
bool model_open(const struct gguf *g, const struct model_config *cfg, struct model **out,
                struct bn_error *err);
void model_close(struct model *m); /* accepts NULL */

/* Check that packed_bytes, the weights in the layout of a backend, are not many times as large as
 * the file. SIZE_MAX: their sum overflows. BN_EUNSUPPORTED. */
bool model_check_growth(const struct model *m, size_t packed_bytes, struct bn_error *err);

/* Describe the layers with a window: "a token sees itself and 512 before it in 18 of 24
 * layers (rule: reference)". Empty if there are none. */
void model_window_text(const struct model *m, char *text, size_t text_bytes);
const char *model_window_rule_name(enum bn_window_rule rule); /* as in --window-rule */

#endif
