/*
 * Converts the ternary matrices of the layers and a ternary output head to R1-256 or R16
 * (engine/layout/r16_pack.h) when the backend opens, and uploads them with the other tensors. A
 * ternary embedding stays on the host.
 *
 * The weights are one allocation: layer after layer, each with its matrices (and their scales and
 * biases) before its other tensors, then the tensors that belong to no layer, and the coarse plane.
 * Rows in R1-256 are packed on the host into a staging buffer of a few megabytes and copied from
 * there. In R16, each matrix of the file is packed as a whole.
 */
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/cuda/cuda_state.h"
#include "engine/layout/head_plane.h"
#include "engine/layout/pass_matrix.h"
#include "engine/layout/r16_pack.h"
#include "engine/layout/r1_pack.h"

#include <assert.h>
#include <string.h>

/* Tensors that are not packed are copied in pieces of this size, so that progress and cancellation
 * come between two pieces. Also the size of the smallest staging buffer. */
#define STAGING_BYTES ((size_t)4 << 20)

static bool has_bias(const struct pass_matrix *matrix)
{
    for (size_t i = 0; i < matrix->n_sections; i++)
        if (matrix->sections[i]->bias.bytes)
            return true;
    return false;
}

/* Adds n * unit_bytes, rounded up to DEVICE_ALIGN, to *n_bytes. This function and the other add_
 * functions return false if a size overflows. */
static bool add_bytes(size_t *n_bytes, size_t n, size_t unit_bytes)
{
    size_t more;
    return size_mul(&more, n, unit_bytes) && more < SIZE_MAX - DEVICE_ALIGN &&
           size_add(n_bytes, *n_bytes, size_round_up(more, DEVICE_ALIGN));
}

/* Adds the bytes of the sections of a matrix in R16 and of their scales. */
static bool add_groups(size_t *n_bytes, const struct pass_matrix *matrix)
{
    for (size_t i = 0; i < matrix->n_sections; i++) {
        const struct linear *l = matrix->sections[i];
        struct group_shape shape;
        if (!group_shape_of(&l->source, &l->scales, &shape) ||
            !add_bytes(n_bytes, shape.n_bytes, 1) ||
            (l->scales.scaling == SCALE_ROW &&
             !add_bytes(n_bytes, l->source.n_rows, sizeof(float))))
            return false;
    }
    return true;
}

static bool add_lines(size_t *n_bytes, const struct pass_matrix *matrix)
{
    size_t row_bytes;
    return size_mul(&row_bytes, r1_lines(matrix->n_cols), LINE_BYTES) &&
           add_bytes(n_bytes, matrix->n_rows, row_bytes);
}

static bool add_layer(size_t *n_bytes, const struct model *m, const struct layer *layer)
{
    const bool uses_r16 = pass_uses_r16(m);
    const struct tensor_ref *small[PASS_SMALL_TENSORS];
    for (size_t kind = 0; kind < PASS_LAYER_MATRICES; kind++) {
        const struct pass_matrix matrix = pass_matrix_of_layer(m, layer, kind);
        if (!(uses_r16 ? add_groups : add_lines)(n_bytes, &matrix) ||
            (has_bias(&matrix) && !add_bytes(n_bytes, matrix.n_rows, sizeof(float))))
            return false;
    }
    pass_small_tensors(layer, small);
    for (size_t i = 0; i < PASS_SMALL_TENSORS; i++)
        if (!add_bytes(n_bytes, small[i]->n_bytes, 1))
            return false;
    return true;
}

bool cuda_weight_bytes(const struct model *m, enum bn_head_mode head, size_t *n_bytes)
{
    const struct pass_matrix ternary_head = pass_matrix_of_head(m);
    size_t coarse_bytes;
    *n_bytes = 0;
    for (size_t i = 0; i < m->hp.n_layers; i++)
        if (!add_layer(n_bytes, m, &m->layers[i]))
            return false;
    if (!add_bytes(n_bytes, m->output_norm.n_bytes, 1) ||
        !add_bytes(n_bytes, file_rotation_signs(&m->rotation), sizeof(float)) ||
        (!m->ternary_embd.bytes && !add_bytes(n_bytes, m->embd.n_bytes, 1)))
        return false;
    if (m->head_linear.source.bytes)
        return add_groups(n_bytes, &ternary_head);
    return (m->tied || add_bytes(n_bytes, m->head.n_bytes, 1)) &&
           head_plane_bytes(m, cuda_head_blocks(m, head), &coarse_bytes) &&
           add_bytes(n_bytes, coarse_bytes, 1);
}

struct packing {
    struct backend *b;
    const struct backend_control *control;
    CUdeviceptr at, end;  /* next free byte of b->weights, and its end */
    uint8_t *staging;     /* rows in R1-256 before their upload */
    size_t staging_bytes; /* STAGING_BYTES, or R1_PACK_ROWS rows of two sections if larger */
    uint8_t *codes;       /* (R1_PACK_ROWS, n_cols of the widest matrix of a layer) */
    size_t done_bytes, total_bytes; /* bytes of the file, see finish_file_bytes and measure_file */
};

/* Returns the next n_bytes of b->weights. cuda_weight_bytes has counted them. */
static CUdeviceptr reserve(struct packing *p, size_t n_bytes)
{
    const CUdeviceptr at = p->at;
    p->at += size_round_up(n_bytes, DEVICE_ALIGN);
    assert(p->at <= p->end);
    return at;
}

static bool upload_bytes(struct packing *p, CUdeviceptr to, const void *from, size_t n_bytes,
                         struct bn_error *err)
{
    const struct cuda_driver *d = &p->b->device.driver;
    return cuda_ok(d, d->cuMemcpyHtoD(to, from, n_bytes), "copying weights to the GPU", err);
}

/* Counts these bytes of the file as done: drops their pages if the file is mapped, reports progress
 * and checks for cancellation. */
static bool finish_file_bytes(struct packing *p, const uint8_t *bytes, size_t n_bytes,
                              struct bn_error *err)
{
    const struct backend_control *control = p->control;
    if (p->b->cfg.file_mapped)
        mem_file_drop(bytes, n_bytes);
    p->done_bytes += n_bytes;
    if (control->progress)
        control->progress(control->ud, p->done_bytes, p->total_bytes);
    if (control->cancel && atomic_load_explicit(control->cancel, memory_order_relaxed))
        return bn_fail(err, BN_ECANCELLED, "loading was cancelled");
    return true;
}

/* Packs one section to R1-256 and uploads it to `to`; or n_sections sections, starting with section
 * `first`, with interleaved rows. */
static bool upload_rows(struct packing *p, const struct pass_matrix *matrix, size_t first,
                        size_t n_sections, CUdeviceptr to, struct bn_error *err)
{
    const size_t row_bytes = r1_lines(matrix->n_cols) * LINE_BYTES,
                 n_rows = matrix->sections[first]->source.n_rows;
    /* r1_pack_rows decodes R1_PACK_ROWS rows together, so a chunk has a multiple of them. The
     * staging buffer has room for so many rows of each section; the limit of 1 is a precaution. */
    const size_t n_fit = size_max(p->staging_bytes / (row_bytes * n_sections) / R1_PACK_ROWS, 1);
    const size_t n_chunk = n_fit * R1_PACK_ROWS;
    for (size_t r = 0; r < n_rows; r += n_chunk) {
        const size_t end = size_min(r + n_chunk, n_rows);
        for (size_t i = 0; i < n_sections; i++)
            if (!r1_pack_rows(&matrix->sections[first + i]->source, r, end,
                              p->staging + i * row_bytes, n_sections * row_bytes, p->codes, err))
                return false;
        if (!upload_bytes(p, to + r * n_sections * row_bytes, p->staging,
                          (end - r) * n_sections * row_bytes, err))
            return false;
    }
    for (size_t i = 0; i < n_sections; i++) {
        const struct ternary_source *src = &matrix->sections[first + i]->source;
        if (!finish_file_bytes(p, src->bytes, src->n_bytes, err))
            return false;
    }
    return true;
}

/* Packs a section to R16 and uploads it with its scales. `factor` is that of struct pass_matrix. */
static bool upload_groups(struct packing *p, const struct linear *l, float factor,
                          struct r16_section *to, struct bn_error *err)
{
    struct group_shape shape;
    if (!group_shape_of(&l->source, &l->scales, &shape))
        return bn_fail(err, BN_ENOMEM, "tensor '%s' is too large", l->source.name);
    uint8_t *packed = mem_alloc(shape.n_bytes, 1);
    float *row_scales = mem_alloc(l->source.n_rows, sizeof *row_scales); /* used with SCALE_ROW */
    void *scratch = mem_alloc(r16_pack_scratch(l->source.n_cols), 1);
    const CUdeviceptr at = reserve(p, shape.n_bytes);
    bool ok =
        packed && row_scales && scratch
            ? r16_pack(&l->source, &l->scales, &shape, 0, shape.n_groups, packed, scratch, err) &&
                  upload_bytes(p, at, packed, shape.n_bytes, err)
            : bn_fail(err, BN_ENOMEM, "no memory to pack tensor '%s'", l->source.name);
    *to = (struct r16_section){
        .lines = (const uint8_t *)(uintptr_t)at,
        .scales = shape.has_scales ? (const uint16_t *)(uintptr_t)(at + shape.line_bytes) : NULL,
        .n_groups = (uint32_t)shape.n_groups,
        .n_rows = (uint32_t)l->source.n_rows,
        .span_cols = (uint32_t)shape.span_cols,
        .scale = l->scales.tensor_scale,
        .extra = l->extra_scale * factor};
    if (ok && l->scales.scaling == SCALE_ROW) {
        const CUdeviceptr rows = reserve(p, l->source.n_rows * sizeof *row_scales);
        ternary_row_scales(&l->source, 0, l->source.n_rows, row_scales);
        ok = upload_bytes(p, rows, row_scales, l->source.n_rows * sizeof *row_scales, err);
        to->row_scales = (const float *)(uintptr_t)rows;
    }
    mem_free(packed);
    mem_free(row_scales);
    mem_free(scratch);
    return ok && finish_file_bytes(p, l->source.bytes, l->source.n_bytes, err);
}

/* Uploads all sections of a matrix in R16. */
static bool upload_sections(struct packing *p, const struct pass_matrix *matrix,
                            struct r16_args *to, struct bn_error *err)
{
    const struct ternary_source *src = &matrix->sections[0]->source;
    size_t row0 = 0;
    to->in.block_cols = (uint32_t)pass_block_cols(p->b->model, matrix);
    to->n_cols = (uint32_t)src->n_cols;
    to->n_lines = (uint32_t)(size_round_up(src->n_cols, R16_PAD_COLS) / R16_LINE_COLS);
    for (size_t i = 0; i < PASS_MAX_SECTIONS; i++) {
        struct r16_section *section = &to->sections[i];
        section->group0 = UINT32_MAX; /* a kernel must find no group in an unused section */
        if (i >= matrix->n_sections)
            continue;
        if (!upload_groups(p, matrix->sections[i], matrix->factor, section, err))
            return false;
        section->group0 = to->n_groups;
        section->row0 = (uint32_t)row0;
        to->n_groups += section->n_groups;
        row0 += matrix->sections[i]->source.n_rows;
    }
    return true;
}

/* Uploads the biases of a matrix in the order of its rows. `interleaved` is that of upload_matrix;
 * in R16 the rows of sections are never interleaved. *to is NULL if there are no biases. A section
 * without bias gets -0: adding -0 changes no value. */
static bool upload_bias(struct packing *p, const struct pass_matrix *matrix, bool interleaved,
                        const float **to, struct bn_error *err)
{
    *to = NULL;
    if (!has_bias(matrix))
        return true;
    float *bias = mem_alloc(matrix->n_rows, sizeof *bias);
    if (!bias)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu biases", matrix->n_rows);
    size_t row0 = 0;
    for (size_t i = 0; i < matrix->n_sections; i++) {
        const struct linear *section = matrix->sections[i];
        for (size_t r = 0; r < section->source.n_rows; r++) {
            float *at = &bias[interleaved ? 2 * r + i : row0 + r];
            *at = -0.0f;
            if (section->bias.bytes)
                memcpy(at, section->bias.bytes + r * sizeof *at, sizeof *at);
        }
        row0 += section->source.n_rows;
    }
    const CUdeviceptr at = reserve(p, matrix->n_rows * sizeof *bias);
    const bool ok = upload_bytes(p, at, bias, matrix->n_rows * sizeof *bias, err);
    *to = (const float *)(uintptr_t)at;
    mem_free(bias);
    return ok;
}

/* Uploads a matrix in R1-256. With `interleaved`, which needs two sections of the same size, row 2i
 * is row i of section 0, and row 2i + 1 is row i of section 1. */
static bool upload_matrix(struct packing *p, const struct pass_matrix *matrix, bool interleaved,
                          struct linear_args *to, struct bn_error *err)
{
    const size_t row_bytes = r1_lines(matrix->n_cols) * LINE_BYTES;
    const CUdeviceptr at = reserve(p, matrix->n_rows * row_bytes);
    to->lines = (const uint8_t *)(uintptr_t)at;
    to->n_rows = (uint32_t)matrix->n_rows;
    to->n_lines = (uint32_t)r1_lines(matrix->n_cols);
    size_t row0 = 0;
    for (size_t i = 0; i < matrix->n_sections; i++) {
        to->scale[i] = matrix->sections[i]->scales.tensor_scale;
        to->extra[i] = matrix->sections[i]->extra_scale * matrix->factor;
        if (!interleaved && !upload_rows(p, matrix, i, 1, at + row0 * row_bytes, err))
            return false;
        row0 += matrix->sections[i]->source.n_rows;
        if (i < 2)
            to->row_end[i] = (uint32_t)row0; /* not read with interleaved rows */
    }
    if (interleaved && !upload_rows(p, matrix, 0, 2, at, err))
        return false;
    return upload_bias(p, matrix, interleaved, &to->bias, err);
}

/* Uploads a tensor unchanged. *to becomes its device address, or NULL if it does not exist. */
static bool upload_tensor(struct packing *p, const struct tensor_ref *t, const void **to,
                          struct bn_error *err)
{
    *to = NULL;
    if (!t->bytes)
        return true;
    const CUdeviceptr at = reserve(p, t->n_bytes);
    for (size_t i = 0; i < t->n_bytes; i += STAGING_BYTES) {
        const size_t n = size_min(STAGING_BYTES, t->n_bytes - i);
        if (!upload_bytes(p, at + i, t->bytes + i, n, err) ||
            !finish_file_bytes(p, t->bytes + i, n, err))
            return false;
    }
    *to = (const void *)(uintptr_t)at;
    return true;
}

static bool upload_floats(struct packing *p, const struct tensor_ref *t, const float **to,
                          struct bn_error *err)
{
    const void *at;
    if (!upload_tensor(p, t, &at, err))
        return false;
    *to = at;
    return true;
}

static bool upload_unpacked(struct packing *p, const struct tensor_ref *t, struct cuda_unpacked *to,
                            struct bn_error *err)
{
    const void *at;
    if (!upload_tensor(p, t, &at, err))
        return false;
    to->rows = at;
    to->type = t->type;
    return !at || tensor_bytes(t->type, t->n_cols, 1, &to->row_bytes) ||
           bn_fail(err, BN_EUNSUPPORTED, "rows of %zu elements are not whole blocks", t->n_cols);
}

static bool upload_delta(struct packing *p, const struct delta_tensors *from, struct cuda_delta *to,
                         struct bn_error *err)
{
    return upload_floats(p, &from->conv, &to->conv, err) &&
           upload_unpacked(p, &from->alpha, &to->alpha, err) &&
           upload_unpacked(p, &from->beta, &to->beta, err) &&
           upload_floats(p, &from->dt_bias, &to->dt_bias, err) &&
           upload_floats(p, &from->a, &to->a, err) && upload_floats(p, &from->norm, &to->norm, err);
}

static bool upload_layer(struct packing *p, const struct layer *from, struct cuda_layer *to,
                         struct bn_error *err)
{
    struct cuda_matrix *const matrices[PASS_LAYER_MATRICES] = {&to->qkv, &to->o, &to->gate_up,
                                                               &to->down};
    const bool uses_r16 = pass_uses_r16(p->b->model);
    for (size_t kind = 0; kind < PASS_LAYER_MATRICES; kind++) {
        const struct pass_matrix matrix = pass_matrix_of_layer(p->b->model, from, kind);
        struct r16_args *groups = &matrices[kind]->groups;
        const CUdeviceptr before = p->at;
        if (!uses_r16 &&
            !upload_matrix(p, &matrix, kind == PASS_GATE_UP, &matrices[kind]->lines, err))
            return false;
        if (uses_r16 && (!upload_sections(p, &matrix, groups, err) ||
                         !upload_bias(p, &matrix, false, &groups->bias, err)))
            return false;
        if (p->b->model->arch->experts && (kind == PASS_GATE_UP || kind == PASS_DOWN))
            p->b->expert_bytes += (size_t)(p->at - before);
    }
    return upload_floats(p, &from->attn_norm, &to->attn_norm, err) &&
           upload_floats(p, &from->q_norm, &to->q_norm, err) &&
           upload_floats(p, &from->k_norm, &to->k_norm, err) &&
           upload_floats(p, &from->attn_sub_norm, &to->attn_sub_norm, err) &&
           upload_floats(p, &from->ffn_norm, &to->ffn_norm, err) &&
           upload_floats(p, &from->ffn_sub_norm, &to->ffn_sub_norm, err) &&
           upload_floats(p, &from->router, &to->router, err) &&
           upload_delta(p, &from->delta, &to->delta, err);
}

/* Uploads the signs of a rotated file. */
static bool upload_signs(struct packing *p, struct bn_error *err)
{
    const struct file_rotation *r = &p->b->model->rotation;
    const size_t n_bytes = file_rotation_signs(r) * sizeof *r->signs;
    if (n_bytes == 0)
        return true;
    const CUdeviceptr at = reserve(p, n_bytes);
    p->b->signs = (const float *)(uintptr_t)at;
    return upload_bytes(p, at, r->signs, n_bytes, err);
}

static bool upload_all(struct packing *p, struct bn_error *err)
{
    struct backend *b = p->b;
    const struct model *m = b->model;
    const struct pass_matrix ternary_head = pass_matrix_of_head(m);
    const void *embd = NULL, *head;
    size_t n_delta = 0;
    for (size_t i = 0; i < m->hp.n_layers; i++) {
        b->layers[i].delta.state_at = n_delta * delta_state_floats(&m->hp.delta);
        n_delta += m->layers[i].traits.is_delta_net;
        if (!upload_layer(p, &m->layers[i], &b->layers[i], err))
            return false;
    }
    b->layer_bytes = (size_t)(p->at - b->weights);
    if (!upload_floats(p, &m->output_norm, &b->output_norm, err) || !upload_signs(p, err) ||
        (!m->ternary_embd.bytes && !upload_tensor(p, &m->embd, &embd, err)))
        return false;
    head = embd;
    b->embd = embd;
    if (m->head_linear.source.bytes)
        return upload_sections(p, &ternary_head, &b->ternary_head.groups, err);
    if (!m->tied && !upload_tensor(p, &m->head, &head, err))
        return false;
    b->head = head;
    const size_t n_blocks = b->shape.n_coarse;
    return n_blocks == 0 || cuda_head_pack(b, p->at, n_blocks, err);
}

/* Sums up the bytes for which finish_file_bytes is called, and finds the most columns of a matrix
 * of a layer. */
static void measure_file(struct packing *p, size_t *max_cols)
{
    const struct model *m = p->b->model;
    /* A ternary embedding is not uploaded: a pass decodes its rows on the host. A ternary head is
     * packed and uploaded also if it is the same tensor as the embedding. */
    const bool uploads_embd = !m->ternary_embd.bytes;
    const bool uploads_head = m->head_linear.source.bytes || !m->tied;
    p->total_bytes = m->output_norm.n_bytes + (uploads_embd ? m->embd.n_bytes : 0) +
                     (uploads_head ? m->head.n_bytes : 0);
    const struct tensor_ref *small[PASS_SMALL_TENSORS];
    *max_cols = 0;
    for (size_t i = 0; i < m->hp.n_layers; i++) {
        const struct layer *l = &m->layers[i];
        pass_small_tensors(l, small);
        for (size_t k = 0; k < PASS_SMALL_TENSORS; k++)
            p->total_bytes += small[k]->n_bytes;
        for (size_t kind = 0; kind < PASS_LAYER_MATRICES; kind++) {
            const struct pass_matrix matrix = pass_matrix_of_layer(m, l, kind);
            for (size_t section = 0; section < matrix.n_sections; section++) {
                p->total_bytes += matrix.sections[section]->source.n_bytes;
                *max_cols = size_max(*max_cols, matrix.sections[section]->source.n_cols);
            }
        }
    }
}

bool cuda_pack_model(struct backend *b, const struct backend_control *control, struct bn_error *err)
{
    struct cuda_driver *d = &b->device.driver;
    struct packing p = {.b = b, .control = control};
    size_t n_bytes, max_cols;
    CUdeviceptr weights = 0; /* b->weights is set after success: it is memory to free */
    /* cuda_weight_bytes cannot fail here: cuda_plan_bytes has called it before. */
    if (!cuda_weight_bytes(b->model, b->cfg.head, &n_bytes) ||
        !cuda_ok(d, d->cuMemAlloc(&weights, n_bytes), "GPU memory for weights", err))
        return false;
    b->weights = weights;
    measure_file(&p, &max_cols);
    p.at = weights;
    p.end = weights + n_bytes;
    p.staging_bytes = /* 4 codes per byte */
        size_max(STAGING_BYTES, 2 * R1_PACK_ROWS * size_round_up(max_cols, LINE_COLS) / 4);
    p.staging = mem_alloc(p.staging_bytes, 1);
    p.codes = mem_alloc(R1_PACK_ROWS, max_cols);
    b->layers = mem_alloc(b->model->hp.n_layers, sizeof *b->layers);
    const bool ok = p.staging && p.codes && b->layers
                        ? upload_all(&p, err)
                        : bn_fail(err, BN_ENOMEM, "no memory to pack the weights");
    mem_free(p.staging);
    mem_free(p.codes);
    return ok;
}
