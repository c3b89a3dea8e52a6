/*
 * The sizes of buffers and rows that follow from the model and the settings. cpu_sizes.c computes
 * them when a model opens, before weights, buffers or caches are allocated.
 */
#ifndef ENGINE_CPU_CPU_SHAPE_H
#define ENGINE_CPU_CPU_SHAPE_H

#include "engine/layout/pass_widths.h"
#include "engine/layout/window_ring.h"

#include <stddef.h>

/* Sizes that follow from the model, in elements unless stated otherwise. */
struct cpu_shape {
    struct pass_widths widths; /* vocab_stride: of scratch.z */
    size_t ffn_rows;           /* rows of ffn per token: 1, or n_used_experts */
    size_t q8_stride;          /* bytes of a quantised token, a multiple of 64 */
    size_t block_stride;       /* most activation blocks in a row, for R16; else 0 */
    size_t x_stride;           /* floats of a row that is not quantised; 0: all are quantised */
    size_t k_bytes, v_bytes;   /* bytes of a position block of one KV head, see cpu_kv.h */
    size_t kv_block_bytes;     /* k_bytes + v_bytes + scales */
    struct window_ring ring;   /* zeros without rings, also with cfg->no_ring */
    size_t n_slots;            /* slots for partial attention results, see scratch.attn_partials */
    /* Blocks per row of the planned coarse plane; 0: none. Loading can still leave the plane out,
     * so a pass tests backend.coarse. */
    size_t n_coarse;
    size_t row_bytes;      /* bytes of a row of the embedding table */
    size_t head_row_bytes; /* bytes of a row of the output head as it is multiplied */
};

#endif
