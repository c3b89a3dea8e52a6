/*
 * Measures kernels in the shapes of BitNet b1.58 2B4T: 2,560 columns, 6,912 in the FFN, heads of
 * 128 in groups of 4, a vocabulary of 128,256. Each figure is the best of several rounds. Matrices
 * are larger than the caches, so their figures depend on memory; a plain read of the same bytes is
 * measured for comparison.
 */
#include "tests/engine/kernels/check_kernels.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/relax.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_strategy.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_ROUNDS 7
#define N_COLS 2560
#define N_FF 6912
#define EMBD_LINES (N_COLS / LINE_COLS)
#define FF_LINES (N_FF / LINE_COLS)
#define N_TOKENS 512 /* most tokens of a product */
#define HEAD_DIM 128
#define MATRIX_BYTES ((size_t)400 << 20)
#define RANDOM_ROWS 64     /* of a table; the other rows are copies */
#define PREFETCH_WORDS 320 /* 2,560 bytes, as the kernels */

struct bench {
    const struct cpu_kernels *k;
    const char *filter;
    size_t n_threads;
    struct rng rng;
};

static bool is_selected(const struct bench *b, const char *name)
{
    return !b->filter || strstr(name, b->filter);
}

static void report(const struct bench *b, const char *name, double amount, double seconds,
                   const char *unit)
{
    printf("%-10s %-28s %8.2f %s\n", cpu_isa_name(b->k->isa), name, amount / seconds * 1e-9, unit);
    (void)fflush(stdout); /* so that a long run shows progress */
}

/* A table of plausible numbers. */
static void fill_rows(struct bench *b, enum tensor_type type, uint8_t *rows, size_t row_bytes,
                      size_t n_rows)
{
    for (size_t r = 0; r < RANDOM_ROWS; r++) {
        uint8_t *row = rows + r * row_bytes;
        float x[N_COLS];
        fill_floats(&b->rng, PATTERN_PLAIN, x, N_COLS);
        if (type == TENSOR_F32)
            memcpy(row, x, sizeof x);
        else if (type == TENSOR_F16)
            b->k->to_f16(x, N_COLS, (uint16_t *)(void *)row);
        else if (type == TENSOR_BF16)
            for (size_t i = 0; i < N_COLS; i++)
                memcpy(row + 2 * i, (const uint8_t *)&x[i] + 2, 2);
        else
            fill_table(&b->rng, type, row, row_bytes);
    }
    for (size_t r = RANDOM_ROWS; r < n_rows; r++)
        memcpy(rows + r * row_bytes, rows + r % RANDOM_ROWS * row_bytes, row_bytes);
}

/* One thread's part of a plain read, in the fastest way: four distant streams. */
static uint64_t read_part(const uint64_t *words, size_t n)
{
    const size_t part = n / 4 / 8 * 8;
    uint64_t sums[8] = {0};
    for (size_t i = 0; i < part; i += 8)
        for (size_t stream = 0; stream < 4; stream++) {
            const uint64_t *line = words + stream * part + i;
            cpu_prefetch(line + PREFETCH_WORDS);
            for (size_t j = 0; j < 8; j++)
                sums[j] ^= line[j];
        }
    for (size_t j = 1; j < 8; j++)
        sums[0] ^= sums[j];
    return sums[0];
}

static double read_seconds(const struct bench *b, const void *p, size_t n_bytes)
{
    const size_t n_words = n_bytes / 8 / b->n_threads;
    uint64_t sum = 0;
    const double start = clock_seconds();
#pragma omp parallel num_threads((int)b->n_threads) reduction(^ : sum)
    sum ^= read_part((const uint64_t *)p + n_words * (size_t)omp_get_thread_num(), n_words);
    const double seconds = clock_seconds() - start;
    if (sum == 1) /* use the sum, so that the reads are not removed */
        printf("\n");
    return seconds;
}

/* Rounds of a plain read and of a kernel alternate, so that other programs disturb both alike. */
struct race {
    double kernel[N_ROUNDS], read[N_ROUNDS]; /* seconds */
    size_t n_rounds;
};

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Print the best round, and the median of the kernel's speed relative to the read beside it. */
static void report_race(const struct bench *b, const char *name, struct race *r, size_t n_bytes)
{
    double ratio[N_ROUNDS], best = 1e9;
    for (size_t i = 0; i < r->n_rounds; i++) {
        ratio[i] = r->read[i] / r->kernel[i];
        best = r->kernel[i] < best ? r->kernel[i] : best;
    }
    qsort(ratio, r->n_rounds, sizeof *ratio, compare_doubles);
    printf("%-10s %-28s %8.2f GB/s, %3.0f %% of a plain read\n", cpu_isa_name(b->k->isa), name,
           (double)n_bytes / best * 1e-9, 100 * ratio[r->n_rounds / 2]);
    (void)fflush(stdout);
}

/* Rows are divided over threads as in the backend. */
static void matvec_all(const struct bench *b, const struct ternary_mat *w, const int8_t *q,
                       int32_t *acc)
{
#pragma omp parallel num_threads((int)b->n_threads)
    {
        const size_t me = (size_t)omp_get_thread_num();
        const size_t row0 = w->n_rows * me / b->n_threads;
        const size_t row1 = w->n_rows * (me + 1) / b->n_threads;
        b->k->ternary_matvec(w, row0, row1, q, 0, acc + row0);
    }
}

static void bench_matvec(struct bench *b, const uint8_t *lines, size_t n_lines, const int8_t *q,
                         const char *name)
{
    const struct ternary_mat w = {lines, MATRIX_BYTES / LINE_BYTES / n_lines, n_lines,
                                  b->k->stream_ahead};
    int32_t *acc = mem_alloc(w.n_rows, sizeof *acc);
    const size_t n_bytes = w.n_rows * n_lines * LINE_BYTES;
    struct race race = {.n_rounds = b->k->isa == ISA_REF ? 1 : N_ROUNDS};
    for (size_t i = 0; i < race.n_rounds; i++) {
        race.read[i] = read_seconds(b, lines, n_bytes);
        const double start = clock_seconds();
        matvec_all(b, &w, q, acc);
        race.kernel[i] = clock_seconds() - start;
    }
    report_race(b, name, &race, n_bytes);
    mem_free(acc);
}

/* A layer's up matrix times n_tokens, panel by panel as in a pass. */
static void bench_matmul(struct bench *b, const uint8_t *lines, size_t n_lines, size_t n_rows,
                         const int8_t *q, size_t n_tokens, const char *name)
{
    const struct ternary_gemm *g = strategy_gemm(b->k, strategy_linear(b->k, n_tokens));
    const struct ternary_mat w = {lines, n_rows, n_lines, b->k->stream_ahead};
    const size_t q_bytes = n_lines * LINE_COLS;
    const size_t panel_bytes = (PANEL_ROWS + PACK_TOKENS) * q_bytes; /* plus gathered tokens */
    const int32_t sums[MATMUL_TOKENS] = {0};
    struct mem_map map;
    if (!mem_map_open(&map,
                      size_round_up(n_tokens, PACK_TOKENS) * q_bytes +
                          b->n_threads *
                              (panel_bytes + MATMUL_TOKENS * PANEL_ROWS * sizeof(int32_t)),
                      MEM_PAGES_HUGE))
        exit(1);
    int8_t *packed = map.ptr;
    uint8_t *panels = (uint8_t *)map.ptr + size_round_up(n_tokens, PACK_TOKENS) * q_bytes;
    int32_t *acc = (int32_t *)(void *)(panels + b->n_threads * panel_bytes);
    for (size_t t = 0; t < n_tokens; t++)
        g->pack(q + t * q_bytes, n_lines, t, packed);
    double best = 1e9;
    for (size_t i = 0; i < 3; i++) {
        const double start = clock_seconds();
#pragma omp parallel num_threads((int)b->n_threads)
        {
            const size_t me = (size_t)omp_get_thread_num();
            const size_t row_end = n_rows * (me + 1) / b->n_threads;
            int32_t *mine = acc + me * MATMUL_TOKENS * PANEL_ROWS;
            uint8_t *panel = panels + me * panel_bytes;
            const int8_t *gathered =
                g->gather(packed, n_lines, n_tokens, (int8_t *)(panel + PANEL_ROWS * q_bytes));
            for (size_t r = n_rows * me / b->n_threads; r < row_end; r += PANEL_ROWS) {
                g->unpack(&w, r, size_min(r + PANEL_ROWS, row_end), panel);
                for (size_t t = 0; t < n_tokens; t += g->call_tokens)
                    g->matmul(
                        &w, r, size_min(r + PANEL_ROWS, row_end),
                        &(struct ternary_batch){.q = gathered + t * q_bytes,
                                                .q_sums = sums,
                                                .panel = panel,
                                                .n_tokens = size_min(g->call_tokens, n_tokens - t),
                                                .acc = mine,
                                                .acc_stride = PANEL_ROWS});
            }
        }
        const double seconds = clock_seconds() - start;
        best = seconds < best ? seconds : best;
    }
    report(b, name, (double)n_rows * (double)(n_lines * LINE_COLS) * (double)n_tokens, best,
           "GMAC/s");
    mem_map_close(&map);
}

static void bench_ternary(struct bench *b)
{
    if (!is_selected(b, "ternary_matvec") && !is_selected(b, "ternary_matmul"))
        return;
    struct mem_map map;
    if (!mem_map_open(&map, MATRIX_BYTES, MEM_PAGES_HUGE))
        exit(1);
    uint8_t *lines = map.ptr;
    for (size_t i = 0; i < MATRIX_BYTES / 8; i++) { /* all codes are legal: none is 3 */
        const uint64_t u = (uint64_t)rng_next(&b->rng) << 32 | rng_next(&b->rng);
        ((uint64_t *)map.ptr)[i] = u & ~(u << 1 & 0xaaaaaaaaaaaaaaaau);
    }
    int8_t *q = mem_alloc((size_t)N_TOKENS * FF_LINES, LINE_COLS);
    for (size_t t = 0; t < N_TOKENS; t++)
        (void)fill_activations(&b->rng, TERNARY_PLAIN, q + t * FF_LINES * LINE_COLS, FF_LINES,
                               N_FF);
    if (is_selected(b, "ternary_matvec")) {
        bench_matvec(b, lines, EMBD_LINES, q, "ternary_matvec 2560");
        bench_matvec(b, lines, FF_LINES, q, "ternary_matvec 6912");
    }
    if (is_selected(b, "ternary_matmul")) {
        bench_matmul(b, lines, EMBD_LINES, N_FF, q, N_TOKENS, "ternary_matmul 2560 x 512");
        bench_matmul(b, lines, FF_LINES, N_COLS, q, N_TOKENS, "ternary_matmul 6912 x 512");
        bench_matmul(b, lines, EMBD_LINES, N_FF, q, 128, "ternary_matmul 2560 x 128");
        bench_matmul(b, lines, EMBD_LINES, N_FF, q, 32, "ternary_matmul 2560 x 32");
        bench_matmul(b, lines, EMBD_LINES, N_FF, q, 16, "ternary_matmul 2560 x 16");
        bench_matmul(b, lines, EMBD_LINES, N_FF, q, 8, "ternary_matmul 2560 x 8");
        bench_matmul(b, lines, EMBD_LINES, N_FF, q, 4, "ternary_matmul 2560 x 4");
    }
    mem_free(q);
    mem_map_close(&map);
}

/* ---- R16 ---- */

#define R16_COLS 2048 /* width of a model of 1.7B weights */
#define R16_FF 6144
#define BENCH_TOKENS 512
#define R16_Q_STRIDE (R16_FF + 64)
#define R16_MOST_BLOCKS (R16_FF / 32)

/* Activations of BENCH_TOKENS tokens, and weights of MATRIX_BYTES with one scale per span. */
struct r16_data {
    uint8_t *lines;
    uint16_t *scales;
    int8_t *q;
    float *units;
    int32_t *q_sums;
};

static struct r16_mat r16_of(const struct bench *b, const struct r16_data *d, size_t n_cols)
{
    const size_t n_lines = n_cols / R16_LINE_COLS;
    return (struct r16_mat){.lines = d->lines,
                            .scales = d->scales,
                            .scale_step = R16_ROWS,
                            .n_groups = MATRIX_BYTES / LINE_BYTES / n_lines,
                            .n_lines = n_lines,
                            .span_cols = 128,
                            .ahead = b->k->stream_ahead};
}

static void bench_r16_matvec(struct bench *b, const struct r16_data *d, size_t n_cols,
                             size_t block_cols)
{
    const struct r16_mat w = r16_of(b, d, n_cols);
    const struct block_acts x = {d->q, d->units, d->q_sums, block_cols};
    float *y = mem_alloc(w.n_groups * R16_ROWS, sizeof *y);
    /* A span of 8 lines (512 bytes) has 16 scales of 2 bytes, which add one sixteenth. */
    const size_t n_bytes = w.n_groups * w.n_lines * LINE_BYTES * 17 / 16;
    struct race race = {.n_rounds = b->k->isa == ISA_REF ? 1 : N_ROUNDS};
    char name[40];
    for (size_t i = 0; i < race.n_rounds; i++) {
        race.read[i] = read_seconds(b, d->lines, n_bytes / 17 * 16) * 17 / 16;
        const double start = clock_seconds();
#pragma omp parallel num_threads((int)b->n_threads)
        {
            const size_t me = (size_t)omp_get_thread_num();
            const size_t g0 = w.n_groups * me / b->n_threads;
            const size_t g1 = w.n_groups * (me + 1) / b->n_threads;
            b->k->r16_matvec(&w, g0, g1, &x, y + g0 * R16_ROWS);
        }
        race.kernel[i] = clock_seconds() - start;
    }
    (void)snprintf(name, sizeof name, "r16_matvec %zu in %zu", n_cols, block_cols);
    report_race(b, name, &race, n_bytes);
    mem_free(y);
}

static void bench_r16_matmul(struct bench *b, const struct r16_data *d, size_t n_cols,
                             size_t n_rows, size_t block_cols, size_t n_tokens)
{
    const struct r16_mat w = r16_of(b, d, n_cols);
    const size_t panel_bytes = R16_PANEL * w.n_lines * 4 * LINE_BYTES;
    const size_t y_floats = BENCH_TOKENS * R16_PANEL * R16_ROWS;
    uint8_t *panels = mem_alloc(b->n_threads, panel_bytes);
    float *y = mem_alloc(b->n_threads, y_floats * sizeof *y);
    double best = 1e9;
    char name[40];
    for (size_t i = 0; i < 3; i++) {
        const double start = clock_seconds();
#pragma omp parallel num_threads((int)b->n_threads)
        {
            const size_t me = (size_t)omp_get_thread_num();
            const size_t end = n_rows / R16_ROWS * (me + 1) / b->n_threads;
            struct r16_batch batch = {.q_stride = R16_Q_STRIDE,
                                      .block_stride = R16_MOST_BLOCKS,
                                      .block_cols = block_cols,
                                      .panel = panels + me * panel_bytes,
                                      .y = y + me * y_floats,
                                      .y_stride = R16_PANEL * R16_ROWS};
            for (size_t g = n_rows / R16_ROWS * me / b->n_threads; g < end; g += R16_PANEL) {
                const size_t g1 = size_min(g + R16_PANEL, end);
                b->k->r16.unpack(&w, g, g1, panels + me * panel_bytes);
                for (size_t t = 0; t < n_tokens; t += BENCH_TOKENS) {
                    batch.q = d->q + t * R16_Q_STRIDE;
                    batch.units = d->units + t * R16_MOST_BLOCKS;
                    batch.q_sums = d->q_sums + t * R16_MOST_BLOCKS;
                    batch.n_tokens = size_min(BENCH_TOKENS, n_tokens - t);
                    b->k->r16.matmul(&w, g, g1, &batch);
                }
            }
        }
        const double seconds = clock_seconds() - start;
        best = seconds < best ? seconds : best;
    }
    (void)snprintf(name, sizeof name, "r16_matmul %zu in %zu x %zu", n_cols, block_cols, n_tokens);
    report(b, name, (double)n_rows * (double)n_cols * (double)n_tokens, best, "GMAC/s");
    mem_free(y);
    mem_free(panels);
}

static void bench_r16(struct bench *b)
{
    if (!is_selected(b, "r16_matvec") && !is_selected(b, "r16_matmul"))
        return;
    struct mem_map map;
    if (!mem_map_open(&map, MATRIX_BYTES, MEM_PAGES_HUGE))
        exit(1);
    const size_t n_scales = MATRIX_BYTES / LINE_BYTES / (128 / R16_LINE_COLS) * R16_ROWS;
    const struct r16_data d = {
        .lines = map.ptr,
        .scales = mem_alloc(n_scales, sizeof(uint16_t)),
        .q = mem_alloc(BENCH_TOKENS, R16_Q_STRIDE),
        .units = mem_alloc(BENCH_TOKENS * R16_MOST_BLOCKS, sizeof(float)),
        .q_sums = mem_alloc(BENCH_TOKENS * R16_MOST_BLOCKS, sizeof(int32_t)),
    };
    if (!d.scales || !d.q || !d.units || !d.q_sums)
        exit(1);
    for (size_t i = 0; i < MATRIX_BYTES / 8; i++) { /* all codes are legal: none is 3 */
        const uint64_t u = (uint64_t)rng_next(&b->rng) << 32 | rng_next(&b->rng);
        ((uint64_t *)map.ptr)[i] = u & ~(u << 1 & 0xaaaaaaaaaaaaaaaau);
    }
    for (size_t i = 0; i < n_scales; i++)
        d.scales[i] = (uint16_t)(0x2000 + (i & 0x3ff)); /* F16 from 2^-7 to 2^-6 */
    for (size_t i = 0; i < BENCH_TOKENS * R16_Q_STRIDE; i++)
        d.q[i] = (int8_t)((int)rng_below(&b->rng, 255) - 127);
    for (size_t i = 0; i < BENCH_TOKENS * R16_MOST_BLOCKS; i++)
        d.units[i] = 0.01f;
    for (size_t block_cols = 32; block_cols <= 128 && is_selected(b, "r16_matvec");
         block_cols *= 4) {
        bench_r16_matvec(b, &d, R16_COLS, block_cols);
        bench_r16_matvec(b, &d, R16_FF, block_cols);
    }
    for (size_t block_cols = 32; block_cols <= 128 && is_selected(b, "r16_matmul");
         block_cols *= 4) {
        bench_r16_matmul(b, &d, R16_COLS, R16_FF, block_cols, 512);
        bench_r16_matmul(b, &d, R16_FF, R16_COLS, block_cols, 512);
        bench_r16_matmul(b, &d, R16_COLS, R16_FF, block_cols, 16);
        bench_r16_matmul(b, &d, R16_COLS, R16_FF, block_cols, 4);
    }
    mem_free(d.scales);
    mem_free(d.q);
    mem_free(d.units);
    mem_free(d.q_sums);
    mem_map_close(&map);
}

static void rows_all(const struct bench *b, enum tensor_type type, const uint8_t *rows,
                     size_t row_bytes, size_t n_rows, const float *h, float *z)
{
#pragma omp parallel num_threads((int)b->n_threads)
    {
        const size_t me = (size_t)omp_get_thread_num();
        const size_t row0 = n_rows * me / b->n_threads, row1 = n_rows * (me + 1) / b->n_threads;
        float scratch[N_COLS];
        const struct table_rows part = {rows + row0 * row_bytes, row_bytes, row1 - row0, NULL};
        b->k->rows_dot[type](&part, h, N_COLS, z + row0, scratch);
    }
}

static void bench_rows(struct bench *b)
{
    static const struct {
        const char *name;
        enum tensor_type type;
        size_t row_bytes;
    } tables[] = {{"rows_dot F16", TENSOR_F16, 2 * N_COLS},
                  {"rows_dot BF16", TENSOR_BF16, 2 * N_COLS},
                  {"rows_dot F32", TENSOR_F32, 4 * N_COLS},
                  {"rows_dot Q8_0", TENSOR_Q8_0, N_COLS / 32 * 34},
                  {"rows_dot Q6_K", TENSOR_Q6_K, N_COLS / 256 * 210},
                  {"rows_dot Q4_K", TENSOR_Q4_K, N_COLS / 256 * 144},
                  {"rows_dot Q4_0", TENSOR_Q4_0, N_COLS / 32 * 18}};
    struct mem_map map = {0};
    float h[N_COLS], *z = mem_alloc(MATRIX_BYTES / 1024, sizeof *z); /* rows are longer than 1 kB */
    fill_floats(&b->rng, PATTERN_PLAIN, h, N_COLS);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const size_t row_bytes = tables[i].row_bytes, n_rows = MATRIX_BYTES / row_bytes;
        struct race race = {.n_rounds = b->k->isa == ISA_REF ? 1 : N_ROUNDS};
        if (!is_selected(b, tables[i].name))
            continue;
        if (!map.ptr && !mem_map_open(&map, MATRIX_BYTES, MEM_PAGES_NORMAL))
            exit(1);
        fill_rows(b, tables[i].type, map.ptr, row_bytes, n_rows);
        for (size_t round = 0; round < race.n_rounds; round++) {
            race.read[round] = read_seconds(b, map.ptr, row_bytes * n_rows);
            const double start = clock_seconds();
            rows_all(b, tables[i].type, map.ptr, row_bytes, n_rows, h, z);
            race.kernel[round] = clock_seconds() - start;
        }
        report_race(b, tables[i].name, &race, row_bytes * n_rows);
    }
    mem_free(z);
    mem_map_close(&map);
}

/* 4,096 positions of one KV head, as in decoding. */
static void bench_attn_block(struct bench *b, const char *name, bool is_q8, size_t n_q)
{
    enum { N_BLOCKS = 64 };
    const size_t block = HEAD_DIM * KV_BLOCK, unit = is_q8 ? 1 : sizeof(uint16_t);
    float q[4 * HEAD_DIM], m[4], l[4], o[4 * HEAD_DIM], scales[2 * KV_BLOCK];
    double best = 1e9;
    if (!is_selected(b, name))
        return;
    uint8_t *kv = mem_alloc(2 * N_BLOCKS * block, unit);
    if (is_q8)
        for (size_t i = 0; i < 2 * N_BLOCKS * block; i++)
            kv[i] = (uint8_t)(rng_below(&b->rng, 255) - 127);
    else
        fill_f16(&b->rng, PATTERN_PLAIN, (uint16_t *)(void *)kv, 2 * N_BLOCKS * block);
    for (size_t i = 0; i < 2 * KV_BLOCK; i++)
        scales[i] = 0.01f;
    fill_floats(&b->rng, PATTERN_PLAIN, q, 4 * HEAD_DIM);
    for (size_t round = 0; round < N_ROUNDS; round++) {
        const double start = clock_seconds();
        for (size_t i = 0; i < N_BLOCKS; i++) {
            const uint8_t *k = kv + 2 * i * block * unit;
            (is_q8 ? b->k->attn_block_q8
                   : b->k->attn_block)(&(struct attn_block){.q = q,
                                                            .k = k,
                                                            .v = k + block * unit,
                                                            .scales = scales,
                                                            .ahead = k + 2 * block * unit,
                                                            .n_q = n_q,
                                                            .head_dim = HEAD_DIM,
                                                            .v_stride = HEAD_DIM,
                                                            .n_seen = KV_BLOCK,
                                                            .m = m,
                                                            .l = l,
                                                            .o = o});
        }
        const double seconds = clock_seconds() - start;
        best = seconds < best ? seconds : best;
    }
    report(b, name, (double)(2 * n_q * block * N_BLOCKS), best, "GMAC/s");
    mem_free(kv);
}

/* An attn_tile of a prompt over the same positions. */
static void bench_attn_tile(struct bench *b)
{
    enum { N_BLOCKS = 64, N_Q = 4, Q_FLOATS = N_Q * HEAD_DIM };
    const size_t block = HEAD_DIM * KV_BLOCK, n_queries = ATTN_TILE * N_Q;
    if (!is_selected(b, "attn_tile"))
        return;
    uint16_t *kv = mem_alloc(2 * N_BLOCKS * block, sizeof *kv);
    float *q = mem_alloc(n_queries * HEAD_DIM, sizeof *q);
    float *out = mem_alloc(n_queries * (HEAD_DIM + 2), sizeof *out);
    float *scratch = mem_alloc(attn_tile_floats(N_Q, HEAD_DIM), sizeof *scratch);
    fill_f16(&b->rng, PATTERN_PLAIN, kv, 2 * N_BLOCKS * block);
    fill_floats(&b->rng, PATTERN_PLAIN, q, n_queries * HEAD_DIM);
    double best = 1e9;
    for (size_t round = 0; round < N_ROUNDS; round++) {
        const double start = clock_seconds();
        for (size_t i = 0; i < N_BLOCKS; i++)
            b->k->attn_tile(&(struct attn_tile){.q = q,
                                                .q_stride = Q_FLOATS,
                                                .k = kv + 2 * i * block,
                                                .v = kv + (2 * i + 1) * block,
                                                .n_tokens = ATTN_TILE,
                                                .n_q = N_Q,
                                                .head_dim = HEAD_DIM,
                                                .v_stride = HEAD_DIM,
                                                .n_seen = KV_BLOCK,
                                                .is_first = i == 0,
                                                .m = out,
                                                .l = out + n_queries,
                                                .o = out + 2 * n_queries,
                                                .scratch = scratch});
        const double seconds = clock_seconds() - start;
        best = seconds < best ? seconds : best;
    }
    report(b, "attn_tile 32 tokens", (double)(2 * n_queries * block * N_BLOCKS), best, "GMAC/s");
    mem_free(kv);
    mem_free(q);
    mem_free(out);
    mem_free(scratch);
}

/* 32 tokens of a head of 128 elements. */
static void bench_delta(struct bench *b)
{
    enum { DIM = 128, TOKENS = 32 };
    double best = 1e9;
    if (!is_selected(b, "delta_run"))
        return;
    float *x = mem_alloc(TOKENS * 3 * DIM, sizeof *x), *out = mem_alloc(TOKENS * DIM, sizeof *out);
    float *state = mem_alloc((size_t)DIM * DIM, sizeof *state);
    struct delta_gate gates[TOKENS];
    fill_floats(&b->rng, PATTERN_PLAIN, x, TOKENS * 3 * DIM);
    for (size_t i = 0; i < TOKENS * 3 * DIM; i++)
        x[i] *= 0.02f; /* the state stays small */
    for (size_t t = 0; t < TOKENS; t++)
        gates[t] = (struct delta_gate){0.9f, 0.5f};
    for (size_t round = 0; round < N_ROUNDS; round++) {
        const double start = clock_seconds();
        b->k->delta_run(&(struct delta_run){.q = x,
                                            .k = x + DIM,
                                            .v = x + 2 * (size_t)DIM,
                                            .stride = 3 * (size_t)DIM,
                                            .gates = gates,
                                            .gate_stride = 1,
                                            .n_tokens = TOKENS,
                                            .dim = DIM,
                                            .from = state,
                                            .to = state,
                                            .out = out,
                                            .out_stride = DIM});
        const double seconds = clock_seconds() - start;
        best = seconds < best ? seconds : best;
    }
    report(b, "delta_run 32 tokens", 3.0 * TOKENS * DIM * DIM, best, "GMAC/s");
    mem_free(state);
    mem_free(out);
    mem_free(x);
}

/* which: index in the names of bench_vectors. */
static void run_vector(const struct cpu_kernels *k, size_t which, const float *x, float *y,
                       void *out)
{
    struct act_scale s;
    switch (which) {
    case 0:
        k->rms_norm(x, x, N_FF, 1e-5f, y);
        break;
    case 1:
        k->quantise(&(struct act_in){.x = x, .w = y, .n = N_FF, .eps = 1e-5f, .ahead = x}, out, &s);
        break;
    case 2:
        k->relu2_gate(x, x, N_FF, y);
        break;
    case 3:
        k->silu_gate(x, x, N_FF, y);
        break;
    case 4:
        k->add(y, x, N_FF);
        break;
    case 5:
        k->scale_acc((const int32_t *)(const void *)x, N_FF, 0.5f, y);
        break;
    case 6:
        k->rotate(x, y, N_FF, 256, out);
        break;
    case 7:
        k->to_f16(x, N_FF, out);
        break;
    default:
        k->rope_neox(y, x, x, N_FF);
        break;
    }
}

static void bench_vectors(struct bench *b)
{
    static const char *const names[] = {"rms_norm",  "quantise", "relu2_gate", "silu_gate", "add",
                                        "scale_acc", "rotate",   "to_f16",     "rope_neox"};
    float *x = mem_alloc(N_FF, sizeof *x), *y = mem_alloc(N_FF, sizeof *y);
    void *out = mem_alloc(N_FF, sizeof *y);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double best = 1e9;
        if (!is_selected(b, names[i]))
            continue;
        fill_floats(&b->rng, PATTERN_PLAIN, x, N_FF);
        fill_floats(&b->rng, PATTERN_PLAIN, y, N_FF);
        for (size_t round = 0; round < N_ROUNDS; round++) {
            const double start = clock_seconds();
            for (size_t j = 0; j < 20; j++)
                run_vector(b->k, i, x, y, out);
            const double seconds = clock_seconds() - start;
            best = seconds < best ? seconds : best;
        }
        report(b, names[i], 20.0 * N_FF, best, "G elements/s");
    }
    mem_free(x);
    mem_free(y);
    mem_free(out);
}

void bench_kernels(const struct cpu_kernels *k, const char *filter, size_t n_threads)
{
    struct bench b = {.k = k, .filter = filter, .n_threads = n_threads, .rng.state = 1};
    bench_ternary(&b);
    bench_r16(&b);
    bench_rows(&b);
    bench_attn_block(&b, "attn_block 1 head", false, 1);
    bench_attn_block(&b, "attn_block 4 heads", false, 4);
    bench_attn_block(&b, "attn_block_q8 4 heads", true, 4);
    bench_attn_tile(&b);
    bench_delta(&b);
    bench_vectors(&b);
}
