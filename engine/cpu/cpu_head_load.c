/*
 * Converts the output head when the backend opens: to the coarse plane of the screened head, or to
 * an approximate copy at eight bits for --head q8. Each thread converts a part of the rows, in
 * rounds. After each round, the pages of the converted rows in a mapped file are released.
 *
 * The copy has type Q8_0: each block of 32 has the scale (largest magnitude / 127) in F16; elements
 * are rounded to nearest, half to even. This is plain C, so every machine makes the same bytes.
 */
#include "engine/cpu/cpu_head_load.h"

#include "engine/base/fp16.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_work.h"
#include "engine/layout/coarse_code.h"
#include "engine/layout/head_plane.h"

#include <math.h>
#include <string.h>

#define ROUND_ROWS 2048 /* most rows of a thread in a round: 10 MB of F16 at width 2560 */
#define Q8_COLS 32

enum tensor_type head_type(const struct model *m, enum bn_head_mode head)
{
    const enum tensor_type type = m->head.type;
    const bool is_copied = tensor_geometries[type].is_float && !m->head_linear.source.bytes;
    return head == BN_HEAD_Q8 && is_copied ? TENSOR_Q8_0 : type;
}

bool head_copy_bytes(const struct model *m, enum bn_head_mode head, size_t *n_bytes)
{
    *n_bytes = 0;
    return head_type(m, head) == m->head.type ||
           tensor_bytes(TENSOR_Q8_0, m->hp.n_embd, m->hp.n_vocab, n_bytes);
}

/* Shared by the threads. */
struct head_job {
    struct backend *b;
    const struct backend_control *control;
    uint8_t *copy; /* (n_vocab, head_row_bytes), NULL: make the plane */
    /* The plane: codes (n_vocab, n_blocks, LINE_BYTES) and steps (n_vocab, step_stride). */
    uint8_t *lines;
    uint16_t *steps;
    size_t n_blocks, step_stride;
    float *rows; /* (n_threads, row_stride) decoded row of each thread, zeros past n_embd */
    size_t row_stride;
    size_t n_done, n_total; /* progress (bytes) before and after this job; equal: not reported */
    atomic_bool too_large;  /* a weight is above COARSE_MAX in magnitude or a NaN */
    bool stop; /* thread 0 writes it between two barriers, all threads read it afterwards */
    struct cpu_barrier barrier;
};

static void copy_row(const float *x, size_t n, uint8_t *out)
{
    for (; n > 0; n -= Q8_COLS, x += Q8_COLS, out += Q8_0_BYTES) { /* rows are whole blocks */
        float most = 0.0f;
        for (size_t i = 0; i < Q8_COLS; i++)
            most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
        const uint16_t half = f32_to_f16(most / 127.0f);
        const float scale = f16_to_f32(half), inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
        memcpy(out, &half, sizeof half);
        for (size_t i = 0; i < Q8_COLS; i++) {
            /* F16 can round the scale down, so |y| can exceed 127. A NaN becomes -127 below. */
            const float y = rintf(x[i] * inverse);
            out[2 + i] = (uint8_t)(int8_t)(y > 127.0f ? 127.0f : y >= -127.0f ? y : -127.0f);
        }
    }
}

static void convert_rows(struct head_job *job, size_t row0, size_t row1, float *row)
{
    const struct backend *b = job->b;
    const struct tensor_ref *from = &b->model->head;
    const size_t n_embd = b->model->hp.n_embd, row_bytes = from->n_bytes / b->model->hp.n_vocab;
    bool too_large = false;
    for (size_t r = row0; r < row1; r++) {
        b->k.row_decode[from->type](from->bytes + r * row_bytes, n_embd, row);
        if (job->copy) {
            copy_row(row, n_embd, job->copy + r * b->shape.head_row_bytes);
            continue;
        }
        const float worst =
            b->k.coarse_pack(row, job->n_blocks, r, job->lines + r * job->n_blocks * LINE_BYTES,
                             job->steps + r * job->step_stride);
        too_large |= !(worst <= COARSE_MAX); /* also true for a NaN */
    }
    if (too_large)
        atomic_store_explicit(&job->too_large, true, memory_order_relaxed);
    if (b->cfg.file_mapped && row1 > row0)
        mem_file_drop(from->bytes + row0 * row_bytes, (row1 - row0) * row_bytes);
}

/* Called by thread 0 after round i of all threads: report progress, for each round the same part of
 * the job's bytes and after the last round the rest, and test the cancel flag. */
static void finish_round(struct head_job *job, size_t i, size_t n_rounds)
{
    const struct backend_control *control = job->control;
    const size_t n_left = job->n_total - job->n_done;
    if (control->progress && n_left > 0)
        control->progress(control->ud,
                          job->n_done + n_left / n_rounds * (i + 1) +
                              (i + 1 == n_rounds ? n_left % n_rounds : 0),
                          job->n_total);
    job->stop = control->cancel && atomic_load_explicit(control->cancel, memory_order_relaxed);
}

static void convert_on_thread(void *ud, size_t index, size_t n_threads)
{
    struct head_job *job = ud;
    const size_t n_vocab = job->b->model->hp.n_vocab;
    const struct work_range ids = work_range_of(n_vocab, ROW_UNIT, index, n_threads);
    const size_t n_rounds = n_vocab / (ROUND_ROWS * n_threads) + 1;
    for (size_t i = 0; i < n_rounds; i++) {
        const struct work_range part = work_range_of(ids.end - ids.begin, 1, i, n_rounds);
        convert_rows(job, ids.begin + part.begin, ids.begin + part.end,
                     job->rows + index * job->row_stride);
        cpu_barrier_wait(&job->barrier, n_threads);
        if (index == 0)
            finish_round(job, i, n_rounds);
        cpu_barrier_wait(&job->barrier, n_threads);
        if (job->stop)
            return;
    }
}

static bool run_job(struct head_job *job, struct bn_error *err)
{
    const struct backend *b = job->b;
    job->row_stride = size_round_up(b->model->hp.n_embd, COARSE_COLS);
    job->rows = mem_alloc(b->n_threads * job->row_stride, sizeof *job->rows);
    if (!job->rows)
        return bn_fail(err, BN_ENOMEM, "no memory to convert the output head");
    team_run(b->n_threads, strategy_load_threads(b->model->head.n_bytes, b->n_threads),
             convert_on_thread, job);
    mem_free(job->rows);
    return !job->stop || bn_fail(err, BN_ECANCELLED, "loading was cancelled");
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
    if (!mem_map_open(&b->head_map, n_bytes, MEM_PAGES_HUGE))
        return bn_fail(err, BN_ENOMEM, "no memory for an output head of %zu bytes", n_bytes);
    struct head_job job = {.b = b, .control = control, .copy = b->head_map.ptr};
    if (!run_job(&job, err))
        return false;
    b->head.type = TENSOR_Q8_0;
    b->head.bytes = job.copy;
    b->head.n_bytes = n_bytes;
    return true;
}

bool screen_open(struct backend *b, const struct backend_control *control, size_t n_done,
                 size_t n_total, struct bn_error *err)
{
    const size_t n_blocks = b->shape.n_coarse, n_vocab = b->model->hp.n_vocab;
    size_t n_bytes;
    if (n_blocks == 0)
        return true;
    if (!head_plane_bytes(b->model, n_blocks, &n_bytes) ||
        !mem_map_open(&b->coarse_map, n_bytes, MEM_PAGES_HUGE))
        return bn_fail(err, BN_ENOMEM, "no memory for the coarse plane of the output head");
    struct head_job job = {.b = b,
                           .control = control,
                           .lines = b->coarse_map.ptr,
                           .n_blocks = n_blocks,
                           .step_stride = head_plane_stride(n_blocks),
                           .n_done = n_done,
                           .n_total = n_total};
    job.steps = (uint16_t *)(void *)(job.lines + n_vocab * n_blocks * LINE_BYTES);
    const bool ok = run_job(&job, err);
    if (!ok || atomic_load(&job.too_large)) {
        screen_close(b);
    } else {
        b->coarse_bytes = n_bytes;
        b->coarse =
            (struct coarse_mat){job.lines, job.steps, n_blocks, job.step_stride, b->k.stream_ahead};
    }
    return ok;
}

void screen_close(struct backend *b)
{
    mem_map_close(&b->coarse_map);
    b->coarse = (struct coarse_mat){0};
}
