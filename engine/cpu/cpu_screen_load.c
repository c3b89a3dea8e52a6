/*
 * Makes the coarse plane of the output head when the backend opens. Each thread converts the rows
 * that it will read, in steps. After each step progress is reported and file pages are released.
 */
#include "engine/base/size.h"
#include "engine/cpu/cpu_screen.h"
#include "engine/cpu/cpu_work.h"
#include "engine/model/coarse_code.h"
#include "engine/model/head_plane.h"

#include <string.h>

#define STEP_ROWS 2048 /* of a thread: about 10 MB of an F16 table of width 2560 */

_Static_assert(COARSE_COLS == HEAD_PLANE_COLS && LINE_BYTES == HEAD_PLANE_COLS / 2,
               "kernels and head_plane.h have the same plane");

/* Shared by the threads that make the plane. */
struct plane_job {
    struct backend *b;
    const struct backend_control *control;
    uint8_t *lines;
    uint16_t *steps;
    size_t n_blocks;
    float *rows; /* (n_threads, row_stride) */
    size_t row_stride;
    size_t n_done, n_total; /* progress before this function, and at its end */
    atomic_bool too_large;  /* a weight above COARSE_MAX */
    bool stop; /* thread 0 writes it between two barriers, all threads read it afterwards */
    struct cpu_barrier barrier;
};

static void make_rows(struct plane_job *mk, size_t row0, size_t row1, float *row)
{
    const struct backend *b = mk->b;
    const struct model *m = b->model;
    const size_t row_bytes = b->shape.head_row_bytes, stride = head_plane_stride(mk->n_blocks);
    const uint8_t *bytes = m->head.bytes;
    bool too_large = false;
    for (size_t r = row0; r < row1; r++) {
        b->k.row_decode[m->head.type](bytes + r * row_bytes, m->hp.n_embd, row);
        const float worst =
            b->k.coarse_pack(row, mk->n_blocks, r, mk->lines + r * mk->n_blocks * LINE_BYTES,
                             mk->steps + r * stride);
        too_large |= !(worst <= COARSE_MAX); /* also true for a NaN */
    }
    if (too_large)
        atomic_store_explicit(&mk->too_large, true, memory_order_relaxed);
    if (b->cfg.file_mapped && row1 > row0)
        mem_file_drop(bytes + row0 * row_bytes, (row1 - row0) * row_bytes);
}

static void make_on_thread(void *ud, size_t index, size_t n_threads)
{
    struct plane_job *mk = ud;
    const size_t n_vocab = mk->b->model->hp.n_vocab;
    const struct work_range ids = work_range_of(n_vocab, ROW_UNIT, index, n_threads);
    const size_t n_steps = n_vocab / (STEP_ROWS * n_threads) + 1;
    const struct backend_control *control = mk->control;
    for (size_t i = 0; i < n_steps; i++) {
        const struct work_range part = work_range_of(ids.end - ids.begin, 1, i, n_steps);
        make_rows(mk, ids.begin + part.begin, ids.begin + part.end,
                  mk->rows + index * mk->row_stride);
        cpu_barrier_wait(&mk->barrier, n_threads);
        if (index == 0) {
            const size_t n_left = mk->n_total - mk->n_done;
            if (control->progress)
                control->progress(control->ud,
                                  mk->n_done + n_left / n_steps * (i + 1) +
                                      (i + 1 == n_steps ? n_left % n_steps : 0),
                                  mk->n_total);
            mk->stop =
                control->cancel && atomic_load_explicit(control->cancel, memory_order_relaxed);
        }
        cpu_barrier_wait(&mk->barrier, n_threads);
        if (mk->stop)
            return;
    }
}

bool screen_open(struct backend *b, const struct backend_control *control, size_t n_done,
                 size_t n_total, struct bn_error *err)
{
    const size_t n_blocks = b->shape.n_coarse, n_vocab = b->model->hp.n_vocab;
    size_t n_bytes;
    if (n_blocks == 0)
        return true;
    struct plane_job *mk = mem_alloc(1, sizeof *mk);
    const size_t row_stride = n_blocks * COARSE_COLS;
    float *rows = mem_alloc(b->n_threads * row_stride, sizeof *rows);
    bool ok = mk && rows && head_plane_bytes(b->model, n_blocks, &n_bytes) &&
              mem_map_open(&b->coarse_map, n_bytes, MEM_PAGES_HUGE);
    if (!ok) {
        (void)bn_fail(err, BN_ENOMEM, "no memory for the coarse plane of the output head");
        goto end;
    }
    *mk = (struct plane_job){.b = b,
                             .control = control,
                             .lines = b->coarse_map.ptr,
                             .n_blocks = n_blocks,
                             .rows = rows,
                             .row_stride = row_stride,
                             .n_done = n_done,
                             .n_total = n_total};
    mk->steps = (uint16_t *)(void *)(mk->lines + n_vocab * n_blocks * LINE_BYTES);
    team_run(b->n_threads, strategy_load_threads(b->model->head.n_bytes, b->n_threads),
             make_on_thread, mk);
    ok = !mk->stop || bn_fail(err, BN_ECANCELLED, "loading was cancelled");
    if (!ok || atomic_load(&mk->too_large)) {
        screen_close(b);
    } else {
        b->coarse_bytes = n_bytes;
        b->coarse =
            (struct coarse_mat){mk->lines, mk->steps, n_blocks, head_plane_stride(n_blocks)};
    }
end:
    mem_free(rows);
    mem_free(mk);
    return ok;
}

void screen_close(struct backend *b)
{
    mem_map_close(&b->coarse_map);
    b->coarse_map = (struct mem_map){0};
    b->coarse = (struct coarse_mat){0};
}
