/*
 * Synthetic ternary models with random weights, of any shape, architecture and tensor type, in
 * memory or in a file. For unit tests, make_model and benchmarks.
 *
 * Weights come from a counter: the same seed and shape give the same ternary values in every type
 * and layout, so their logits must agree. The output is nonsense, at the speed of a real model of
 * that shape.
 *
 *     struct synth_spec spec = synth_preset("tiny");      two layers, byte vocabulary, I2_S
 *     spec.arch = "llama";
 *     struct synth_model m;
 *     assert_true(synth_open(&spec, &m, &err));           m.file, m.gguf, m.model are ready
 *     ...
 *     synth_close(&m);
 */
#ifndef TESTS_SUPPORT_SYNTH_H
#define TESTS_SUPPORT_SYNTH_H

#include "engine/base/error.h"
#include "engine/file_gguf.h"
#include "engine/model/model.h"
#include "tests/support/gguf_write.h"

enum synth_vocab {
    SYNTH_VOCAB_BYTES,  /* 256 byte tokens and 6 specials: 262 ids, bos 256, eos 257, eot 260 */
    SYNTH_VOCAB_QWEN,   /* 256 byte tokens and 5 specials: 261 ids, no BOS in prompts, ChatML */
    SYNTH_VOCAB_LLAMA3, /* n_vocab ids of synthetic BPE; the last 256 are Llama 3 specials */
};

/* The numbers of ids; that of SYNTH_VOCAB_LLAMA3 is the default of make_model and the presets. */
#define SYNTH_N_VOCAB_BYTES 262
#define SYNTH_N_VOCAB_QWEN 261
#define SYNTH_N_VOCAB_LLAMA3 128256

#define SYNTH_ROW_SCALES SIZE_MAX /* value of synth_spec.scale_cols: one scale per row */

struct synth_spec {
    const char *name; /* general.name */
    /* "bitnet-b1.58", "bitnet-25", "bitnet", "llama", "minicpm", "qwen3", "maple" or "qwen35". */
    const char *arch;
    enum tensor_type type;     /* of linear layers; tensor_is_linear(type) is true */
    enum bn_i2s_layout layout; /* layout of I2_S */
    enum tensor_type head;     /* of embedding and output head; is_table is true */
    /* Columns that share a scale: 64, 128 or 256. 0: one scale per tensor. SYNTH_ROW_SCALES: one
     * per row. Some scales are 0. */
    size_t scale_cols;
    bool ternary_head; /* embedding and head have ternary values, also in float types */
    size_t n_layers, n_embd, n_heads, n_kv_heads, n_ff, n_ctx;
    size_t head_dim; /* 0 for n_embd / n_heads without attention.key_length in the file */
    size_t n_vocab;  /* SYNTH_N_VOCAB_BYTES or SYNTH_N_VOCAB_QWEN; any number with LLAMA3 */
    enum synth_vocab vocab;
    bool untied;     /* separate output.weight; always so for llama */
    float yarn;      /* YaRN factor, 0 for none */
    size_t yarn_ctx; /* rope.scaling.original_context_length, with yarn */
    /* Only for maple, where n_ff is the width of an expert: */
    size_t n_experts, n_used_experts;
    size_t n_rot;             /* elements of a head that are rotated; 0: all */
    size_t window;            /* of all layers but every fourth */
    float clamp;              /* limit of the values in experts; 0: the key is absent */
    struct delta_shape delta; /* only for qwen35 */
    /* Only for qwen35: layers that predict further tokens, with one tensor each; and whether
     * block_count includes them. */
    size_t n_extra_layers;
    bool extra_layers_count;
    bool rope_freqs; /* rope_freqs.weight, factors 1 .. 8 */
    size_t longrope; /* rope.scaling.original_context_length with rope_factors_short.weight and
                        * rope_factors_long.weight, factors 1 .. 8 and 1 .. 29; 0 for none */
    bool scales;     /* F16 and F32 layers as -1, 0, +1 with an additional tensor X.scale */
    bool biases;     /* X.bias for every linear layer */
    bool official;   /* like published files: no tokenizer.ggml.pre, broken chat template */
    /* A rotated file: */
    size_t rotated_block;     /* elements of a transform; 0: the file is not rotated */
    unsigned rotated_version; /* prism.hadamard.version; 0 means 1; 2 needs a tied head */
    bool no_signs;            /* all signs are +1 */
    /* Each run of this many columns of a row, a power of 4, has one weight that is not 0. So the
     * rotation of the weights by this block is ternary too, and a file with rotated_block equal to
     * this number is the same model as the file without rotated_block. 0: dense weights. */
    size_t sparse_block;
    const char *extra; /* names of more F32 vectors (n_embd), separated by commas; NULL for none */
    uint64_t seed;
};

/* "tiny", "odd" (head size 96, no grouping, n_ff not a multiple of 256), "small": byte vocabulary;
 * "1b", "2b4t", "8b": the shapes of real models with 128256 ids. "qwen3-tiny" (513 ids, q wider
 * than the embedding), "bonsai-1.7b", "bonsai-4b", "bonsai-8b": qwen3 with PQ2_0 everywhere, scales
 * per 128 columns and an odd number of ids. "maple-tiny": four layers of eight experts, window 40,
 * TQ2_0 with scales per row, 261 ids. "qwen35-tiny": three gated delta nets and one layer of
 * attention, PQ2_0, 261 ids; "bonsai-27b": the real shape of qwen35. name is NULL for an unknown
 * preset. */
struct synth_spec synth_preset(const char *name);
/* Seven shapes of F32 weights with widths that are not a multiple of a block, a register or a cache
 * line; one KV head for all heads, or one for each. False if i is 7 or more. */
bool synth_awkward(size_t i, struct synth_spec *out);

/* BN_EARG: a shape the types cannot hold. BN_EIO: the sink failed. */
bool synth_write(const struct synth_spec *spec, const struct gguf_sink *sink, struct bn_error *err);

struct synth_model {
    struct gguf_buffer bytes;
    struct bn_file *file;
    const struct gguf *gguf;
    struct model *model;
    struct bn_notes notes;
};
/* Write a model to memory and open it. On failure everything is closed. */
bool synth_open(const struct synth_spec *spec, struct synth_model *out, struct bn_error *err);
/* Close model and file and open the bytes, which the test has changed, again. On failure
 * synth_close must still be called. */
bool synth_reopen(struct synth_model *m, const struct model_config *cfg, struct bn_error *err);
void synth_close(struct synth_model *m);

#endif
