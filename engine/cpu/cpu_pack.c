/*
 * Packs the ternary matrices into one anonymous mapping, in the order in which a pass reads them.
 * Each thread packs a part of the rows of each matrix of the file. After each matrix, its pages of
 * a mapped model file are released.
 */
#include "engine/cpu/cpu_pack.h"

#include "engine/base/size.h"
#include "engine/cpu/cpu_head_load.h"
#include "engine/cpu/cpu_pack_columns.h"
#include "engine/cpu/cpu_work.h"
#include "engine/layout/r16_pack.h"

#include <string.h>

#define F16_ONE 0x3c00 /* 1.0 */

/* Whether the down projection is packed by columns, so that a pass of one token can skip the
 * columns whose input is zero. Only squared ReLU gives many zeros, and a rotation leaves hardly
 * any. With columns, passes of several tokens multiply the bytes of the file as lines: these must
 * be I2_S of layout A in whole lines, aligned to 32 bytes. A sum over more columns than MAX_SUMMED
 * could overflow. */
static bool pack_in_columns(const struct model *m, const struct backend_config *cfg,
                            const struct linear *down)
{
    const struct ternary_source *src = &down->source;
    return cfg->skip == BN_SKIP_ON && !down->rotation.block && m->hp.ffn_act == FFN_RELU2 &&
           src->type == TENSOR_I2_S && src->layout == BN_I2S_A && src->n_cols % LINE_COLS == 0 &&
           src->n_cols <= MAX_SUMMED && (uintptr_t)src->bytes % 32 == 0;
}

/* A matrix to be packed. */
struct matrix_job {
    struct pass_matrix matrix;
    bool uses_r16;                                /* R16; otherwise R1-256 */
    struct group_shape groups[PASS_MAX_SECTIONS]; /* of each section, for R16 */
    size_t n_lines;                               /* of a row in R1-256 */
    size_t col_lines; /* lines of a column; 0: the matrix is packed by rows */
    size_t n_bytes;   /* packed */
};

/* The matrices of all layers, then the output head if it is ternary. */
static size_t count_jobs(const struct model *m)
{
    return m->hp.n_layers * PASS_LAYER_MATRICES + (m->head_linear.source.bytes != NULL);
}

static bool set_group_sizes(struct matrix_job *job)
{
    for (size_t i = 0; i < job->matrix.n_sections; i++) {
        const struct linear *l = job->matrix.sections[i];
        if (!group_shape_of(&l->source, &l->scales, &job->groups[i]) ||
            !size_add(&job->n_bytes, job->n_bytes, job->groups[i].n_bytes))
            return false;
    }
    return true;
}

/* Describe matrix number i < count_jobs. False if its size overflows; calls after count_line_bytes
 * in pack_model ignore the result, because count_line_bytes has checked all sizes. */
static bool set_job(struct matrix_job *job, const struct model *m, const struct backend_config *cfg,
                    size_t i)
{
    const bool is_head = i == m->hp.n_layers * PASS_LAYER_MATRICES;
    const struct layer *layer = &m->layers[is_head ? 0 : i / PASS_LAYER_MATRICES];
    const enum pass_matrix_kind kind = i % PASS_LAYER_MATRICES;
    *job = (struct matrix_job){.matrix = is_head ? pass_matrix_of_head(m)
                                                 : pass_matrix_of_layer(m, layer, kind),
                               .uses_r16 = is_head || pass_uses_r16(m)};
    if (job->uses_r16)
        return set_group_sizes(job);
    const size_t n_rows = job->matrix.n_rows, n_cols = job->matrix.n_cols;
    job->n_lines = r1_lines(n_cols);
    if (kind == PASS_DOWN && pack_in_columns(m, cfg, &layer->down))
        job->col_lines = r1_lines(n_rows);
    return size_mul3(&job->n_bytes, job->col_lines ? n_cols : n_rows,
                     job->col_lines ? job->col_lines : job->n_lines, LINE_BYTES);
}

/* Floats of a linear layer: its bias, and its scales if each row has one. */
static size_t linear_floats(const struct linear *l)
{
    return size_round_up(l->bias.n_bytes / sizeof(float), ROW_UNIT) +
           (l->scales.scaling == SCALE_ROW ? size_round_up(l->source.n_rows, ROW_UNIT) : 0);
}

static size_t layer_floats(const struct layer *layer)
{
    const struct linear *linears[] = {&layer->q,    &layer->k,  &layer->v,   &layer->o,
                                      &layer->gate, &layer->up, &layer->down};
    const struct tensor_ref *small[PASS_SMALL_TENSORS];
    size_t n = 0;
    pass_small_tensors(layer, small);
    for (size_t i = 0; i < PASS_SMALL_TENSORS; i++) /* in bytes: alpha and beta may be F16 */
        n += size_round_up(small[i]->n_bytes, MEM_ALIGN) / sizeof(float);
    for (size_t i = 0; i < sizeof linears / sizeof linears[0]; i++)
        n += linear_floats(linears[i]);
    return n;
}

static size_t count_floats(const struct model *m)
{
    size_t n = size_round_up(m->hp.n_embd, ROW_UNIT) + linear_floats(&m->head_linear);
    for (size_t i = 0; i < m->hp.n_layers; i++)
        n += layer_floats(&m->layers[i]);
    return n;
}

static bool count_line_bytes(const struct model *m, const struct backend_config *cfg,
                             size_t *n_bytes)
{
    *n_bytes = 0;
    for (size_t i = 0; i < count_jobs(m); i++) {
        struct matrix_job job;
        if (!set_job(&job, m, cfg, i) || !size_add(n_bytes, *n_bytes, job.n_bytes))
            return false;
    }
    return true;
}

bool pack_bytes(const struct model *m, const struct backend_config *cfg, size_t *n_bytes)
{
    return count_line_bytes(m, cfg, n_bytes) &&
           size_add(n_bytes, *n_bytes, count_floats(m) * sizeof(float));
}

/* Copy an F32 tensor; returns NULL if the model does not have it. Here and below, *at is the next
 * free float and moves on. */
static const float *pack_floats(const struct backend *b, const struct tensor_ref *t, float **at)
{
    if (!t->bytes)
        return NULL;
    float *copy = *at;
    const size_t n = t->n_bytes / sizeof(float);
    b->k.row_decode[TENSOR_F32](t->bytes, n, copy);
    *at += size_round_up(n, ROW_UNIT);
    return copy;
}

/* The scales of a matrix with a scale per row; else NULL. */
static const float *pack_row_scales(const struct backend *b, const struct linear *l, float **at)
{
    if (l->scales.scaling != SCALE_ROW)
        return NULL;
    float *scales = *at;
    ternary_row_scales(&l->source, 0, l->source.n_rows, scales);
    if (b->cfg.file_mapped) /* scales are in every row, so reading them maps the whole tensor */
        mem_file_drop(l->source.bytes, l->source.n_bytes);
    *at += size_round_up(l->source.n_rows, ROW_UNIT);
    return scales;
}

/* A matrix in R16 whose lines begin at `at`. */
static struct r16_mat r16_mat_at(const struct group_shape *g, const uint8_t *at, size_t ahead)
{
    _Alignas(64) static const uint16_t ones[R16_ROWS] = {
        F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE,
        F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE};
    return (struct r16_mat){
        .lines = at,
        .scales = g->has_scales ? (const uint16_t *)(const void *)(at + g->line_bytes) : ones,
        .scale_step = g->has_scales ? R16_ROWS : 0,
        .n_groups = g->n_groups,
        .n_lines = g->n_lines,
        .span_cols = g->span_cols,
        .ahead = ahead,
    };
}

/* Set all but the contents of the lines. Advances *lines and *floats. */
static void set_weights(const struct backend *b, struct weights *w, const struct matrix_job *job,
                        uint8_t **lines, float **floats)
{
    const uint8_t *rows = job->col_lines ? job->matrix.sections[0]->source.bytes : *lines;
    *w = (struct weights){.n_cols = job->matrix.n_cols,
                          .n_sections = job->matrix.n_sections,
                          .rotation = job->matrix.sections[0]->rotation};
    if (!job->uses_r16)
        w->mat = (struct ternary_mat){rows, job->matrix.n_rows, job->n_lines, b->k.stream_ahead};
    if (job->col_lines)
        w->cols = (struct ternary_cols){*lines, job->matrix.n_cols, job->col_lines};
    if (job->uses_r16)
        w->block_cols = pass_block_cols(b->model, &job->matrix);
    size_t row0 = 0;
    for (size_t i = 0; i < job->matrix.n_sections; i++) {
        const struct linear *from = job->matrix.sections[i];
        w->sections[i] = (struct section){.row0 = row0,
                                          .n_rows = from->source.n_rows,
                                          .scale = from->scales.tensor_scale,
                                          .extra = from->extra_scale * job->matrix.factor,
                                          .bias = pack_floats(b, &from->bias, floats),
                                          .group0 = w->n_groups,
                                          .row_scales = pack_row_scales(b, from, floats)};
        row0 += from->source.n_rows;
        if (!job->uses_r16)
            continue;
        w->sections[i].groups = r16_mat_at(&job->groups[i], rows, b->k.stream_ahead);
        w->n_groups += job->groups[i].n_groups;
        rows += job->groups[i].n_bytes;
    }
    *lines += job->n_bytes;
}

/* Bytes of the lines and scales of all experts in a matrix in R16. */
static size_t expert_bytes(const struct weights *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_sections; i++) {
        const struct section *s = &w->sections[i];
        n += s->groups.n_groups * s->groups.n_lines * LINE_BYTES;
        if (s->groups.scale_step > 0)
            n += s->groups.n_groups * (s->groups.n_lines * R16_LINE_COLS / s->groups.span_cols) *
                 R16_ROWS * sizeof *s->groups.scales;
        n += s->row_scales ? s->n_rows * sizeof *s->row_scales : 0;
    }
    return n;
}

/* Copy a small matrix in its own type. */
static struct float_matrix pack_matrix(const struct tensor_ref *t, float **at)
{
    uint8_t *copy = (uint8_t *)*at;
    memcpy(copy, t->bytes, t->n_bytes);
    *at += size_round_up(t->n_bytes, MEM_ALIGN) / sizeof(float);
    return (struct float_matrix){copy, t->n_bytes / t->n_rows, t->type};
}

/* The taps of the convolution, (channels, DELTA_TAPS) in the file, as (DELTA_TAPS, channels). */
static const float *pack_taps(const struct backend *b, const struct tensor_ref *t, float **at)
{
    float *copy = *at, taps[DELTA_TAPS];
    for (size_t i = 0; i < t->n_rows; i++) {
        b->k.row_decode[TENSOR_F32](t->bytes + i * sizeof taps, DELTA_TAPS, taps);
        for (size_t tap = 0; tap < DELTA_TAPS; tap++)
            copy[tap * t->n_rows + i] = taps[tap];
    }
    *at += size_round_up(t->n_bytes, MEM_ALIGN) / sizeof(float);
    return copy;
}

static void set_delta(const struct backend *b, const struct delta_tensors *from,
                      struct cpu_delta *to, float **floats)
{
    to->conv = pack_taps(b, &from->conv, floats);
    to->alpha = pack_matrix(&from->alpha, floats);
    to->beta = pack_matrix(&from->beta, floats);
    to->dt_bias = pack_floats(b, &from->dt_bias, floats);
    to->a = pack_floats(b, &from->a, floats);
    to->norm = pack_floats(b, &from->norm, floats);
}

/* Set b->layers, output_norm and ternary_head. Norms, biases and small matrices are copied here,
 * the contents of the lines follow in pack_lines. */
static void set_layers(struct backend *b)
{
    uint8_t *lines = b->lines.ptr;
    float *floats = b->floats;
    const struct model *m = b->model;
    size_t n_delta = 0, n_rings = 0;
    for (size_t i = 0; i < m->hp.n_layers; i++) {
        const struct layer *from = &m->layers[i];
        struct cpu_layer *to = &b->layers[i];
        struct weights *const weights[PASS_LAYER_MATRICES] = {&to->qkv, &to->o, &to->gate_up,
                                                              &to->down};
        for (size_t kind = 0; kind < PASS_LAYER_MATRICES; kind++) {
            struct matrix_job job;
            (void)set_job(&job, m, &b->cfg, i * PASS_LAYER_MATRICES + kind);
            set_weights(b, weights[kind], &job, &lines, &floats);
        }
        to->attn_norm = pack_floats(b, &from->attn_norm, &floats);
        to->q_norm = pack_floats(b, &from->q_norm, &floats);
        to->k_norm = pack_floats(b, &from->k_norm, &floats);
        to->attn_sub_norm = pack_floats(b, &from->attn_sub_norm, &floats);
        to->ffn_norm = pack_floats(b, &from->ffn_norm, &floats);
        to->ffn_sub_norm = pack_floats(b, &from->ffn_sub_norm, &floats);
        to->router = pack_floats(b, &from->router, &floats);
        if (m->arch->experts)
            b->expert_bytes += expert_bytes(&to->gate_up) + expert_bytes(&to->down);
        to->has_ring = layer_has_ring(&b->shape.ring, from);
        to->kv_index = to->has_ring ? n_rings++ : i - n_delta - n_rings;
        to->delta.index = n_delta;
        if (from->traits.is_delta_net) {
            set_delta(b, &from->delta, &to->delta, &floats);
            n_delta++;
        }
    }
    b->output_norm = pack_floats(b, &m->output_norm, &floats);
    if (m->head_linear.source.bytes) {
        struct matrix_job job;
        (void)set_job(&job, m, &b->cfg, m->hp.n_layers * PASS_LAYER_MATRICES);
        set_weights(b, &b->ternary_head, &job, &lines, &floats);
        b->line_bytes -= job.n_bytes;
    }
}

/* Shared by the threads that pack. */
struct pack_state {
    struct backend *b;
    const struct backend_control *control;
    uint8_t *codes; /* (n_threads, codes_stride) scratch of r1_pack_rows and r16_pack */
    uint8_t *rows;  /* (n_threads, rows_stride) packed rows, for pack_columns */
    size_t codes_stride, rows_stride;
    /* Progress in bytes of the file: of the tensors that are packed so far, and of all tensors to
     * pack, plus the output head if a coarse plane of it is planned. */
    size_t done_bytes, total_bytes;
    atomic_bool failed; /* the first thread that sets it writes err */
    bool stop; /* thread 0 writes it between two barriers, all threads read it afterwards */
    struct bn_error err;
    struct cpu_barrier barrier;
};

/* `lines` is the first byte of the whole matrix, here and in pack_range. */
static bool pack_group_range(struct pack_state *p, const struct matrix_job *job, size_t index,
                             size_t n_threads, uint8_t *lines, struct bn_error *err)
{
    for (size_t i = 0; i < job->matrix.n_sections; i++) {
        const struct linear *l = job->matrix.sections[i];
        const struct group_shape *shape = &job->groups[i];
        const struct work_range groups = work_range_of(shape->n_groups, 1, index, n_threads);
        if (!r16_pack(&l->source, &l->scales, shape, groups.begin, groups.end, lines,
                      p->codes + index * p->codes_stride, err))
            return false;
        lines += shape->n_bytes;
    }
    return true;
}

/* Pack this thread's part of a matrix: some rows or row groups of each section, or some lines of
 * all columns. */
static bool pack_range(struct pack_state *p, const struct matrix_job *job, size_t index,
                       size_t n_threads, uint8_t *lines, struct bn_error *err)
{
    if (job->col_lines) {
        const struct work_range range = work_range_of(job->col_lines, 1, index, n_threads);
        return pack_columns(&job->matrix.sections[0]->source, range.begin, range.end,
                            job->col_lines, lines, p->rows + index * p->rows_stride,
                            p->codes + index * p->codes_stride, err);
    }
    if (job->uses_r16)
        return pack_group_range(p, job, index, n_threads, lines, err);
    const size_t row_bytes = job->n_lines * LINE_BYTES;
    for (size_t i = 0; i < job->matrix.n_sections; i++) {
        const struct ternary_source *src = &job->matrix.sections[i]->source;
        const struct work_range rows = work_range_of(src->n_rows, ROW_UNIT, index, n_threads);
        if (!r1_pack_rows(src, rows.begin, rows.end, lines + rows.begin * row_bytes, row_bytes,
                          p->codes + index * p->codes_stride, err))
            return false;
        lines += src->n_rows * row_bytes;
    }
    return true;
}

/* Called by thread 0 when all threads have packed a matrix: release its file pages, report
 * progress, and decide whether all threads stop. */
static void finish_job(struct pack_state *p, const struct matrix_job *job)
{
    const struct backend_control *control = p->control;
    for (size_t i = 0; i < job->matrix.n_sections; i++) {
        const struct ternary_source *src = &job->matrix.sections[i]->source;
        if (p->b->cfg.file_mapped)
            mem_file_drop(src->bytes, src->n_bytes);
        p->done_bytes += src->n_bytes;
    }
    if (control->progress)
        control->progress(control->ud, p->done_bytes, p->total_bytes);
    if (control->cancel && atomic_load_explicit(control->cancel, memory_order_relaxed) &&
        !atomic_exchange(&p->failed, true))
        (void)bn_fail(&p->err, BN_ECANCELLED, "loading was cancelled");
    p->stop = atomic_load(&p->failed);
}

static void pack_on_thread(void *ud, size_t index, size_t n_threads)
{
    struct pack_state *p = ud;
    const struct model *m = p->b->model;
    uint8_t *lines = p->b->lines.ptr;
    for (size_t i = 0; i < count_jobs(m); i++) {
        struct matrix_job job;
        struct bn_error err;
        (void)set_job(&job, m, &p->b->cfg, i);
        if (!pack_range(p, &job, index, n_threads, lines, &err) &&
            !atomic_exchange(&p->failed, true))
            p->err = err;
        cpu_barrier_wait(&p->barrier, n_threads);
        if (index == 0)
            finish_job(p, &job);
        cpu_barrier_wait(&p->barrier, n_threads);
        if (p->stop)
            return;
        lines += job.n_bytes;
    }
}

static bool pack_lines(struct backend *b, const struct backend_control *control,
                       struct bn_error *err)
{
    struct pack_state *p = mem_alloc(1, sizeof *p);
    if (!p)
        return bn_fail(err, BN_ENOMEM, "no memory to pack the weights");
    *p = (struct pack_state){.b = b, .control = control};
    for (size_t i = 0; i < count_jobs(b->model); i++) {
        struct matrix_job job;
        (void)set_job(&job, b->model, &b->cfg, i);
        if (job.col_lines)
            p->rows_stride = size_max(p->rows_stride, job.n_lines * LINE_COLS * LINE_BYTES);
        for (size_t s = 0; s < job.matrix.n_sections; s++)
            p->total_bytes += job.matrix.sections[s]->source.n_bytes;
    }
    if (b->shape.n_coarse)
        p->total_bytes += b->model->head.n_bytes;
    p->codes_stride = size_round_up(size_max(R1_PACK_ROWS * b->shape.widths.max_cols,
                                             r16_pack_scratch(b->shape.widths.max_cols)),
                                    MEM_ALIGN);
    p->codes = mem_alloc(b->n_threads, p->codes_stride);
    /* Without matrices by column the stride is 0 and p->rows is not used. */
    p->rows = mem_alloc(b->n_threads, size_max(p->rows_stride, 1));
    bool ok = (p->codes && p->rows) || bn_fail(err, BN_ENOMEM, "no memory to pack the weights");
    if (ok) {
        team_run(b->n_threads, strategy_load_threads(p->total_bytes, b->n_threads), pack_on_thread,
                 p);
        ok = !p->failed;
        if (!ok)
            *err = p->err;
        ok = ok && screen_open(b, control, p->done_bytes, p->total_bytes, err) &&
             head_copy_open(b, control, err);
    }
    mem_free(p->rows);
    mem_free(p->codes);
    mem_free(p);
    return ok;
}

bool pack_model(struct backend *b, const struct backend_control *control, struct bn_error *err)
{
    const struct model *m = b->model;
    b->n_floats = count_floats(m);
    b->floats = mem_alloc(b->n_floats, sizeof(float));
    if (!b->floats)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu norms, biases and scales", b->n_floats);
    b->layers = mem_alloc(m->hp.n_layers, sizeof(struct cpu_layer));
    if (!b->layers)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu layers", m->hp.n_layers);
    /* The sum cannot overflow here: the plan has computed it before. */
    if (!count_line_bytes(m, &b->cfg, &b->line_bytes) ||
        !mem_map_open(&b->lines, b->line_bytes, MEM_PAGES_HUGE))
        return bn_fail(err, BN_ENOMEM, "no memory for %zu bytes of weights", b->line_bytes);
    set_layers(b);
    return pack_lines(b, control, err);
}
