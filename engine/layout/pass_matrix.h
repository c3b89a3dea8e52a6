/*
 * The ternary matrices of a forward pass. Each backend packs them for its kernels.
 *
 * A matrix consists of up to three matrices of the file, its sections, which have the same input:
 * q, k and v of an attention layer are one product. All functions are pure.
 */
#ifndef ENGINE_LAYOUT_PASS_MATRIX_H
#define ENGINE_LAYOUT_PASS_MATRIX_H

#include "engine/model/model.h"

/* The matrices of a layer, in the order of a pass. */
enum pass_matrix_kind {
    PASS_QKV,     /* q, k, v; in a delta net attn_qkv (layer.q) and attn_gate (layer.k) */
    PASS_OUT,     /* the projection after attention or after the delta net */
    PASS_GATE_UP, /* gate, up */
    PASS_DOWN,
    PASS_LAYER_MATRICES /* number of matrices of a layer */
};

#define PASS_MAX_SECTIONS 3

struct pass_matrix {
    const struct linear *sections[PASS_MAX_SECTIONS]; /* (n_sections) in the order of the rows */
    size_t n_sections;
    size_t n_rows; /* of all sections */
    size_t n_cols;
    float factor; /* of the results: residual_scale if they are added to h, else 1 */
};
struct pass_matrix pass_matrix_of_layer(const struct model *m, const struct layer *layer,
                                        enum pass_matrix_kind kind);
/* The ternary output head. It has no rows if the head is not ternary (head_linear.source.bytes). */
struct pass_matrix pass_matrix_of_head(const struct model *m);

/* Whether the matrices of the layers are in R16 (r16_pack.h), else in R1-256 (r1_pack.h). They are
 * in R16 if activations do not have one int8 scale per token, if any matrix or the ternary output
 * head has more than one scale (model.finest), or if the model has experts. A ternary output head
 * is always in R16. */
bool pass_uses_r16(const struct model *m);
/* Whether any matrix is in R16: those of the layers, or a ternary output head. */
bool pass_any_r16(const struct model *m);

/* Columns of an activation block for a matrix in R16: with ACT_BLOCK32 MIN_BLOCK_COLS, else the
 * columns of the shortest span of a section (group_shape.span_cols), because all sections share the
 * input. */
size_t pass_block_cols(const struct model *m, const struct pass_matrix *matrix);

#define PASS_SMALL_TENSORS 13
/* The tensors of a layer that belong to no pass_matrix: norms, router, and those of a delta net.
 * An absent tensor has n_bytes 0. */
void pass_small_tensors(const struct layer *layer,
                        const struct tensor_ref *out[PASS_SMALL_TENSORS]);

#endif
