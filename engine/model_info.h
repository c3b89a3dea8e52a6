/*
 * Facts about an open model. Public header; engine.h includes it.
 */
#ifndef ENGINE_MODEL_INFO_H
#define ENGINE_MODEL_INFO_H

#include <stddef.h>
#include <stdint.h>

struct bn_model_info {
    char name[128];        /* metadata key general.name */
    char arch[64];         /* metadata key general.architecture */
    char quantisation[32]; /* type of most weights in linear layers: "I2_S", "TQ2_0", ... */
    char device[160];      /* "CPU, 2 threads, AVX-512 VNNI", and which parts are approximate */
    char skip_reason[160]; /* "cuda is not used: ..." if "auto" had to skip a device, else "" */
    char activations[120]; /* "int8 per token: as in the training of this architecture" */
    char rotation[64];     /* "blocks of 1024, explicit signs, version 1"; "": not rotated */
    char window[120];      /* which layers have a window of keys, and the rule; "": none */
    const char *isa;       /* instruction set in use, "cuda" on a GPU; static text */
    size_t n_threads;      /* of the CPU; 1 with a GPU */
    size_t n_ubatch;       /* most tokens in one pass over the weights */
    /* n_embd is the width of the hidden state, n_ff that of a feed-forward network (of one expert).
     * Of the n_experts experts of a layer, each token uses n_used_experts; 0: no experts. n_heads
     * and n_kv_heads are the attention heads of queries and of keys and values. */
    size_t n_vocab, n_layers, n_embd, n_ff, n_heads, n_kv_heads, n_experts, n_used_experts;
    size_t n_ctx_train; /* context length that the model was trained for */
    /* Context of sessions that request none: n_ctx_train, or less if a session of that length needs
     * more than half of the memory that was free after loading. */
    size_t n_ctx_default;
    uint64_t n_params;         /* number of weights */
    size_t weight_bytes;       /* memory of the weights */
    size_t kv_bytes_per_token; /* memory of the KV cache for each token */
    /* memory of a session that does not depend on its tokens: rings and recurrent states */
    size_t seq_fixed_bytes;
    size_t state_bytes;  /* size of one saved state; 0: the model needs none */
    const char *kv_type; /* "f16" or "q8" */
    /* bytes read to decode one token, without keys and values; a recurrent state counts twice,
     * because it is also written */
    size_t bytes_per_token;
    /* the part of bytes_per_token for the output head or its copy; of a screened head only the
     * coarse plane, without the rows that are read after it */
    size_t head_bytes;
    /* multiply-adds of the linear layers for one token, without the output head; delta nets count
     * as attention */
    double macs_per_token;
    double load_seconds; /* time of bn_model_open */
};

#endif
