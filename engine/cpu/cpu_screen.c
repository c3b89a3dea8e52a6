/*
 * The screened head in a pass. The coarse plane gives an upper bound of each logit. For HEAD_TOP,
 * first the rows with the highest bounds are multiplied, several times k of them. The k-th best of
 * these is a floor: the true k-th best is not lower, so a row with a bound below the floor cannot
 * be a candidate. With a gap, the floor is at most the best of these minus the gap. Rows whose
 * bound reaches the floor are multiplied exactly as without the plane, so cpu_pick.c finds the same
 * candidates.
 *
 * Each thread decides for its part of the vocabulary. If more than half of its rows reach the
 * floor, it multiplies all of them in order, as without the plane.
 */
#include "engine/cpu/cpu_screen.h"

#include "engine/base/fp16.h"
#include "engine/base/noise.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_pick.h"
#include "engine/cpu/cpu_work.h"
#include "engine/layout/coarse_code.h"
#include "engine/layout/fixed_point.h"

#include <math.h>
#include <string.h>

#define MAX_K 1024 /* with more candidates too many rows are left: see is_screened */
/* Rows of the plane at a time. Several hidden states use the same rows in turn, which should stay
 * in the second-level cache: 256 rows at width 2560 are 0.3 MB. */
#define PLANE_ROWS_ONE 8192
#define PLANE_ROWS_MANY 256
/* Rows that all threads together multiply first: so many for each requested candidate, which makes
 * the floor almost exact, but at least LEAD_MIN. */
#define LEAD_PER_K 8
#define LEAD_MIN 32
#define LIST_ROWS 256 /* rows multiplied in one call: many, as its first rows are not prefetched */
#define DRAW_ROWS 8   /* the same for a draw; fewer, because each result can exclude more rows */
_Static_assert(LIST_ROWS <= LEAD_ROWS && LIST_ROWS <= MATMUL_TOKENS * PANEL_ROWS,
               "cpu_thread.ids and .y hold a list");
_Static_assert(MAX_K < LEAD_ROWS, "cpu_thread.picks holds a heap");
_Static_assert(HEAD_PASS_ROWS <= COARSE_STATES, "the requested rows fit a coarse_states");

/* ---- the hidden state ---- */

static float largest_of(const float *h, size_t n)
{
    uint32_t largest = 0; /* compared as bits, in which a NaN is above infinity */
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = f32_bits(h[i]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    return f32_from_bits(largest);
}

/* Split a block into rint(h / unit) = 128 high + low, with low in -64 .. 63, and write x (high,
 * then 2 low) and fix of struct coarse_query. */
static struct block_norms split_block(const float *h, size_t n, double unit, int8_t *x,
                                      int32_t *fix)
{
    struct block_norms norms = {0};
    memset(x, 0, 2 * COARSE_COLS);
    memset(fix, 0, 16 * sizeof *fix);
    for (size_t j = 0; j < n; j++) {
        const int32_t v = (int32_t)rint((double)h[j] / unit);
        const int32_t high = (v + 64) >> 7;
        const double error = (double)h[j] - (double)v * unit;
        x[j] = (int8_t)high;
        x[COARSE_COLS + j] = (int8_t)(2 * (v - 128 * high));
        fix[j % 64 / 4] -= 15 * v;
        norms.h2 += (double)h[j] * (double)h[j];
        norms.error2 += error * error;
    }
    return norms;
}

/* Write s of each block, see docs/kernels.md, "The head, screened". The first round sums a^2 and
 * c^2 for theta, the second one writes. */
static void spread_of(const struct block_norms *norms, size_t n_blocks, size_t n_embd,
                      size_t n_vocab, float *spread)
{
    const double root = sqrt((double)COARSE_COLS);
    const double kappa = sqrt(2.0 * (log((double)n_vocab) + 40.0 * log(2.0)));
    const double gamma = ((double)n_embd / 64.0 + (double)n_blocks + 64.0) * 0x1p-23;
    double a2 = 0.0, c2 = 0.0;
    for (int round = 0; round < 2; round++)
        for (size_t b = 0; b < n_blocks; b++) {
            const double h = sqrt(norms[b].h2), error = sqrt(norms[b].error2);
            const double a = kappa * h;
            const double c = sqrt((double)n_blocks) * root *
                             (15.0 * (error + gamma * (2.0 * h + error)) + 0x1p-14 * h);
            if (round == 0) {
                a2 += a * a;
                c2 += c * c;
            } else {
                const double theta = sqrt(c2 / a2); /* both are above 0, since h is not zero */
                spread[b] =
                    (float)(1.01 * sqrt((1.0 + theta) * a * a + (1.0 + 1.0 / theta) * c * c));
            }
        }
}

/* Whether the plane is used for a request. With a k above MAX_K or above a sixteenth of the
 * vocabulary, so many rows are left that reading the plane first would not pay. */
static bool is_screened(const struct backend *b, const struct head_request *head)
{
    if (b->coarse.n_blocks == 0)
        return false;
    return head->kind == HEAD_GUMBEL || (head->kind == HEAD_TOP && head->k > 0 &&
                                         head->k <= size_min(MAX_K, b->model->hp.n_vocab / 16));
}

void screen_query(const struct backend *b, size_t i, struct requested_row *req)
{
    const size_t n_embd = b->model->hp.n_embd, n_blocks = b->coarse.n_blocks;
    const float *h = b->scratch.head_x + i * b->shape.widths.h_stride;
    const float largest = largest_of(h, n_embd);
    req->screened =
        is_screened(b, req->request) && largest >= COARSE_X_MIN && largest <= COARSE_X_MAX;
    if (!req->screened)
        return;
    int8_t *x = b->scratch.coarse_x + i * n_blocks * 2 * COARSE_COLS;
    int32_t *fix = b->scratch.coarse_fix + i * n_blocks * 16;
    float *spread = b->scratch.coarse_spread + i * b->coarse.step_stride;
    struct block_norms *norms = b->scratch.coarse_norms + i * n_blocks;
    req->query = (struct coarse_query){x, fix, spread, (float)((double)largest / FIXED_POINT_MAX)};
    const double unit = (double)req->query.unit;
    for (size_t j = 0; j < n_blocks; j++)
        norms[j] = split_block(h + j * COARSE_COLS, size_min(COARSE_COLS, n_embd - j * COARSE_COLS),
                               unit, x + 2 * COARSE_COLS * j, fix + 16 * j);
    memset(spread, 0, b->coarse.step_stride * sizeof *spread);
    spread_of(norms, n_blocks, n_embd, b->model->hp.n_vocab, spread);
}

/* ---- rows ---- */

/* Add n_rows rows of the output head to the bytes that the pass has read. */
static void count_head_bytes(const struct cpu_thread *th, size_t n_rows)
{
    atomic_fetch_add_explicit(&th->pass->head_bytes, n_rows * th->pass->b->shape.head_row_bytes,
                              memory_order_relaxed);
}

/* The n logits of the rows id0 + ids[j] of the table, or id0 + j if ids is NULL, for the hidden
 * state of requested row i. */
static void multiply_rows(struct cpu_thread *th, size_t i, size_t id0, const int32_t *ids, size_t n,
                          float *z)
{
    const struct backend *b = th->pass->b;
    const struct tensor_ref *head = &b->head;
    const size_t row_bytes = b->shape.head_row_bytes;
    const struct table_rows rows = {head->bytes + id0 * row_bytes, row_bytes, n, ids};
    b->k.rows_dot[head->type](&rows, b->scratch.head_x + i * b->shape.widths.h_stride,
                              b->model->hp.n_embd, z, th->row);
    count_head_bytes(th, n);
}

static bool any_reaches(const float *z, size_t n, float floor)
{
    int any = 0;
    for (size_t i = 0; i < n; i++)
        any |= z[i] >= floor;
    return any != 0;
}

/* ---- HEAD_GUMBEL: each thread for its part of the vocabulary; z holds bounds ---- */

/* Rows that may be the best, multiplied together. Their ids are the first n of th->ids. */
struct draw {
    uint64_t key;
    double beta; /* 1 / temperature */
    size_t n;
    double noise[DRAW_ROWS];
};

static void update_best(struct cpu_thread *th, size_t i, int32_t id, float z, double noisy)
{
    if (noisy > th->best_noisy[i] || (noisy == th->best_noisy[i] && id < th->best_noisy_id[i])) {
        th->best_noisy[i] = noisy;
        th->best_noisy_id[i] = id;
        th->best[i] = z;
    }
}

static void multiply_draw(struct cpu_thread *th, size_t i, struct draw *d)
{
    float z[DRAW_ROWS];
    multiply_rows(th, i, 0, th->ids, d->n, z);
    for (size_t j = 0; j < d->n; j++)
        update_best(th, i, th->ids[j], z[j], (double)z[j] * d->beta + d->noise[j]);
    d->n = 0;
}

static void queue_row(struct cpu_thread *th, size_t i, struct draw *d, size_t id, double noise)
{
    th->ids[d->n] = (int32_t)id;
    d->noise[d->n++] = noise;
    if (d->n == DRAW_ROWS)
        multiply_draw(th, i, d);
}

/* Multiply each row whose bound plus noise could reach the best value so far. All logits are
 * finite, because the weights and the hidden state of a screened row are limited (coarse_code.h).
 * So a part that is not empty has a best id. */
static void screen_draw(struct cpu_thread *th, size_t i, const struct requested_row *req,
                        struct work_range ids)
{
    const struct backend *b = th->pass->b;
    float *z = b->scratch.z + i * b->shape.widths.vocab_stride;
    struct draw d = {.key = noise_key(req->request->seed, req->position),
                     .beta = 1.0 / (double)req->request->temp};
    size_t first = ids.begin;
    th->best_noisy[i] = -INFINITY;
    th->best_noisy_id[i] = -1;
    if (ids.begin == ids.end)
        return;
    for (size_t id = ids.begin; id < ids.end; id++)
        first = z[id] > z[first] ? id : first;
    queue_row(th, i, &d, first, noise_gumbel(d.key, first));
    multiply_draw(th, i, &d);
    for (size_t id = ids.begin; id < ids.end; id++) {
        const double bound = (double)z[id] * d.beta;
        if (id == first || bound + NOISE_GUMBEL_MAX < th->best_noisy[i])
            continue;
        const double noise = noise_gumbel(d.key, id);
        if (bound + noise >= th->best_noisy[i])
            queue_row(th, i, &d, id, noise);
    }
    multiply_draw(th, i, &d);
    z[th->best_noisy_id[i]] = th->best[i]; /* its logit in place of its bound, for finish_gumbel */
}

/* ---- HEAD_TOP ---- */

/* Multiply the rows of this thread with the highest bounds. Their logits, which are also valid
 * bounds, go to z and to this thread's part of scratch.lead; unused elements are -infinity. */
static void screen_lead(struct cpu_thread *th, size_t i, const struct requested_row *req,
                        struct work_range ids)
{
    const struct backend *b = th->pass->b;
    const size_t cap = LEAD_ROWS / th->n_threads, k = req->request->k;
    const size_t most = (size_max(LEAD_PER_K * k, LEAD_MIN) + th->n_threads - 1) / th->n_threads;
    const size_t n = size_min(size_min(most, cap), ids.end - ids.begin);
    float *z = b->scratch.z + i * b->shape.widths.vocab_stride + ids.begin;
    float *lead = b->scratch.lead + i * LEAD_ROWS + th->index * cap;
    for (size_t j = n; j < cap; j++)
        lead[j] = -INFINITY;
    if (n == 0)
        return;
    pick_best(z, ids.end - ids.begin, n, th->picks);
    for (size_t j = 0; j < n; j++)
        th->ids[j] = th->picks[j].id;
    multiply_rows(th, i, ids.begin, th->ids, n, lead);
    for (size_t j = 0; j < n; j++)
        z[th->ids[j]] = lead[j];
}

/* The logit below which no row can be a candidate, -infinity if fewer than k rows were multiplied.
 * Every thread computes it. */
static float lead_floor(struct cpu_thread *th, size_t i, const struct head_request *head)
{
    const size_t n = LEAD_ROWS / th->n_threads * th->n_threads;
    const float *lead = th->pass->b->scratch.lead + i * LEAD_ROWS;
    float best = -INFINITY;
    if (n < head->k) /* never with the present MAX_K, LEAD_ROWS and MAX_THREADS */
        return -INFINITY;
    for (size_t j = 0; j < n; j++)
        best = fmaxf(best, lead[j]);
    pick_best(lead, n, head->k, th->picks);
    const float worst = th->picks[0].logit;
    return head->gap > 0.0f ? fminf(worst, best - head->gap) : worst;
}

/* Write the logits of the n rows of th->ids to z, and raise th->best[i] to the largest. */
static void rescore_list(struct cpu_thread *th, size_t i, size_t n, float *z)
{
    float *logits = th->y[0];
    multiply_rows(th, i, 0, th->ids, n, logits);
    for (size_t j = 0; j < n; j++) {
        z[th->ids[j]] = logits[j];
        th->best[i] = fmaxf(th->best[i], logits[j]);
    }
}

/* Make z of this thread's part exact where the bound reaches the floor, and -infinity elsewhere.
 * False, with z undefined, if more than half of the rows reach it, counted in whole lists. */
static bool rescore_part(struct cpu_thread *th, size_t i, struct work_range ids, float floor,
                         float *z)
{
    const size_t most = (ids.end - ids.begin) / 2;
    size_t n = 0, n_before = 0;
    for (size_t id = ids.begin; id < ids.end; id += ROW_UNIT) {
        const size_t end = size_min(id + ROW_UNIT, ids.end);
        const bool any = any_reaches(z + id, end - id, floor);
        for (size_t j = id; j < end; j++) {
            if (any && z[j] >= floor)
                th->ids[n++] = (int32_t)j;
            else
                z[j] = -INFINITY;
        }
        if (n > LIST_ROWS - ROW_UNIT) {
            n_before += n;
            if (n_before > most)
                return false;
            rescore_list(th, i, n, z);
            n = 0;
        }
    }
    rescore_list(th, i, n, z);
    return true;
}

/* Multiply the ids of the request that have not been multiplied yet. */
static void rescore_ids(struct cpu_thread *th, size_t i, const struct head_request *head,
                        struct work_range ids, float *z)
{
    for (size_t j = 0; j < head->n_ids; j++) {
        const size_t id = (size_t)head->ids[j];
        if (id < ids.begin || id >= ids.end || z[id] != -INFINITY)
            continue;
        th->ids[0] = (int32_t)id;
        rescore_list(th, i, 1, z);
    }
}

void screen_rescore(struct cpu_thread *th, size_t i, const struct requested_row *req)
{
    const struct backend *b = th->pass->b;
    float *z = b->scratch.z + i * b->shape.widths.vocab_stride;
    const struct work_range ids = thread_range(th, b->model->hp.n_vocab, ROW_UNIT);
    const float floor = lead_floor(th, i, req->request);
    th->best[i] = -INFINITY;
    if (rescore_part(th, i, ids, floor, z)) {
        rescore_ids(th, i, req->request, ids, z);
        return;
    }
    multiply_rows(th, i, ids.begin, NULL, ids.end - ids.begin, z + ids.begin);
    th->best[i] = -INFINITY;
    for (size_t id = ids.begin; id < ids.end; id++)
        th->best[i] = z[id] > th->best[i] ? z[id] : th->best[i];
}

/* ---- bounds ---- */

/* Collect the screened rows in the panel buffer of this thread, which is large enough: a panel has
 * 128 bytes per column, the states need 33 per column and 64 more. Sets bounds[j] to z of the j-th
 * screened row. */
static struct coarse_states gather_states(struct cpu_thread *th, const struct requested_row *reqs,
                                          size_t n_reqs, float **bounds)
{
    const struct backend *b = th->pass->b;
    const size_t n_blocks = b->coarse.n_blocks;
    int8_t *x = (int8_t *)th->panel;
    int32_t *fix = (int32_t *)(void *)(x + n_blocks * 2 * COARSE_COLS * COARSE_STATES);
    float *spread2 = (float *)(void *)(fix + n_blocks * COARSE_STATES);
    float *unit = spread2 + n_blocks * COARSE_STATES;
    const int8_t *from[COARSE_STATES] = {NULL};
    size_t n = 0;
    memset(fix, 0, (2 * n_blocks + 1) * COARSE_STATES * sizeof *fix); /* also spread2 and unit */
    for (size_t i = 0; i < n_reqs; i++) {
        const struct coarse_query *q = &reqs[i].query;
        if (!reqs[i].screened)
            continue;
        for (size_t j = 0; j < n_blocks * 16; j++)
            fix[j / 16 * COARSE_STATES + n] += q->fix[j];
        for (size_t j = 0; j < n_blocks; j++)
            spread2[j * COARSE_STATES + n] = fmaxf(q->spread[j] * q->spread[j], COARSE_MIN);
        unit[n] = q->unit;
        from[n] = q->x;
        bounds[n++] = b->scratch.z + i * b->shape.widths.vocab_stride;
    }
    b->k.coarse_gather(from, n, n_blocks, x);
    return (struct coarse_states){n, x, fix, spread2, unit};
}

static void bound_together(struct cpu_thread *th, const struct requested_row *reqs, size_t n_reqs,
                           struct work_range ids)
{
    const struct backend *b = th->pass->b;
    float *bounds[COARSE_STATES] = {NULL};
    const struct coarse_states states = gather_states(th, reqs, n_reqs, bounds);
    for (size_t i = 0; i < states.n; i++)
        bounds[i] += ids.begin;
    b->k.coarse_bound_states(&b->coarse, ids.begin, ids.end, &states, bounds);
}

/* Compute the bounds of one hidden state after the other, on n_rows of the plane at a time. */
static void bound_each(struct cpu_thread *th, const struct requested_row *reqs, size_t n_reqs,
                       struct work_range ids, size_t n_rows)
{
    const struct backend *b = th->pass->b;
    for (size_t id = ids.begin; id < ids.end; id += n_rows)
        for (size_t i = 0; i < n_reqs; i++)
            if (reqs[i].screened)
                b->k.coarse_bound(&b->coarse, id, size_min(id + n_rows, ids.end), &reqs[i].query,
                                  b->scratch.z + i * b->shape.widths.vocab_stride + id);
}

void screen_bounds(struct cpu_thread *th, const struct requested_row *reqs, size_t n_reqs)
{
    const struct backend *b = th->pass->b;
    const struct work_range ids = thread_range(th, b->model->hp.n_vocab, ROW_UNIT);
    size_t n_screened = 0;
    for (size_t i = 0; i < n_reqs; i++)
        n_screened += reqs[i].screened;
    if (n_screened == 0)
        return;
    if (n_screened >= b->k.coarse_states_from)
        bound_together(th, reqs, n_reqs, ids);
    else
        bound_each(th, reqs, n_reqs, ids, n_screened == 1 ? PLANE_ROWS_ONE : PLANE_ROWS_MANY);
    for (size_t i = 0; i < n_reqs; i++) {
        if (reqs[i].screened && reqs[i].request->kind == HEAD_GUMBEL)
            screen_draw(th, i, &reqs[i], ids);
        else if (reqs[i].screened)
            screen_lead(th, i, &reqs[i], ids);
    }
    if (th->index == 0)
        atomic_fetch_add_explicit(&th->pass->head_bytes, b->coarse_bytes, memory_order_relaxed);
}
