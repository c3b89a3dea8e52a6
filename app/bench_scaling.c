/*
 * A model is opened anew for each number of threads, since its pages belong to whom touched them
 * first.
 */
#include "app/bench_scaling.h"

#include "app/bench_out.h"
#include "app/json_out.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#define MAX_POINTS 1100 /* threads, at most 1024, and the batches */

static const size_t batches[] = {1, 2, 4, 8, 16};
#define N_BATCHES (sizeof(batches) / sizeof(batches[0]))

struct point {
    size_t n_threads, batch;
    double tokens_per_s, speed_up, efficiency;
    uint64_t checksum;
};

static bool measure_point(const struct bench_scaling *s, struct bn_model *model, struct point *p,
                          struct bn_error *err)
{
    struct bench_plan plan = s->plan;
    struct bench_row row = {
        .test = BENCH_TG, .n_tokens = s->n_tokens, .depth = s->depth, .batch = p->batch};
    plan.model = model;
    if (!bench_run(&plan, &row, err))
        return false;
    p->tokens_per_s = row.tokens_per_s;
    p->checksum = row.checksum;
    return true;
}

static bool open_with(const struct bench_scaling *s, size_t n_threads, struct bn_model **out,
                      struct bn_error *err)
{
    struct bn_model_config cfg = s->cfg;
    cfg.n_threads = n_threads;
    return bn_model_open(s->file, &cfg, out, err);
}

/* All points of one number of threads; `points` has room for them. */
static bool measure_threads(const struct bench_scaling *s, size_t n_threads, bool is_last,
                            struct point *points, size_t *n_points, struct bn_error *err)
{
    struct bn_model *model = NULL;
    bool ok = open_with(s, n_threads, &model, err);
    for (size_t i = 0; ok && i < (is_last ? N_BATCHES : 1); i++) {
        if (batches[i] > s->plan.n_ubatch)
            break;
        points[*n_points] = (struct point){.n_threads = n_threads, .batch = batches[i]};
        ok = measure_point(s, model, &points[(*n_points)++], err);
    }
    bn_model_close(model);
    return ok;
}

/* points[n_max - 1] is both the last of the threads and the first of the batches. */
static void compare(struct point *points, size_t n_points, size_t n_max)
{
    for (size_t i = 0; i < n_points; i++) {
        const bool is_threads = i < n_max;
        const struct point *const base = &points[is_threads ? 0 : n_max - 1];
        const size_t n = is_threads ? points[i].n_threads : points[i].batch;
        points[i].speed_up = points[i].tokens_per_s / base->tokens_per_s;
        points[i].efficiency = points[i].speed_up / (double)n;
    }
}

static void print_table(const struct point *points, size_t n_points, size_t n_max)
{
    printf("| threads | batch |  tokens/s | speed-up | efficiency |\n"
           "| ------: | ----: | --------: | -------: | ---------: |\n");
    for (size_t i = 0; i < n_points; i++)
        printf("| %7zu | %5zu | %9.2f | %8.2f | %8.1f %% |\n", points[i].n_threads, points[i].batch,
               points[i].tokens_per_s, points[i].speed_up, 100 * points[i].efficiency);
    printf("\nSpeed-up is against one thread; from batch 2 on against batch 1 with %zu thread%s.\n",
           n_max, n_max == 1 ? "" : "s");
}

static enum exit_code print_json(const struct point *points, size_t n_points)
{
    struct bn_error err;
    json_t *o = json_object(), *rows = json_array();
    for (size_t i = 0; i < n_points; i++) {
        char checksum[20];
        json_t *row = json_object();
        (void)snprintf(checksum, sizeof(checksum), "%016llx",
                       (unsigned long long)points[i].checksum); /* fits */
        json_out_add(row, "threads", json_integer((json_int_t)points[i].n_threads));
        json_out_add(row, "batch", json_integer((json_int_t)points[i].batch));
        json_out_add(row, "tokens_per_s", json_real(points[i].tokens_per_s));
        json_out_add(row, "speed_up", json_real(points[i].speed_up));
        json_out_add(row, "efficiency", json_real(points[i].efficiency));
        json_out_add(row, "checksum", json_string(checksum));
        json_array_append_new(rows, row);
    }
    if (!json_out_add(o, "scaling", rows)) {
        json_decref(o);
        return report_fail(BENCH, EXIT_INTERNAL, "out of memory for JSON output");
    }
    return json_out_write(o, stdout, JSON_OUT_LINE, &err) ? EXIT_DONE
                                                          : report_error(BENCH, STAGE_RUN, &err);
}

enum exit_code bench_scaling_run(const struct bench_scaling *s)
{
    struct bn_model *model;
    struct bn_error err;
    if (!open_with(s, s->cfg.n_threads, &model, &err))
        return report_error(BENCH, STAGE_LOAD, &err);
    const size_t n_max = size_min(bn_model_info(model)->n_threads, MAX_POINTS - N_BATCHES);
    size_t n_points = 0;
    bn_model_close(model);
    struct point *points = mem_alloc(n_max + N_BATCHES, sizeof(*points));
    bool ok = points || bn_fail(&err, BN_ENOMEM, "out of memory for %zu rows", n_max);
    for (size_t n = 1; ok && n <= n_max; n++)
        ok = measure_threads(s, n, n == n_max, points, &n_points, &err);
    enum exit_code code = ok ? EXIT_DONE : report_error(BENCH, STAGE_RUN, &err);
    if (ok)
        compare(points, n_points, n_max);
    if (ok && s->is_json)
        code = print_json(points, n_points);
    else if (ok)
        print_table(points, n_points, n_max);
    mem_free(points);
    return code;
}
