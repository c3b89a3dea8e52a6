/*
 * The ternary matrices of a forward pass: see pass_matrix.h.
 */
#include "engine/layout/pass_matrix.h"

#include "engine/base/size.h"
#include "engine/layout/fixed_point.h"
#include "engine/layout/r16_pack.h"

#include <string.h>

static struct pass_matrix matrix_of(const struct linear *const sections[PASS_MAX_SECTIONS],
                                    float factor)
{
    struct pass_matrix matrix = {.n_cols = sections[0]->source.n_cols, .factor = factor};
    for (size_t i = 0; i < PASS_MAX_SECTIONS && sections[i]; i++) {
        matrix.sections[matrix.n_sections++] = sections[i];
        matrix.n_rows += sections[i]->source.n_rows; /* the size of the file limits each number */
    }
    return matrix;
}

struct pass_matrix pass_matrix_of_layer(const struct model *m, const struct layer *layer,
                                        enum pass_matrix_kind kind)
{
    const struct linear *const sections[PASS_LAYER_MATRICES][PASS_MAX_SECTIONS] = {
        [PASS_QKV] = {&layer->q, &layer->k, layer->traits.is_delta_net ? NULL : &layer->v},
        [PASS_OUT] = {&layer->o},
        [PASS_GATE_UP] = {&layer->gate, &layer->up},
        [PASS_DOWN] = {&layer->down},
    };
    const bool adds_to_h = kind == PASS_OUT || kind == PASS_DOWN;
    return matrix_of(sections[kind], adds_to_h ? (float)m->hp.residual_scale : 1.0f);
}

struct pass_matrix pass_matrix_of_head(const struct model *m)
{
    const struct linear *const sections[PASS_MAX_SECTIONS] = {&m->head_linear};
    return matrix_of(sections, 1.0f);
}

bool pass_uses_r16(const struct model *m)
{
    return m->act_scheme != ACT_TOKEN || m->finest.scaling != SCALE_TENSOR || m->arch->experts;
}

bool pass_any_r16(const struct model *m)
{
    return pass_uses_r16(m) || m->head_linear.source.bytes;
}

size_t pass_block_cols(const struct model *m, const struct pass_matrix *matrix)
{
    size_t n = R16_PAD_COLS;
    for (size_t i = 0; i < matrix->n_sections; i++)
        if (matrix->sections[i]->scales.scaling == SCALE_BLOCK)
            n = size_min(n, matrix->sections[i]->scales.block_cols);
    return m->act_scheme == ACT_BLOCK32 ? MIN_BLOCK_COLS : n;
}

void pass_small_tensors(const struct layer *layer, const struct tensor_ref *out[PASS_SMALL_TENSORS])
{
    const struct delta_tensors *d = &layer->delta;
    const struct tensor_ref *const all[PASS_SMALL_TENSORS] = {&layer->attn_norm,
                                                              &layer->ffn_norm,
                                                              &layer->q_norm,
                                                              &layer->k_norm,
                                                              &layer->attn_sub_norm,
                                                              &layer->ffn_sub_norm,
                                                              &layer->router,
                                                              &d->conv,
                                                              &d->alpha,
                                                              &d->beta,
                                                              &d->dt_bias,
                                                              &d->a,
                                                              &d->norm};
    memcpy(out, all, sizeof all);
}
