/*
 * The screened head against the whole table: the same candidates, byte for byte, for any hidden
 * state, table and request. It must also read less.
 */
#include "engine/base/fp16.h"
#include "engine/base/noise.h"
#include "engine/cpu/cpu_head.h"
#include "engine/cpu/cpu_head_load.h"
#include "engine/cpu/cpu_screen.h"
#include "engine/cpu/cpu_sizes.h"
#include "engine/layout/head_plane.h"
#include "tests/support/table_encode.h"

#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_REQS HEAD_PASS_ROWS
#define N_THREADS 3

/* A backend that has only an output head. */
struct rig {
    struct model model;
    struct layer layer;
    struct backend b;
    struct coarse_mat coarse; /* kept here while b.coarse is empty */
    float *norm;              /* (n_embd) output norm */
    uint8_t *table;
    struct head_row rows[2][N_REQS];
};

enum table {
    TABLE_PLAIN,  /* noise */
    TABLE_TWINS,  /* noise that repeats every 97 rows, so that logits are equal */
    TABLE_SPIKES, /* noise with one large weight in each row */
    TABLE_FLAT,   /* all weights of a row are equal, in every third row zero */
    N_TABLES
};

static float noise(uint64_t seed, uint64_t i) /* a sum of four: nearly normal, -2 .. 2 */
{
    const uint64_t u = noise_bits(seed, i);
    float sum = -2.0f;
    for (int k = 0; k < 4; k++)
        sum += (float)(u >> 16 * k & 0xffff) / 65536.0f;
    return sum;
}

static float weight(enum table kind, size_t row, size_t col, size_t n_embd)
{
    if (kind == TABLE_FLAT)
        return row % 3 == 0 ? 0.0f : (float)(row % 7) * 0.125f;
    if (kind == TABLE_TWINS)
        row %= 97;
    const float w = 0.05f * noise(row, col);
    return kind == TABLE_SPIKES && (row * 31 + col) % n_embd == 0 ? 60.0f * w : w;
}

/* The weights of a table in this type. */
static void fill_table(uint8_t *table, enum table kind, enum tensor_type type, size_t n_vocab,
                       size_t n_embd)
{
    const size_t row_bytes =
        n_embd / tensor_geometries[type].block_cols * tensor_geometries[type].block_bytes;
    float *row = mem_alloc(n_embd, sizeof *row);
    for (size_t i = 0; i < n_vocab; i++) {
        for (size_t col = 0; col < n_embd; col++)
            row[col] = weight(kind, i, col, n_embd);
        table_encode(type, row, n_embd, table + i * row_bytes);
    }
    mem_free(row);
}

static void rig_open(struct rig *r, enum table kind, enum tensor_type type, size_t n_vocab,
                     size_t n_embd)
{
    size_t n_bytes;
    const struct backend_control control = {0};
    struct cpu_caps caps;
    struct bn_error err;
    *r = (struct rig){0};
    assert_true(tensor_bytes(type, n_embd, n_vocab, &n_bytes));
    r->table = mem_alloc(n_bytes, 1);
    r->norm = mem_alloc(n_embd, sizeof(float));
    fill_table(r->table, kind, type, n_vocab, n_embd);
    for (size_t i = 0; i < n_embd; i++)
        r->norm[i] = 1.0f;
    struct hparams *hp = &r->model.hp;
    hp->n_embd = hp->n_ff = hp->head_dim = n_embd;
    hp->n_heads = hp->n_kv_heads = hp->n_layers = 1;
    hp->n_vocab = n_vocab;
    hp->rms_eps = 1e-5f;
    hp->embd_scale = hp->logit_scale = 1.0;
    r->model.arch = arch_find(bn_str_of("bitnet-b1.58"));
    r->model.layers = &r->layer;
    r->model.head.bytes = r->table;
    r->model.head.n_bytes = n_bytes;
    r->model.head.type = type;
    r->model.embd = r->b.head = r->model.head;
    r->b.model = &r->model;
    r->b.n_threads = N_THREADS;
    r->b.n_ubatch = N_REQS;
    r->b.output_norm = r->norm;
    r->b.pass.b = &r->b;
    cpu_caps_detect(&caps);
    cpu_kernels_init(&r->b.k, &caps);
    if (!cpu_sizes_shape(&r->b.shape, &r->model, &r->b.cfg, N_THREADS, &err) ||
        !cpu_scratch_open(&r->b, &err) ||
        !screen_open(&r->b, &control, 0, r->model.head.n_bytes, &err))
        fail_msg("%s", err.text);
    r->coarse = r->b.coarse;
    for (size_t i = 0; i < 2 * N_REQS; i++)
        r->rows[i / N_REQS][i % N_REQS] = (struct head_row){
            .cands = mem_alloc(n_vocab, sizeof(struct head_cand)), .cap = n_vocab};
}

static void rig_close(struct rig *r)
{
    for (size_t i = 0; i < 2 * N_REQS; i++)
        mem_free(r->rows[i / N_REQS][i % N_REQS].cands);
    screen_close(&r->b);
    mem_map_close(&r->b.scratch.map);
    mem_free(r->table);
    mem_free(r->norm);
}

/* Returns the bytes read of the table and the plane. */
static size_t run(struct rig *r, const struct head_request *heads, size_t n_reqs, uint64_t position,
                  bool screened)
{
    struct pass *pass = &r->b.pass;
    r->b.coarse = screened ? r->coarse : (struct coarse_mat){0};
    pass->n_requested_rows = n_reqs;
    atomic_store(&pass->head_bytes, 0);
    atomic_store(&pass->not_finite, false);
    atomic_store(&pass->min_cap, 0);
    for (size_t i = 0; i < n_reqs; i++)
        r->b.scratch.requested_rows[i] = (struct requested_row){.request = &heads[i],
                                                                .row = &r->rows[screened][i],
                                                                .token = i,
                                                                .position = position + i};
#pragma omp parallel num_threads(N_THREADS)
    {
        struct cpu_thread *th = &r->b.scratch.threads[omp_get_thread_num()];
        th->n_threads = (size_t)omp_get_num_threads();
        head_apply(th);
    }
    assert_false(atomic_load(&pass->not_finite));
    for (size_t i = 0; i < n_reqs; i++)
        r->rows[screened][i].n = r->b.scratch.requested_rows[i].n_found;
    return atomic_load(&pass->head_bytes);
}

static size_t check_same(struct rig *r, const struct head_request *heads, size_t n_reqs,
                         uint64_t position)
{
    (void)run(r, heads, n_reqs, position, false);
    const size_t n_bytes = run(r, heads, n_reqs, position, true);
    for (size_t i = 0; i < n_reqs; i++) {
        const struct head_row *full = &r->rows[0][i], *got = &r->rows[1][i];
        if (got->n != full->n ||
            memcmp(got->cands, full->cands, full->n * sizeof full->cands[0]) != 0)
            fail_msg("position %zu, row %zu: %zu candidates for %zu, best %d for %d",
                     (size_t)position, i, got->n, full->n, got->cands[0].id, full->cands[0].id);
    }
    return n_bytes;
}

/* Hidden states before the norm. They differ in how many rows can have the best logit, and in how
 * well the coarse plane bounds the logits. */
enum hidden {
    HIDDEN_NOISE,        /* no row is far ahead */
    HIDDEN_ONE_ROW,      /* a row of the table and a little noise: this row is far ahead */
    HIDDEN_TWO_ROWS,     /* the sum of two rows, which are nearly tied */
    HIDDEN_HUGE_CHANNEL, /* one element is much larger than the others */
    HIDDEN_SAME,         /* all elements are equal */
    HIDDEN_ZERO,
    HIDDEN_TINY,
    HIDDEN_SPARSE,      /* in each block of 128 columns only the first element is not tiny */
    HIDDEN_HALF_TURNED, /* a row of the table; its second half is tiny and has the opposite sign */
    N_HIDDEN
};

static float hidden_element(enum hidden kind, uint64_t seed, size_t j, const float *row_a,
                            const float *row_c, size_t n)
{
    switch (kind) {
    case HIDDEN_NOISE:
        return noise(seed, j);
    case HIDDEN_ONE_ROW:
        return row_a[j] + 0.01f * noise(seed, j);
    case HIDDEN_TWO_ROWS:
        return row_a[j] + row_c[j];
    case HIDDEN_HUGE_CHANNEL:
        return noise(seed, j) + (j == seed % n ? 1e4f : 0.0f);
    case HIDDEN_SAME:
        return 1.0f;
    case HIDDEN_TINY:
        return 1e-30f * noise(seed, j);
    case HIDDEN_SPARSE:
        return j % 128 == 0 ? noise(seed, j) : 1e-6f * row_a[j];
    case HIDDEN_HALF_TURNED:
        return row_a[j] * (j < n / 2 ? 1.0f : -1e-3f);
    default:
        return 0.0f;
    }
}

/* Set the hidden state of request i. */
static void fill_hidden(struct rig *r, size_t i, enum hidden kind, uint64_t seed)
{
    const size_t n = r->model.hp.n_embd, n_vocab = r->model.hp.n_vocab;
    const size_t a = noise_bits(seed, 1) % n_vocab, c = noise_bits(seed, 2) % n_vocab;
    float *h = r->b.scratch.h + i * r->b.shape.widths.h_stride;
    float row_a[2048], row_c[2048];
    const size_t row_bytes = r->b.shape.head_row_bytes;
    r->b.k.row_decode[r->model.head.type](r->table + a * row_bytes, n, row_a);
    r->b.k.row_decode[r->model.head.type](r->table + c * row_bytes, n, row_c);
    for (size_t j = 0; j < n; j++)
        h[j] = hidden_element(kind, seed, j, row_a, row_c, n);
}

static void fill_requests(struct head_request *heads, size_t n_vocab, const int32_t *ids,
                          uint64_t seed)
{
    static const float temps[] = {0.02f, 0.3f, 1.0f, 5.0f};
    for (size_t i = 0; i < N_REQS; i++) {
        const uint64_t u = noise_bits(seed, i);
        heads[i] = (struct head_request){.kind = HEAD_TOP, .k = 1};
        if (u % 8 == 1)
            heads[i].k = 1 + (u >> 8) % (n_vocab / 16);
        if (u % 8 == 2)
            heads[i].gap = (float)((u >> 8) % 50) / 16.0f;
        if (u % 8 == 3)
            heads[i] = (struct head_request){
                .kind = HEAD_TOP, .k = 9, .gap = 0.5f, .ids = ids, .n_ids = 6};
        if (u % 8 == 4 || u % 8 == 5)
            heads[i] = (struct head_request){
                .kind = HEAD_GUMBEL, .temp = temps[u >> 8 & 3], .seed = seed + i};
        if (u % 64 == 6)
            heads[i].k = n_vocab;
        if (u % 64 == 7)
            heads[i].kind = HEAD_ALL;
        if (u % 32 == 15)
            heads[i] = (struct head_request){.kind = HEAD_TOP, .k = 0, .ids = ids, .n_ids = 6};
    }
}

static void check_rounds(struct rig *r, size_t n_rounds, uint64_t seed)
{
    const size_t n_vocab = r->model.hp.n_vocab;
    const int32_t ids[] = {0, (int32_t)n_vocab - 1, 7, 16, 7, (int32_t)n_vocab / 2};
    for (size_t round = 0; round < n_rounds; round++) {
        struct head_request heads[N_REQS];
        const size_t n_reqs = round % 4 == 0 ? N_REQS : 1 + round % 3;
        fill_requests(heads, n_vocab, ids, seed + round);
        for (size_t i = 0; i < n_reqs; i++)
            fill_hidden(r, i, (seed + round + i) % N_HIDDEN, seed + 10 * round + i);
        (void)check_same(r, heads, n_reqs, 1000 * seed + round);
    }
}

static void candidates_are_those_of_the_whole_table(void **state)
{
    (void)state;
    static const enum tensor_type types[] = {TENSOR_F16,  TENSOR_BF16, TENSOR_F32, TENSOR_Q6_K,
                                             TENSOR_Q8_0, TENSOR_Q4_K, TENSOR_Q4_0};
    static const size_t shapes[][2] = {{3001, 256}, {1700, 640},  {40, 1300}, {900, 512},
                                       {1100, 320}, {1100, 1024}, {900, 1024}};
    for (enum table kind = 0; kind < N_TABLES; kind++)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            struct rig r;
            rig_open(&r, kind, types[t], shapes[t][0], shapes[t][1]);
            assert_int_not_equal(r.coarse.n_blocks, 0);
            check_rounds(&r, 100, 100 * kind + 1000 * t);
            rig_close(&r);
        }
}

/* The weights of the norm scale a hidden state to the limits of F32. */
static void extreme_scales_change_nothing(void **state)
{
    (void)state;
    static const float scales[] = {1e-37f, 1e-20f, 1e-12f, 1e12f, 1e18f, 1e33f};
    struct rig r;
    rig_open(&r, TABLE_PLAIN, TENSOR_F16, 1000, 384);
    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
        for (size_t i = 0; i < 384; i++)
            r.norm[i] = scales[s];
        check_rounds(&r, 20, 31 + s);
    }
    rig_close(&r);
}

static void a_clear_winner_reads_little(void **state)
{
    (void)state;
    enum { N_ROUNDS = 50, MAX_ROWS = 50, MAX_DRAW_ROWS = 70 }; /* rows on average in a round */
    struct rig r;
    size_t n_bytes = 0, n_draw_bytes = 0;
    rig_open(&r, TABLE_PLAIN, TENSOR_F16, 8000, 1024);
    const struct head_request best = {.kind = HEAD_TOP, .k = 1},
                              draw = {.kind = HEAD_GUMBEL, .temp = 1.0f, .seed = 3};
    for (size_t i = 0; i < N_ROUNDS; i++) {
        fill_hidden(&r, 0, HIDDEN_ONE_ROW, i);
        n_bytes += check_same(&r, &best, 1, i);
        n_draw_bytes += check_same(&r, &draw, 1, i);
    }
    const size_t plane_bytes = N_ROUNDS * r.b.coarse_bytes;
    const size_t row_bytes = N_ROUNDS * r.b.shape.head_row_bytes;
    assert_in_range(n_bytes, plane_bytes + row_bytes, plane_bytes + MAX_ROWS * row_bytes);
    assert_in_range(n_draw_bytes, plane_bytes, plane_bytes + MAX_DRAW_ROWS * row_bytes);
    assert_true(3 * plane_bytes < N_ROUNDS * r.model.head.n_bytes);
    rig_close(&r);
}

static void a_list_reads_only_the_rows_of_its_ids(void **state)
{
    (void)state;
    enum { N_IDS = 4 };
    static const int32_t ids[N_IDS] = {999, 0, 16, 517};
    const struct head_request heads[2] = {{.kind = HEAD_ALL},
                                          {.kind = HEAD_TOP, .ids = ids, .n_ids = N_IDS}};
    for (size_t screened = 0; screened < 2; screened++) {
        struct rig r;
        rig_open(&r, TABLE_PLAIN, TENSOR_F16, 1000, 384);
        fill_hidden(&r, 0, HIDDEN_NOISE, 9);
        memcpy(r.b.scratch.h + r.b.shape.widths.h_stride, r.b.scratch.h, 384 * sizeof(float));
        (void)run(&r, heads, 2, 0, screened == 1);
        const struct head_row *all = &r.rows[screened][0], *list = &r.rows[screened][1];
        assert_int_equal(list->n, N_IDS);
        for (size_t i = 0; i < N_IDS; i++) {
            assert_true(list->cands[i].logit == all->cands[list->cands[i].id].logit);
            assert_true(i == 0 || list->cands[i - 1].logit >= list->cands[i].logit);
        }
        assert_int_equal(run(&r, &heads[1], 1, 0, screened == 1), N_IDS * r.b.shape.head_row_bytes);
        rig_close(&r);
    }
}

/* More candidates than a thread tries first, up to one more than screening supports. */
static void many_candidates_are_the_right_ones(void **state)
{
    (void)state;
    static const size_t ks[] = {500, 1023, 1024, 1025};
    static const float gaps[] = {0.0f, 0.0f, 3.0f, 100.0f};
    struct rig r;
    rig_open(&r, TABLE_PLAIN, TENSOR_BF16, 16500, 256);
    for (size_t i = 0; i < 2 * N_HIDDEN; i++)
        for (size_t j = 0; j < 4; j++) {
            const struct head_request head = {
                .kind = HEAD_TOP, .k = ks[j], .gap = gaps[(i + j) % 4]};
            fill_hidden(&r, 0, i % N_HIDDEN, i);
            (void)check_same(&r, &head, 1, i);
        }
    rig_close(&r);
}

/* The bounds of whole tables for many hidden states, against the logits. */
static void no_logit_is_above_its_bound(void **state)
{
    (void)state;
    const struct head_request head = {.kind = HEAD_TOP, .k = 1};
    struct rig r;
    double sum_gap = 0.0, sum_z2 = 0.0;
    size_t n = 0; /* logits in these sums */
    rig_open(&r, TABLE_PLAIN, TENSOR_F16, 4096, 512);
    float *up = mem_alloc(4096, sizeof *up), *z = mem_alloc(4096, sizeof *z), scratch[512];
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct requested_row req = {.request = &head};
        const bool has_outlier = seed % 3 == 1; /* its bounds are valid, but of no use */
        for (size_t j = 0; j < 512; j++)
            r.b.scratch.head_x[j] = noise(seed + 7, j) * (has_outlier && j == 77 ? 3e3f : 1.0f);
        screen_query(&r.b, 0, &req);
        assert_true(req.screened);
        r.b.k.coarse_bound(&r.coarse, 0, 4096, &req.query, up);
        const struct table_rows rows = {r.table, r.b.shape.head_row_bytes, 4096, NULL};
        r.b.k.rows_dot[TENSOR_F16](&rows, r.b.scratch.head_x, 512, z, scratch);
        for (size_t i = 0; i < 4096; i++) {
            assert_true(z[i] <= up[i]);
            if (has_outlier)
                continue;
            sum_gap += (double)(up[i] - z[i]);
            sum_z2 += (double)z[i] * (double)z[i];
            n++;
        }
    }
    /* The bounds are also useful: on average less than 2.5 standard deviations above the logits. */
    assert_true(sum_gap / (double)n < 2.5 * sqrt(sum_z2 / (double)n));
    mem_free(up);
    mem_free(z);
    rig_close(&r);
}

/* A value that is not finite or too large. The full pass then reports the error. */
static void a_hidden_state_beyond_the_bounds_is_not_screened(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 1e16f};
    const struct head_request head = {.kind = HEAD_TOP, .k = 1};
    struct rig r;
    rig_open(&r, TABLE_PLAIN, TENSOR_F16, 500, 256);
    for (size_t i = 0; i < 4; i++) {
        struct requested_row req = {.request = &head};
        for (size_t j = 0; j < 256; j++)
            r.b.scratch.head_x[j] = j == 17 ? bad[i] : noise(1, j);
        screen_query(&r.b, 0, &req);
        assert_false(req.screened);
    }
    rig_close(&r);
}

static void tables_that_gain_nothing_are_not_screened(void **state)
{
    (void)state;
    struct model m = {.hp = {.n_embd = 2560, .n_vocab = 1000}};
    m.head.type = TENSOR_F16;
    assert_int_equal(head_plane_blocks(&m, true), 20);
    assert_int_equal(head_plane_blocks(&m, false), 0); /* the user chose the whole table */
    m.head.type = TENSOR_Q6_K;
    assert_int_equal(head_plane_blocks(&m, true), 20);
    m.head.type = TENSOR_Q4_K;
    assert_int_equal(head_plane_blocks(&m, true), 20);
    m.head.type = TENSOR_F16;
    m.head_linear.source.bytes = (const uint8_t *)""; /* ternary: multiplied like a layer */
    assert_int_equal(head_plane_blocks(&m, true), 0);
    assert_int_equal(head_type(&m, BN_HEAD_Q8), TENSOR_F16);
    m.head_linear.source.bytes = NULL;
    assert_int_equal(head_type(&m, BN_HEAD_Q8), TENSOR_Q8_0);
    m.hp.n_embd = 64;
    assert_int_equal(head_plane_blocks(&m, true), 0);
}

/* With one weight that is not finite or too large there is no plane; the full pass reports the
 * error. */
static void a_table_with_an_unusable_weight_has_no_plane(void **state)
{
    (void)state;
    struct rig r;
    const struct backend_control control = {0};
    struct bn_error err;
    rig_open(&r, TABLE_PLAIN, TENSOR_F32, 500, 256);
    for (size_t i = 0; i < 3; i++) {
        const float bad[] = {NAN, -INFINITY, 1e20f};
        memcpy(r.table + 4 * (333 * 256 + 17), &bad[i], 4);
        screen_close(&r.b);
        assert_true(screen_open(&r.b, &control, 0, r.model.head.n_bytes, &err));
        assert_int_equal(r.b.coarse.n_blocks, 0);
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_are_those_of_the_whole_table),
        cmocka_unit_test(extreme_scales_change_nothing),
        cmocka_unit_test(a_clear_winner_reads_little),
        cmocka_unit_test(a_list_reads_only_the_rows_of_its_ids),
        cmocka_unit_test(many_candidates_are_the_right_ones),
        cmocka_unit_test(no_logit_is_above_its_bound),
        cmocka_unit_test(a_hidden_state_beyond_the_bounds_is_not_screened),
        cmocka_unit_test(tables_that_gain_nothing_are_not_screened),
        cmocka_unit_test(a_table_with_an_unusable_weight_has_no_plane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
