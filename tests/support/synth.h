/*
 * Synthetic ternary models: any shape, architecture and container, random weights, made in memory
 * or streamed to a file. For unit tests, make_model and the benchmarks.
 *
 * Weights come from a counter: the same seed and shape give the same ternary values in every
 * container and layout, so their logits must agree. They speak nonsense, at the speed of a real
 * model of that shape.
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
#include "engine/gguf/gguf_write.h"
#include "engine/model/model.h"

enum synth_vocab {
    SYNTH_VOCAB_BYTES,  /* 256 byte tokens and 6 specials: 262 ids, bos 256, eos 257, eot 260 */
    SYNTH_VOCAB_LLAMA3, /* n_vocab ids of a made-up BPE; the last 256 are the specials of Llama 3 */
};

struct synth_spec {
    const char *name;          /* general.name */
    const char *arch;          /* "bitnet-b1.58", "bitnet-25", "bitnet", "llama" */
    enum tensor_type type;     /* of linear layers: I2_S, TQ1_0, TQ2_0, F16, F32, BF16 */
    enum bn_i2s_layout layout; /* of I2_S */
    enum tensor_type head;     /* of embedding and head: a table type */
    size_t n_layers, n_embd, n_heads, n_kv_heads, n_ff, n_ctx;
    size_t head_dim; /* 0: n_embd / n_heads, and no attention.key_length in the file */
    size_t n_vocab;  /* with BYTES always 262 */
    enum synth_vocab vocab;
    bool untied;     /* output.weight of its own; "llama" always has one */
    bool rope_freqs; /* rope_freqs.weight, factors 1 .. 8 */
    bool scales;     /* F16 and F32 layers as -1, 0, +1 with an X.scale tensor beside them */
    bool biases;     /* X.bias beside every linear layer */
    bool official; /* no tokenizer.ggml.pre and the broken chat template, as published files have */
    uint64_t seed;
};

/* "tiny", "odd" (head size 96, no grouping, n_ff no multiple of 256), "small": byte vocabulary;
 * "1b", "2b4t", "8b": the shapes of real models with 128256 ids. name is NULL for an unknown
 * preset. */
struct synth_spec synth_preset(const char *name);
/* Seven shapes of F32 weights whose widths are no multiple of a line, a register or a cache line;
 * one head and many, one group for all heads and none. False past the last. */
bool synth_awkward(size_t i, struct synth_spec *out);

/* BN_EARG: a shape the types cannot hold. BN_EIO: the sink refused. */
bool synth_write(const struct synth_spec *spec, const struct gguf_sink *sink, struct bn_error *err);

struct synth_model {
    struct gguf_buffer bytes;
    struct bn_file *file;
    const struct gguf *gguf;
    struct model *model;
    struct bn_notes notes;
};
/* Write to memory, open the file, open the model; on failure nothing is left open. */
bool synth_open(const struct synth_spec *spec, struct synth_model *out, struct bn_error *err);
void synth_close(struct synth_model *m);

#endif
