/*
 * The sizes of buffers and rows that follow from the model and the settings. cpu_sizes.c computes
 * them when a model opens, before weights, buffers or caches are allocated.
 */
#ifndef ENGINE_CPU_CPU_SHAPE_H
#define ENGINE_CPU_CPU_SHAPE_H

#include <stddef.h>

/* Sizes that follow from the model, in elements unless stated otherwise. */
struct cpu_shape {
    size_t q_width, kv_width; /* n_heads * head_dim, n_kv_heads * head_dim */
    /* Floats of q in a row of qkv: q_width, or twice if attention has gates. Then the query and the
     * gate of each head alternate, until attn_append moves the gates behind the queries of a KV
     * head. */
    size_t q_floats;
    size_t n_q_per_kv; /* query heads per KV head */
    size_t max_cols;   /* widest input of a linear layer */
    /* Of the rows of h, qkv, attn, ffn and z in struct scratch. */
    size_t h_stride, qkv_stride, attn_stride, ffn_stride, vocab_stride;
    size_t ffn_rows;     /* rows of ffn per token: 1, or n_used_experts */
    size_t q8_stride;    /* bytes of a quantised token, a multiple of 64 */
    size_t block_stride; /* most blocks of activations in a row, for R16; else 0 */
    size_t x_stride;     /* floats of a row that is not quantised; 0: all are quantised */
    size_t n_planes;     /* int8 planes of the activations for R16: 1, or 2 for 16 bits; else 0 */
    size_t v_stride;     /* head_dim rounded up to 32, see struct attn_block */
    size_t k_bytes, v_bytes; /* bytes of a block of positions of one KV head, see cpu_kv.h */
    size_t kv_block_bytes;   /* k_bytes + v_bytes + scales */
    /* Layers with a ring, most positions that their tokens see before their own, blocks of a ring;
     * all 0 without rings. See cpu_ring.h. */
    size_t n_ring_layers, ring_before, ring_blocks;
    size_t n_slots; /* slots for partial attention results, see scratch.attn_partials */
    /* Blocks per row of the planned coarse plane; 0: none. Loading can still leave the plane out,
     * so a pass tests backend.coarse. */
    size_t n_coarse;
    size_t row_bytes;      /* bytes of a row of the embedding table */
    size_t head_row_bytes; /* bytes of a row of the output head as it is multiplied */
};

#endif
