/*
 * Tests the kernels of the output head on the twin (the kernels compiled for the host), with both
 * orders of threads: the coarse plane and the bounds equal those of the CPU's reference kernels, no
 * bound is below its logit, and the candidates contain all requested ids with exact logits.
 */
#include "engine/base/fp16.h"
#include "engine/base/noise.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_pick.h"
#include "engine/cpu/ref/kernels_ref.h"
#include "engine/cuda/kernels/args/cuda_args.h"
#include "tests/engine/cuda/twin_kit.h"
#include "tests/support/table_encode.h"

#include <math.h>

/* STEPS: N_BLOCKS, rounded up to a multiple of 8. N_BESTS: VOCAB / BEST_ROWS, rounded up. */
enum { VOCAB = 1500, ROWS = 5, N = 330, N_BLOCKS = 3, STEPS = 8, N_BESTS = 94 };
enum { H_STRIDE = 336 }; /* rows of hidden states are aligned to 64 bytes */
#define N_COLUMNS (N_BLOCKS * COARSE_COLS)
#define FACTOR 0.4f /* of the normed hidden states */

struct head {
    uint8_t *table; /* (VOCAB, N) F32 */
    _Alignas(64) float h[ROWS * H_STRIDE];
    _Alignas(64) float w[N];
    float x[ROWS * N];
    float exact[ROWS * VOCAB], z[ROWS * VOCAB];
    struct cuda_request requests[ROWS];
    struct cuda_found found[ROWS];
    struct cuda_cand bests[ROWS * N_BESTS], cands[ROWS * VOCAB];
    struct coarse_plane plane;
    _Alignas(16) int8_t planes[ROWS * 2 * N_COLUMNS];
    _Alignas(16) int32_t fix[ROWS * N_BLOCKS * COARSE_SUMS];
    float spread[ROWS * STEPS];
    double errors[ROWS * N_COLUMNS], norms[ROWS * N_BLOCKS * 2];
    struct cuda_screen screens[ROWS];
    uint32_t too_large;
};

static struct query_buffers query_of(struct head *h)
{
    return (struct query_buffers){
        .x = h->planes,
        .fix = h->fix,
        .spread = h->spread,
        .errors = h->errors,
        .norms = h->norms,
        .screens = h->screens,
        .n_blocks = N_BLOCKS,
        .step_stride = STEPS,
        .kappa = sqrt(2.0 * (log((double)VOCAB) + 40.0 * log(2.0))),
        .gamma = ((double)N / 64.0 + N_BLOCKS + 64.0) * 0x1p-23,
        .root = sqrt((double)N_BLOCKS) * sqrt((double)COARSE_COLS),
    };
}

static struct dot_args dots_of(struct head *h)
{
    return (struct dot_args){.table = h->table,
                             .x = h->x,
                             .out = {h->z, h->bests, VOCAB, VOCAB, N_BESTS},
                             .found = h->found,
                             .row_bytes = N * sizeof(float),
                             .n = N,
                             .x_stride = N,
                             .n_rows = ROWS,
                             .type = TENSOR_F32};
}

static void run_norm(struct head *h, bool screened, enum twin_order order)
{
    struct head_norm_args a = {.requests = h->requests,
                               .h = h->h,
                               .w = h->w,
                               .x = h->x,
                               .found = h->found,
                               .query = query_of(h),
                               .eps = 1e-6f,
                               .factor = FACTOR,
                               .n = N,
                               .h_stride = H_STRIDE,
                               .stride = N};
    if (!screened)
        a.query.n_blocks = 0;
    launch("head_norm", ROWS, 1, 1, 0, &a, order);
}

static struct coarse_args pack_args(struct head *h)
{
    return (struct coarse_args){.table = h->table,
                                .plane = h->plane,
                                .too_large = &h->too_large,
                                .row_bytes = N * sizeof(float),
                                .n = N,
                                .n_vocab = VOCAB,
                                .type = TENSOR_F32};
}

/* The magnitude of row i is 1 / (i % 7 + 1); some rows are zero, some equal. */
static struct head *open_head(uint32_t seed, enum twin_order order)
{
    struct random r = {seed};
    struct head *h = zeros(1, sizeof *h);
    h->table = zeros(VOCAB * N, sizeof(float));
    float *table = (float *)(void *)h->table;
    for (size_t i = 0; i < VOCAB; i++)
        for (size_t j = 0; j < N; j++)
            table[i * N + j] =
                i % 97 == 5 ? 0.0f
                : i >= 1480 ? (float)(j % 5) * 0.01f
                            : (float)(int)(next_u32(&r) % 2001 - 1000) * 1e-3f / (float)(i % 7 + 1);
    for (size_t i = 0; i < ROWS * N; i++)
        h->h[i / N * H_STRIDE + i % N] = (float)(int)(next_u32(&r) % 2001 - 1000) * 1e-3f;
    for (size_t i = 0; i < N; i++)
        h->w[i] = 0.5f + (float)(next_u32(&r) % 100) * 0.01f;
    for (size_t i = 0; i < ROWS; i++)
        h->requests[i].token = (uint32_t)(ROWS - 1 - i);
    h->plane = (struct coarse_plane){zeros(VOCAB * N_BLOCKS, LINE_BYTES),
                                     zeros(VOCAB * STEPS, sizeof(uint16_t)), N_BLOCKS, STEPS};
    memset(h->plane.steps, 0xa5, VOCAB * STEPS * sizeof(uint16_t));
    const struct coarse_args pack = pack_args(h);
    launch("coarse_pack", (VOCAB + 3) / 4, 1, 1, 0, &pack, order);
    assert_int_equal(h->too_large, 0);
    return h;
}

static void close_head(struct head *h)
{
    FREE_ALL(h->table, h->plane.lines, h->plane.steps, h);
}

static void coarse_plane_matches_the_cpu(void **state)
{
    (void)state;
    struct head *h = open_head(1, TWIN_DESCENDING);
    float *table = (float *)(void *)h->table;
    uint8_t lines[N_BLOCKS * LINE_BYTES];
    table[3] = 1e-37f; /* a tiny weight among large ones */
    /* Row 5 has one weight that is not 0. It is so small that its block has the smallest step. */
    for (size_t j = 0; j < N; j++)
        table[5 * N + j] = j == 9 ? -3e-38f : 0.0f;
    const struct coarse_args again = pack_args(h);
    launch("coarse_pack", (VOCAB + 3) / 4, 1, 1, 0, &again, TWIN_ASCENDING);
    for (size_t i = 0; i < VOCAB; i++) {
        float row[N_COLUMNS] = {0};
        uint16_t steps[STEPS] = {0};
        memcpy(row, table + i * N, N * sizeof *row);
        (void)coarse_pack_ref(row, N_BLOCKS, i, lines, steps);
        assert_same(h->plane.lines + i * sizeof lines, lines, sizeof lines, "a row of the plane");
        assert_same(h->plane.steps + i * STEPS, steps, sizeof steps, "its steps");
    }
    assert_int_equal(h->too_large, 0);
    table[700 * N + 329] = 2e15f;
    launch("coarse_pack", (VOCAB + 3) / 4, 1, 1, 0, &again, TWIN_ASCENDING);
    assert_int_equal(h->too_large, 1);
    h->too_large = 0;
    table[700 * N + 329] = NAN;
    launch("coarse_pack", (VOCAB + 3) / 4, 1, 1, 0, &again, TWIN_ASCENDING);
    assert_int_equal(h->too_large, 1);
    close_head(h);
}

/* Checks x, unit and fix against their definitions, and the norm against the reference. */
static void check_query(struct head *h, size_t i)
{
    float y[N], largest = 0.0f;
    rms_norm_ref(h->h + h->requests[i].token * H_STRIDE, h->w, N, 1e-6f, y);
    for (size_t j = 0; j < N; j++)
        y[j] = y[j] * FACTOR;
    assert_same(h->x + i * N, y, sizeof y, "the final norm");
    for (size_t j = 0; j < N; j++)
        largest = fmaxf(largest, fabsf(y[j]));
    const float unit = (float)((double)largest / 16256.0);
    assert_true(h->screens[i].screened && h->screens[i].unit == unit);
    for (size_t b = 0; b < N_BLOCKS; b++) {
        int32_t fix[COARSE_SUMS] = {0};
        const int8_t *planes = h->planes + (i * N_BLOCKS + b) * 2 * COARSE_COLS;
        for (size_t j = 0; j < COARSE_COLS; j++) {
            const size_t c = b * COARSE_COLS + j;
            const int32_t v = c < N ? (int32_t)rint((double)y[c] / (double)unit) : 0;
            assert_int_equal(2 * v, 256 * planes[j] + planes[COARSE_COLS + j]);
            fix[j % 64 / 4] -= 15 * v;
        }
        assert_same(h->fix + (i * N_BLOCKS + b) * COARSE_SUMS, fix, sizeof fix, "fix");
        assert_true(h->spread[i * STEPS + b] > 0.0f);
    }
    for (size_t b = N_BLOCKS; b < STEPS; b++)
        assert_true(h->spread[i * STEPS + b] == 0.0f);
}

/* Checks the query of y (n) against plain loops over its definitions in docs/kernels.md. */
static void check_query_of(const struct query_buffers *q, const float *y, size_t n, float largest)
{
    const double unit = (double)q->screens[0].unit, step = sqrt((double)q->n_blocks);
    double *a = zeros(q->n_blocks, sizeof *a), *c = zeros(q->n_blocks, sizeof *c);
    double a2 = 0.0, c2 = 0.0;
    assert_true(q->screens[0].screened && q->screens[0].unit == (float)((double)largest / 16256.0));
    for (size_t b = 0; b < q->n_blocks; b++) {
        int32_t fix[COARSE_SUMS] = {0};
        double h2 = 0.0, error2 = 0.0;
        for (size_t j = 0; j < COARSE_COLS && b * COARSE_COLS + j < n; j++) {
            const double h = (double)y[b * COARSE_COLS + j];
            const int32_t v = (int32_t)rint(h / unit);
            const int8_t *x = q->x + b * 2 * COARSE_COLS + j;
            assert_int_equal(2 * v, 256 * x[0] + x[COARSE_COLS]);
            fix[j % 64 / 4] -= 15 * v;
            h2 += h * h;
            error2 += (h - (double)v * unit) * (h - (double)v * unit);
        }
        assert_same(q->fix + b * COARSE_SUMS, fix, sizeof fix, "fix");
        const double h = sqrt(h2), missed = sqrt(error2);
        a[b] = q->kappa * h;
        c[b] = step * sqrt((double)COARSE_COLS) *
               (15.0 * (missed + q->gamma * (2.0 * h + missed)) + 0x1p-14 * h);
        a2 += a[b] * a[b];
        c2 += c[b] * c[b];
    }
    const double theta = sqrt(c2 / a2);
    for (size_t b = 0; b < q->step_stride; b++) {
        const float s = b < q->n_blocks ? (float)(1.01 * sqrt((1.0 + theta) * a[b] * a[b] +
                                                              (1.0 + 1.0 / theta) * c[b] * c[b]))
                                        : 0.0f;
        assert_same(&q->spread[b], &s, sizeof s, "the spread of a block");
    }
    FREE_ALL(a, c);
}

/* All values of the hidden state are 1. RMSNorm divides them by their root mean square, which is 1,
 * and multiplies them by the weights w, so the normed state equals w. `largest` is the largest
 * magnitude in w. It determines the unit, the step of the quantised values: 1 for 16256. Then
 * weights that end in .5 lie halfway between two values. */
static void check_long_query(size_t n, float largest, struct random *r, enum twin_order order)
{
    const size_t n_blocks = (n + COARSE_COLS - 1) / COARSE_COLS, stride = (n_blocks + 7) / 8 * 8;
    float *h = zeros(n, sizeof *h), *w = zeros(n, sizeof *w), *x = zeros(n, sizeof *x);
    const struct cuda_request request = {.k = 1};
    struct cuda_found *found = zeros(1, sizeof *found);
    struct cuda_screen screen;
    const struct query_buffers q = {.x = zeros(n_blocks, 2 * COARSE_COLS),
                                    .fix = zeros(n_blocks, COARSE_SUMS * sizeof(int32_t)),
                                    .spread = zeros(stride, sizeof(float)),
                                    .errors = zeros(n_blocks, COARSE_COLS * sizeof(double)),
                                    .norms = zeros(n_blocks, 2 * sizeof(double)),
                                    .screens = &screen,
                                    .n_blocks = (uint32_t)n_blocks,
                                    .step_stride = (uint32_t)stride,
                                    .kappa = 9.0,
                                    .gamma = ((double)n / 64.0 + (double)n_blocks + 64.0) * 0x1p-23,
                                    .root = sqrt((double)n_blocks) * sqrt((double)COARSE_COLS)};
    for (size_t i = 0; i < n; i++) {
        h[i] = 1.0f;
        w[i] = (float)((int)(next_u32(r) % 32001) - 16000) * 0.5f;
        w[i] = i % 5 == 3 ? nextafterf(w[i], 0.0f) : i % 5 == 4 ? nextafterf(w[i], 9e9f) : w[i];
        w[i] = w[i] * (largest / 16256.0f);
    }
    w[n / 2] = -largest;
    const struct head_norm_args a = {.requests = &request,
                                     .h = h,
                                     .w = w,
                                     .x = x,
                                     .found = found,
                                     .query = q,
                                     .eps = 0.0f,
                                     .factor = 1.0f,
                                     .n = (uint32_t)n,
                                     .h_stride = (uint32_t)n,
                                     .stride = (uint32_t)n};
    launch("head_norm", 1, 1, 1, 0, &a, order);
    assert_same(x, w, n * sizeof *x, "the normed state");
    check_query_of(&q, w, n, largest);
    FREE_ALL(h, w, x, found, q.x, q.fix, q.spread, q.errors, q.norms);
}

/* The working memory is in shared memory for up to 2,688 elements, the state for up to 8,192. */
static void queries_of_long_states_match_their_definition(void **state)
{
    (void)state;
    struct random r = {70};
    static const size_t lengths[] = {1, 100, 2560, 2562, 2800, 5000, 8192, 8300};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (int tie = 0; tie < 2; tie++)
            check_long_query(lengths[i], tie ? 16256.0f : 3.7f, &r,
                             i % 2 ? TWIN_DESCENDING : TWIN_ASCENDING);
}

static void run_bounds(struct head *h, bool few, enum twin_order order)
{
    const struct bound_args a = {h->plane, query_of(h), dots_of(h).out, ROWS};
    memset(h->z, 0xa5, sizeof h->z);
    memset(h->bests, 0xa5, sizeof h->bests);
    launch(few ? "coarse_bound_few" : "coarse_bound_one", (VOCAB + BOUND_ROWS - 1) / BOUND_ROWS,
           few ? (ROWS + HEAD_ROWS - 1) / HEAD_ROWS : ROWS, 1, 0, &a, order);
}

static void find_exact(struct head *h)
{
    row_decode_fn decode[TENSOR_N_TYPES];
    rows_dot_fn dot[TENSOR_N_TYPES];
    float row[N];
    row_kernels_ref(decode, dot);
    const struct table_rows rows = {(const uint8_t *)h->table, N * sizeof(float), VOCAB, NULL};
    for (size_t i = 0; i < ROWS; i++)
        dot[TENSOR_F32](&rows, h->x + i * N, N, h->exact + i * VOCAB, row);
}

static void check_bests(const struct head *h)
{
    for (size_t i = 0; i < ROWS * N_BESTS; i++) {
        const struct cuda_cand c = h->bests[i];
        const size_t first = i % N_BESTS * BEST_ROWS;
        const float *z = h->z + i / N_BESTS * VOCAB;
        assert_true((size_t)c.id >= first && c.id < VOCAB && z[c.id] == c.logit);
        for (size_t j = first; j < VOCAB && j < first + BEST_ROWS; j++)
            assert_true(z[j] <= c.logit);
    }
}

static void bounds_match_the_cpu_and_hold(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        const enum twin_order order = round % 2 ? TWIN_DESCENDING : TWIN_ASCENDING;
        struct head *h = open_head(10 + (uint32_t)round, order);
        const struct coarse_mat mat = {h->plane.lines, h->plane.steps, N_BLOCKS, STEPS, 0};
        float up[VOCAB];
        run_norm(h, true, order);
        run_bounds(h, round / 2, order);
        find_exact(h);
        for (size_t i = 0; i < ROWS; i++) {
            check_query(h, i);
            const struct coarse_query q = {h->planes + i * 2 * N_COLUMNS,
                                           h->fix + i * N_BLOCKS * COARSE_SUMS,
                                           h->spread + i * STEPS, h->screens[i].unit};
            coarse_bound_ref(&mat, 0, VOCAB, &q, up);
            assert_same(h->z + i * VOCAB, up, sizeof up, "a bound");
            for (size_t j = 0; j < VOCAB; j++)
                assert_true(up[j] >= h->exact[i * VOCAB + j]);
        }
        check_bests(h);
        close_head(h);
    }
}

/* Random planes and queries of n_blocks blocks: numbers of blocks that are no multiple of what a
 * kernel copies at once, and of rows that are no multiple of what a warp has. */
static void check_random_bounds(uint32_t n_blocks, struct random *r, enum twin_order order)
{
    enum { LONG_VOCAB = 85, QUERIES = 5 };
    const uint32_t stride = (n_blocks + 7) / 8 * 8;
    struct coarse_plane plane = {zeros(LONG_VOCAB * n_blocks, LINE_BYTES),
                                 zeros((size_t)LONG_VOCAB * stride, 2), n_blocks, stride};
    struct cuda_screen screens[QUERIES];
    struct query_buffers q = {.x = zeros((size_t)QUERIES * n_blocks, 2 * COARSE_COLS),
                              .fix = zeros((size_t)QUERIES * n_blocks, COARSE_SUMS * 4),
                              .spread = zeros((size_t)QUERIES * stride, sizeof(float)),
                              .screens = screens,
                              .n_blocks = n_blocks,
                              .step_stride = stride};
    float z[QUERIES * LONG_VOCAB], up[LONG_VOCAB];
    struct cuda_cand bests[QUERIES * 6];
    for (size_t i = 0; i < (size_t)LONG_VOCAB * n_blocks * LINE_BYTES; i++)
        plane.lines[i] = (uint8_t)next_u32(r);
    for (size_t i = 0; i < (size_t)LONG_VOCAB * stride; i++)
        plane.steps[i] = i % stride < n_blocks ? (uint16_t)(0x3c00 + next_u32(r) % 256) : 0;
    for (size_t i = 0; i < (size_t)QUERIES * n_blocks * 2 * COARSE_COLS; i++)
        q.x[i] = (int8_t)next_u32(r);
    for (size_t i = 0; i < (size_t)QUERIES * n_blocks * COARSE_SUMS; i++)
        q.fix[i] = (int32_t)(next_u32(r) % 200000) - 100000;
    for (size_t i = 0; i < (size_t)QUERIES * stride; i++)
        q.spread[i] = i % stride < n_blocks ? (float)(next_u32(r) % 100 + 1) : 0.0f;
    for (size_t i = 0; i < QUERIES; i++)
        screens[i] = (struct cuda_screen){0.0, 0.001f * (float)(i + 1), 1};
    const struct bound_args a = {plane, q, {z, bests, LONG_VOCAB, LONG_VOCAB, 6}, QUERIES};
    const struct coarse_mat mat = {plane.lines, plane.steps, n_blocks, stride, 0};
    for (int few = 0; few < 2; few++) {
        memset(z, 0xa5, sizeof z);
        launch(few ? "coarse_bound_few" : "coarse_bound_one",
               (LONG_VOCAB + BOUND_ROWS - 1) / BOUND_ROWS, few ? 2 : QUERIES, 1, 0, &a, order);
        for (size_t i = 0; i < QUERIES; i++) {
            const struct coarse_query query = {q.x + i * n_blocks * 2 * COARSE_COLS,
                                               q.fix + i * n_blocks * COARSE_SUMS,
                                               q.spread + i * stride, screens[i].unit};
            coarse_bound_ref(&mat, 0, LONG_VOCAB, &query, up);
            assert_same(z + i * LONG_VOCAB, up, sizeof up, "a bound of a random plane");
        }
    }
    FREE_ALL(plane.lines, plane.steps, q.x, q.fix, q.spread);
}

static void bounds_match_for_any_number_of_blocks(void **state)
{
    (void)state;
    struct random r = {60};
    static const uint32_t n_blocks[] = {1, 4, 5, 8, 12, 21};
    for (size_t i = 0; i < sizeof n_blocks / sizeof n_blocks[0]; i++)
        check_random_bounds(n_blocks[i], &r, i % 2 ? TWIN_DESCENDING : TWIN_ASCENDING);
}

static void run_pick(struct head *h, bool exact, enum twin_order order)
{
    const struct pick_args a = {.requests = h->requests,
                                .dot = dots_of(h),
                                .screens = h->screens,
                                .cands = h->cands,
                                .is_exact = exact};
    launch("pick_floor", ROWS, 1, 1, 0, &a, order);
    launch("pick_collect", (VOCAB + COLLECT_IDS - 1) / COLLECT_IDS, ROWS, 1, 0, &a, order);
}

static void run_head(struct head *h, bool screened, enum twin_order order)
{
    const struct dot_args dot = dots_of(h);
    memset(h->found, 0xa5, sizeof h->found);
    run_norm(h, screened, order);
    if (screened)
        run_bounds(h, true, order);
    else
        launch("rows_dot_few", (VOCAB + DOT_ROWS - 1) / DOT_ROWS, 2, 1, 0, &dot, order);
    run_pick(h, !screened, order);
    find_exact(h);
}

/* Checks that no id occurs twice, logits are exact, and all requested candidates are included. */
static void check_row(const struct head *h, size_t i)
{
    const float *z = h->exact + i * VOCAB;
    const struct cuda_request *request = &h->requests[i];
    const struct cuda_found *found = &h->found[i];
    uint8_t seen[VOCAB] = {0};
    float best = -INFINITY, floor = INFINITY;
    assert_int_equal(found->not_finite, 0);
    assert_true(found->n <= VOCAB);
    for (size_t j = 0; j < found->n; j++) {
        const struct cuda_cand c = h->cands[i * VOCAB + j];
        assert_int_equal(seen[c.id]++, 0);
        assert_same(&c.logit, &z[c.id], sizeof c.logit, "a logit");
        if (j < PICK_FIRST)
            assert_same(&found->first[j], &c, sizeof c, "one of the first");
    }
    for (size_t j = 0; j < VOCAB; j++) {
        size_t n_greater = 0;
        best = fmaxf(best, z[j]);
        for (size_t l = 0; l < VOCAB; l++)
            n_greater += z[l] > z[j];
        if (n_greater < request->k)
            floor = fminf(floor, z[j]);
    }
    if (request->k > 0 && request->gap > 0)
        floor = fminf(floor, best - request->gap);
    for (size_t j = 0; j < VOCAB; j++)
        assert_true(z[j] < floor || seen[j]);
    if (request->k == 0 && request->beta == 0.0)
        assert_int_equal(found->n, 0);
}

static void candidates_include_all_requested(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        const enum twin_order order = round % 2 ? TWIN_DESCENDING : TWIN_ASCENDING;
        struct head *h = open_head(20 + (uint32_t)round, order);
        const bool screened = round < 2;
        h->requests[0].k = 1;
        h->requests[1].k = 40, h->requests[1].gap = 2.5f;
        h->requests[2].k = screened ? 93 : 1100; /* more than there are threads */
        h->requests[3].k = 3, h->requests[3].gap = 0.01f;
        h->requests[4].k = 0;
        run_head(h, screened, order);
        for (size_t i = 0; i < ROWS; i++)
            check_row(h, i);
        assert_true(h->found[0].n < 40);
        if (screened)
            assert_true(h->found[0].n_read > 0 && h->found[0].n_read < VOCAB / 2);
        close_head(h);
    }
}

/* The bounds are not valid for hidden states of zeros, so every row is multiplied. */
static void unscreenable_states_read_every_row(void **state)
{
    (void)state;
    struct head *h = open_head(30, TWIN_ASCENDING);
    for (size_t i = 0; i < ROWS; i++)
        h->requests[i].k = 2;
    for (size_t j = 0; j < N; j++)
        h->w[j] = 0.0f;
    run_head(h, true, TWIN_ASCENDING);
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(h->screens[i].screened, 0);
        assert_int_equal(h->found[i].n_read, VOCAB);
        check_row(h, i);
    }
    close_head(h);
}

static void candidates_include_the_winner_of_a_draw(void **state)
{
    (void)state;
    static const float temps[ROWS] = {0.7f, 1.0f, 1e-3f, 50.0f, 0.1f};
    for (uint32_t round = 0; round < 6; round++) {
        const enum twin_order order = round % 2 ? TWIN_DESCENDING : TWIN_ASCENDING;
        struct head *h = open_head(40 + round, order);
        for (size_t i = 0; i < ROWS; i++) {
            h->requests[i].seed = round;
            h->requests[i].position = 10 * i;
            h->requests[i].beta = 1.0 / (double)temps[i];
        }
        run_head(h, round < 3, order);
        for (size_t i = 0; i < ROWS; i++) {
            const struct head_request head = {.kind = HEAD_GUMBEL, .temp = temps[i], .seed = round};
            double best = -INFINITY;
            int32_t id = -1;
            bool found = false;
            pick_gumbel(h->exact + i * VOCAB, 0, VOCAB, &head, 10 * i, &best, &id);
            for (size_t j = 0; j < h->found[i].n; j++)
                found |= h->cands[i * VOCAB + j].id == id;
            assert_true(found);
            check_row(h, i);
        }
        close_head(h);
    }
}

static void non_finite_logits_are_reported(void **state)
{
    (void)state;
    struct head *h = open_head(50, TWIN_ASCENDING);
    float *table = (float *)(void *)h->table;
    for (size_t i = 0; i < ROWS; i++)
        h->requests[i] =
            (struct cuda_request){.k = 1, .beta = i == 1 ? 1.0 : 0.0, .token = (uint32_t)i};
    table[(VOCAB - 1) * N + 1] = NAN;
    run_head(h, false, TWIN_ASCENDING);
    for (size_t i = 0; i < ROWS; i++)
        assert_int_equal(h->found[i].not_finite, 1);
    table[(VOCAB - 1) * N + 1] = 0.0f;
    h->h[3 * H_STRIDE] = INFINITY; /* such a hidden state cannot be screened */
    for (int screened = 0; screened < 2; screened++) {
        run_head(h, screened, TWIN_ASCENDING);
        for (size_t i = 0; i < ROWS; i++)
            assert_int_equal(h->found[i].not_finite, i == 3);
    }
    close_head(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coarse_plane_matches_the_cpu),
        cmocka_unit_test(bounds_match_the_cpu_and_hold),
        cmocka_unit_test(queries_of_long_states_match_their_definition),
        cmocka_unit_test(bounds_match_for_any_number_of_blocks),
        cmocka_unit_test(candidates_include_all_requested),
        cmocka_unit_test(unscreenable_states_read_every_row),
        cmocka_unit_test(candidates_include_the_winner_of_a_draw),
        cmocka_unit_test(non_finite_logits_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
