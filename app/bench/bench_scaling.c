/*
 * Scaling with threads and sequences: see bench_scaling_run in bench.h.
 *
 * The model is opened again for each number of threads, because a memory page belongs to the NUMA
 * node of the thread that first touches it.
 */
#include "app/bench/bench.h"

#include "app/common/json_out.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#define MAX_THREADS 1024 /* bounds the number of rows */

static const size_t batches[] = {2, 4, 8, 16};
/* A smaller efficiency is a warning: then more than 40 % of the added cores are lost. */
#define LOW_EFFICIENCY 0.6
#define N_BATCHES (sizeof(batches) / sizeof(batches[0]))

/* One row of the table. */
struct point {
    size_t n_threads;
    struct bench_row row;
    double speed_up, efficiency; /* see bench_scaling_run */
    double percent_of_peak;      /* bench_row_percent */
    bool is_low;                 /* the efficiency of threads is below LOW_EFFICIENCY */
};

/* In the order of the table: pp by threads, tg by threads, tg by batch. */
struct point_list {
    struct point *points;   /* (n_points(p)) */
    size_t n_max;           /* largest number of threads, so the number of tg points by threads */
    size_t n_pp, n_batches; /* numbers of pp points and of tg points by batch */
};

static size_t n_points(const struct point_list *p)
{
    return p->n_pp + p->n_max + p->n_batches;
}

/* Index of the point for tg with one sequence and n_threads threads. */
static size_t tg_index(const struct point_list *p, size_t n_threads)
{
    return p->n_pp + n_threads - 1;
}

static bool open_with(const struct bench_scaling *s, size_t n_threads, struct bn_model **out,
                      struct bn_error *err)
{
    struct bn_model_config cfg = s->cfg;
    cfg.n_threads = n_threads;
    return bn_model_open(s->file, &cfg, out, err);
}

/* Measures all points with this number of threads. */
static bool measure_threads(const struct bench_scaling *s, size_t n_threads, struct point_list *p,
                            struct bn_error *err)
{
    struct bn_model *model = NULL;
    struct bench_machine machine; /* its peaks are those of n_threads threads */
    report_progress("[%zu/%zu] threads", n_threads, p->n_max);
    bench_machine_init(&machine);
    bool ok = open_with(s, n_threads, &model, err);
    if (ok)
        bench_machine_loaded(&machine, model);
    struct bench_plan plan = s->plan;
    plan.model = model;
    plan.machine = &machine;
    for (size_t i = 0; ok && i < n_points(p); i++) {
        struct point *const point = &p->points[i];
        if (point->n_threads != n_threads)
            continue;
        ok = bench_run(&plan, &point->row, err);
        if (ok)
            point->percent_of_peak = bench_row_percent(bn_model_info(model), &point->row);
    }
    bn_model_close(model);
    report_progress_erase();
    return ok;
}

static void list_points(const struct bench_scaling *s, struct point_list *p)
{
    const struct bench_row tg = {
        .test = BENCH_TG, .n_tokens = s->n_tokens, .depth = s->depth, .batch = 1};
    struct bench_row pp = tg;
    pp.test = BENCH_PP;
    pp.n_tokens = s->n_prompt;
    for (size_t n = 1; n <= p->n_pp; n++)
        p->points[n - 1] = (struct point){.n_threads = n, .row = pp};
    for (size_t n = 1; n <= p->n_max; n++)
        p->points[tg_index(p, n)] = (struct point){.n_threads = n, .row = tg};
    for (size_t i = 0; i < p->n_batches; i++) {
        struct point *const point = &p->points[tg_index(p, p->n_max) + 1 + i];
        *point = (struct point){.n_threads = p->n_max, .row = tg};
        point->row.batch = batches[i];
    }
}

static void compare(struct point_list *p)
{
    for (size_t i = 0; i < n_points(p); i++) {
        struct point *const point = &p->points[i];
        const bool is_batch = point->row.batch > 1;
        /* index of the point that this one is compared with */
        const size_t base = point->row.test == BENCH_PP ? 0
                            : is_batch                  ? tg_index(p, p->n_max)
                                                        : tg_index(p, 1);
        point->speed_up = point->row.tokens_per_s / p->points[base].row.tokens_per_s;
        point->efficiency =
            point->speed_up / (double)(is_batch ? point->row.batch : point->n_threads);
        point->is_low = !is_batch && point->efficiency < LOW_EFFICIENCY;
    }
}

static void print_table(const struct point_list *p)
{
    printf("| test    | threads | batch |  tokens/s | speed-up | efficiency | of the peak |\n"
           "| ------- | ------: | ----: | --------: | -------: | ---------: | ----------: |\n");
    for (size_t i = 0; i < n_points(p); i++) {
        const struct point *const point = &p->points[i];
        char test[32], percent[BENCH_PERCENT_BYTES];
        bench_name_test(&point->row, test);
        printf("| %-7s | %7zu | %5zu | %9.2f | %8.2f | %8.1f %% | %11s |\n", test, point->n_threads,
               point->row.batch, point->row.tokens_per_s, point->speed_up, 100 * point->efficiency,
               point->row.peak > 0 ? bench_percent_text(point->percent_of_peak, percent) : "");
    }
    printf("\nSpeed-up is over one thread; from batch 2 on it is over batch 1 with %zu thread%s.\n"
           "The peak is what the machine can do with this number of threads: bytes read for tg,\n"
           "int8 multiply-adds for pp.\n",
           p->n_max, p->n_max == 1 ? "" : "s");
    for (size_t i = 0; i < n_points(p); i++) {
        const struct point *const point = &p->points[i];
        char test[32];
        bench_name_test(&point->row, test);
        if (point->is_low)
            printf("warning: %s with %zu threads has an efficiency of %.1f %%, below %.0f %%\n",
                   test, point->n_threads, 100 * point->efficiency, 100 * LOW_EFFICIENCY);
    }
}

static enum exit_code print_json(const struct point_list *p)
{
    struct bn_error err;
    json_t *rows = json_array();
    for (size_t i = 0; i < n_points(p); i++) {
        const struct point *point = &p->points[i];
        char test[32], checksum[20];
        bench_name_test(&point->row, test);
        bench_name_checksum(point->row.checksum, checksum);
        json_out_append(
            &rows, json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:b, s:o, s:s}", "test", test,
                             "threads", (json_int_t)point->n_threads, "batch",
                             (json_int_t)point->row.batch, "tokens_per_s", point->row.tokens_per_s,
                             "speed_up", point->speed_up, "efficiency", point->efficiency,
                             "low_efficiency", point->is_low, "percent_of_peak",
                             bench_percent_json(point->percent_of_peak), "checksum", checksum));
    }
    return json_out_write(json_pack("{s:o}", "scaling", rows), stdout, JSON_OUT_LINE, &err)
               ? EXIT_DONE
               : report_error(BENCH, STAGE_RUN, &err);
}

enum exit_code bench_scaling_run(const struct bench_scaling *s)
{
    struct bn_model *model;
    struct bn_error err;
    if (!open_with(s, s->cfg.n_threads, &model, &err)) {
        (void)bn_fail_prefix(&err, "%s", bn_file_path(s->file));
        return report_error(BENCH, STAGE_LOAD, &err);
    }
    struct point_list p = {.n_max = size_min(bn_model_info(model)->n_threads, MAX_THREADS)};
    bn_model_close(model);
    p.n_pp = s->n_prompt > 0 ? p.n_max : 0;
    while (p.n_batches < N_BATCHES && batches[p.n_batches] <= s->plan.n_ubatch)
        p.n_batches++;
    p.points = mem_alloc(n_points(&p), sizeof(*p.points));
    bool ok = p.points || bn_fail(&err, BN_ENOMEM, "out of memory for %zu rows", n_points(&p));
    if (ok)
        list_points(s, &p);
    for (size_t n = 1; ok && n <= p.n_max; n++)
        ok = measure_threads(s, n, &p, &err);
    enum exit_code code = ok ? EXIT_DONE : report_error(BENCH, STAGE_RUN, &err);
    if (ok)
        compare(&p);
    if (ok && s->is_json)
        code = print_json(&p);
    else if (ok)
        print_table(&p);
    mem_free(p.points);
    return code;
}
