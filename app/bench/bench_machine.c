/*
 * Measurements of the machine: see bench_machine.h.
 */
#include "app/bench/bench_machine.h"

#include "app/common/report.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define STALE_FACTOR 10 /* a measurement that took t seconds is used for 10 t seconds */

static bool read_ticks(struct bench_ticks *t)
{
    uint64_t v[8]; /* user nice system idle iowait irq softirq steal */
    FILE *f = fopen("/proc/stat", "r");
    if (!f)
        return false;
    const int n = fscanf(f,
                         "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                         " %" SCNu64 " %" SCNu64,
                         &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]);
    (void)fclose(f); /* nothing was written that could be lost */
    if (n != 8)
        return false;
    *t = (struct bench_ticks){.stolen = v[7]};
    for (size_t i = 0; i < 8; i++)
        t->all += v[i];
    return true;
}

/* Linux on ARM gives no such name; then `out` is left as it is. */
static void read_processor(char *out, size_t out_bytes)
{
    char line[200];
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof(line), f)) {
        const char *const value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value)
            continue;
        const char *const name = value + 1 + strspn(value + 1, " ");
        (void)snprintf(out, out_bytes, "%.*s", (int)strcspn(name, "\n"), name); /* cut if longer */
        break;
    }
    if (f)
        (void)fclose(f); /* nothing was written that could be lost */
}

void bench_machine_init(struct bench_machine *m)
{
    *m = (struct bench_machine){0};
    read_processor(m->processor, sizeof(m->processor));
    (void)read_ticks(&m->before); /* zeros on a system without /proc/stat */
}

double bench_machine_steal(const struct bench_machine *m)
{
    const struct bench_ticks *before = &m->before;
    struct bench_ticks now;
    if (before->all == 0 || !read_ticks(&now) || now.all <= before->all)
        return -1;
    return 100.0 * (double)(now.stolen - before->stolen) / (double)(now.all - before->all);
}

void bench_machine_note_memory(struct bench_machine *m)
{
    const size_t anon_bytes = mem_anon_bytes(), file_bytes = mem_file_bytes();
    m->anon_bytes = size_max(m->anon_bytes, anon_bytes);
    m->file_bytes = size_max(m->file_bytes, file_bytes);
    m->peak_bytes = size_max(m->peak_bytes, mem_resident_bytes());
}

void bench_machine_loading(void *ud, size_t n_done, size_t n_total)
{
    struct bench_machine *m = ud;
    report_progress_percent("loading", n_done, n_total);
    m->anon_bytes = size_max(m->anon_bytes, mem_anon_bytes());
}

void bench_machine_loaded(struct bench_machine *m, struct bn_model *model)
{
    report_progress_erase();
    bench_machine_note_memory(m);
    m->model = model;
    m->load_peak_bytes = mem_peak_bytes();
    m->peak_bytes = size_max(m->peak_bytes, m->load_peak_bytes);
}

static void measure(struct bench_machine *m, enum bench_peak peak)
{
    const double start = clock_seconds();
    if (peak == PEAK_READ)
        m->now[peak] = bn_model_bandwidth(m->model);
    else
        m->now[peak] = bn_model_mac_peak(m->model, peak == PEAK_INT8 ? BN_MAC_INT8 : BN_MAC_F32);
    m->best[peak] = fmax(m->best[peak], m->now[peak]);
    const double end = clock_seconds();
    m->stale_at[peak] = end + STALE_FACTOR * (end - start);
}

double bench_machine_peak(struct bench_machine *m, enum bench_peak peak)
{
    if (clock_seconds() > m->stale_at[peak])
        measure(m, peak);
    return m->now[peak];
}

void bench_machine_measure_all(struct bench_machine *m)
{
    for (enum bench_peak peak = 0; peak < BENCH_N_PEAKS; peak++)
        measure(m, peak);
}
