/*
 * The output head at eight bits: a copy of its rows as Q8_0, made when the backend opens with
 * --head q8, an approximation. Each block of 32 has the scale (largest magnitude / 127) in F16;
 * elements are rounded to nearest, half to even. Plain C, so every machine makes the same bytes.
 */
#include "engine/base/fp16.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_head.h"
#include "engine/cpu/cpu_work.h"

#include <math.h>
#include <string.h>

#define BLOCK_COLS 32
#define BLOCK_BYTES 34 /* an F16 and 32 bytes */
#define STEP_ROWS 1024 /* rows between two reads of the cancel flag */

enum tensor_type head_type(const struct model *m, enum bn_head_mode head)
{
    const enum tensor_type type = m->head.type;
    const bool is_float = tensor_geometries[type].is_float;
    return head == BN_HEAD_Q8 && is_float ? TENSOR_Q8_0 : type;
}

bool head_copy_bytes(const struct model *m, enum bn_head_mode head, size_t *n_bytes)
{
    *n_bytes = 0;
    return head_type(m, head) == m->head.type ||
           tensor_bytes(TENSOR_Q8_0, m->hp.n_embd, m->hp.n_vocab, n_bytes);
}

static void make_block(const float *x, uint8_t *out)
{
    float most = 0.0f;
    for (size_t i = 0; i < BLOCK_COLS; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    const uint16_t half = f32_to_f16(most / 127.0f);
    const float scale = f16_to_f32(half), inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    memcpy(out, &half, sizeof half);
    for (size_t i = 0; i < BLOCK_COLS; i++) {
        const float y = rintf(x[i] * inverse);
        out[2 + i] = (uint8_t)(int8_t)(y > 127.0f ? 127.0f : y >= -127.0f ? y : -127.0f);
    }
}

/* Shared by the threads that make the copy. */
struct copy_job {
    struct backend *b;
    const struct backend_control *control;
    uint8_t *rows; /* (n_vocab, head_row_bytes) */
    float *wide;   /* (n_threads, wide_stride) */
    size_t wide_stride;
    atomic_bool stop;
};

static bool is_cancelled(const struct copy_job *c)
{
    const atomic_bool *cancel = c->control->cancel;
    return cancel && atomic_load_explicit(cancel, memory_order_relaxed);
}

static void copy_on_thread(void *ud, size_t index, size_t n_threads)
{
    struct copy_job *c = ud;
    const struct backend *b = c->b;
    const struct tensor_ref *from = &b->model->head;
    const size_t n_embd = b->model->hp.n_embd, row_bytes = from->n_bytes / b->model->hp.n_vocab;
    const struct work_range ids = work_range_of(b->model->hp.n_vocab, ROW_UNIT, index, n_threads);
    float *wide = c->wide + index * c->wide_stride;
    for (size_t id = ids.begin; id < ids.end; id++) {
        if ((id - ids.begin) % STEP_ROWS == 0 && is_cancelled(c)) {
            atomic_store(&c->stop, true);
            return;
        }
        b->k.row_decode[from->type](from->bytes + id * row_bytes, n_embd, wide);
        for (size_t i = 0; i < n_embd; i += BLOCK_COLS)
            make_block(wide + i,
                       c->rows + id * b->shape.head_row_bytes + i / BLOCK_COLS * BLOCK_BYTES);
    }
    if (b->cfg.file_mapped && ids.end > ids.begin)
        mem_file_drop(from->bytes + ids.begin * row_bytes, (ids.end - ids.begin) * row_bytes);
}

bool head_copy_open(struct backend *b, const struct backend_control *control, struct bn_error *err)
{
    const struct model *m = b->model;
    size_t n_bytes;
    if (!head_copy_bytes(m, b->cfg.head, &n_bytes))
        return bn_fail(err, BN_EUNSUPPORTED, "an output head of %zu rows is too large",
                       m->hp.n_vocab);
    if (n_bytes == 0)
        return true;
    struct copy_job c = {
        .b = b, .control = control, .wide_stride = size_round_up(m->hp.n_embd, ROW_UNIT)};
    c.wide = mem_alloc(b->n_threads * c.wide_stride, sizeof *c.wide);
    if (!c.wide || !mem_map_open(&b->head_map, n_bytes, MEM_PAGES_HUGE)) {
        mem_free(c.wide);
        return bn_fail(err, BN_ENOMEM, "no memory for an output head of %zu bytes", n_bytes);
    }
    c.rows = b->head_map.ptr;
    team_run(b->n_threads, strategy_load_threads(m->head.n_bytes, b->n_threads), copy_on_thread,
             &c);
    mem_free(c.wide);
    if (atomic_load(&c.stop))
        return bn_fail(err, BN_ECANCELLED, "loading was cancelled");
    b->head.type = TENSOR_Q8_0;
    b->head.bytes = c.rows;
    b->head.n_bytes = n_bytes;
    return true;
}
