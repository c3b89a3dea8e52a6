/*
 * The widths of a pass: see pass_widths.h.
 */
#include "engine/layout/pass_widths.h"

#include "engine/base/size.h"
#include "engine/layout/pass_matrix.h"

static size_t planes_of(enum act_scheme scheme)
{
    switch (scheme) {
    case ACT_FLOAT:
        return 0;
    case ACT_16:
        return 2;
    default:
        return 1;
    }
}

struct pass_widths pass_widths_of(const struct model *m)
{
    const struct hparams *hp = &m->hp;
    const size_t q_width = hp->n_heads * hp->head_dim, kv_width = hp->n_kv_heads * hp->head_dim;
    /* Attention in models with delta nets has a gate for each element of a query. */
    const size_t q_floats = m->arch->delta_nets ? 2 * q_width : q_width;
    const size_t delta_out = delta_width(&hp->delta), delta_in = delta_channels(&hp->delta);
    const size_t o_cols = size_max(q_width, delta_out);
    return (struct pass_widths){
        .q_width = q_width,
        .kv_width = kv_width,
        .q_floats = q_floats,
        .n_q_per_kv = hp->n_heads / hp->n_kv_heads,
        .max_cols = size_max(size_max(hp->n_embd, hp->n_ff), o_cols),
        .h_stride = size_round_up(hp->n_embd, ROW_UNIT),
        .qkv_stride =
            size_round_up(size_max(q_floats + 2 * kv_width, delta_in + delta_out), ROW_UNIT),
        .attn_stride = size_round_up(o_cols, ROW_UNIT),
        .ffn_stride = size_round_up(hp->n_ff, ROW_UNIT),
        .vocab_stride = size_round_up(hp->n_vocab, ROW_UNIT),
        .v_stride = size_round_up(hp->head_dim, V_UNIT),
        .n_planes = pass_any_r16(m) ? planes_of(m->act_scheme) : 0,
    };
}
