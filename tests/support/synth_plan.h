/*
 * The steps of synth.c: the list of tensors, their random bytes, and the metadata. Private to
 * synth.
 */
#ifndef TESTS_SUPPORT_SYNTH_PLAN_H
#define TESTS_SUPPORT_SYNTH_PLAN_H

#include "tests/support/synth.h"

/* Most layers of a model with experts: its metadata have an entry for each layer. */
#define SYNTH_MAX_EXPERT_LAYERS 64

/* What a tensor is for. It decides the distribution of the random values. */
enum synth_role {
    ROLE_TERNARY, /* values -1, 0, +1 times a scale, in a ternary type or as floats */
    ROLE_TABLE,   /* the embedding or the output head, in a float type */
    ROLE_NORM,    /* weights of an RMS norm, near 1 */
    ROLE_SCALE,   /* one number: the scale of a linear layer */
    ROLE_BIAS,
    ROLE_FREQS,  /* factors of the RoPE pairs, from 1 to synth_tensor.scale */
    ROLE_ROUTER, /* a small dense matrix: the router of the experts, or gates of a delta net */
    ROLE_TAPS,   /* the convolution of a delta net */
    ROLE_DECAY   /* logarithmic decay of a delta net: below 0 */
};

struct synth_tensor {
    char name[64];
    enum synth_role role;
    enum tensor_type type;
    size_t n_cols, n_rows;
    size_t n_experts; /* above 0: a tensor of 3 dimensions; n_rows counts the rows of all experts */
    float scale;      /* TERNARY: magnitude of the values; SCALE: value; FREQS: the last factor */
};

/* Called for each tensor in file order; false stops the iteration. */
typedef bool (*synth_visit_fn)(void *ud, const struct synth_tensor *t, struct bn_error *err);
bool synth_each_tensor(const struct synth_spec *spec, synth_visit_fn visit, void *ud,
                       struct bn_error *err);

/* Write all metadata, including the tokenizer. */
bool synth_put_meta(const struct synth_spec *spec, struct gguf_writer *w, struct bn_error *err);

/* Sign i of the inputs of `width` columns in a rotated file: 1 or -1. */
int synth_sign(const struct synth_spec *spec, size_t width, size_t i);

/* Write the bytes of a tensor. */
bool synth_write_tensor(const struct synth_spec *spec, const struct synth_tensor *t,
                        struct gguf_writer *w, const struct gguf_sink *sink, struct bn_error *err);

#endif
