/*
 * The widths of the activations of a pass, which follow from the model. All backends have the same
 * ones. The functions are pure.
 */
#ifndef ENGINE_LAYOUT_PASS_WIDTHS_H
#define ENGINE_LAYOUT_PASS_WIDTHS_H

#include "engine/layout/layout_units.h"
#include "engine/model/model.h"

#include <stdbool.h>
#include <stddef.h>

/* In elements. A stride is the distance of two tokens in a buffer, a multiple of ROW_UNIT. */
struct pass_widths {
    size_t q_width, kv_width; /* n_heads * head_dim, n_kv_heads * head_dim */
    /* Floats of q in a row of qkv: q_width, or twice if attention has gates. Then the query and the
     * gate of each head alternate, until the backend moves the gates of the query heads of a KV
     * head behind these queries. */
    size_t q_floats;
    size_t n_q_per_kv;   /* query heads per KV head */
    size_t max_cols;     /* widest input of a linear layer */
    size_t h_stride;     /* the hidden state (n_embd) */
    size_t qkv_stride;   /* q, k, v; in a delta net the results of attn_qkv and attn_gate */
    size_t attn_stride;  /* the result of attention or of a delta net */
    size_t ffn_stride;   /* act(gate) * up (n_ff) */
    size_t vocab_stride; /* logits */
    size_t v_stride;     /* a value in the KV cache: head_dim rounded up to V_UNIT */
    size_t n_planes;     /* int8 planes of an input of R16: 1, or 2 for 16 bits. 0: inputs are
                            floats, or no matrix is in R16 */
};

/* The loader's limits on models (MODEL_MAX_WIDTH and others) keep every member below 2^25. */
struct pass_widths pass_widths_of(const struct model *m);

/* Whether attention multiplies its results by gates (qwen35). */
static inline bool pass_has_gates(const struct pass_widths *w)
{
    return w->q_floats > w->q_width;
}

#endif
