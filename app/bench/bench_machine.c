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
#include <stdlib.h>
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

/* Linux on ARM gives no name, but these numbers, in this order for each core. */
struct core {
    unsigned long implementer, variant, part, revision;
};
#define MAX_KINDS 8 /* of cores; processors have at most four */

static void add_kind(struct core kinds[MAX_KINDS], size_t *n, const struct core *core)
{
    for (size_t i = 0; i < *n; i++)
        if (memcmp(&kinds[i], core, sizeof(*core)) == 0)
            return;
    if (*n < MAX_KINDS)
        kinds[(*n)++] = *core;
}

/* "ARM 0x41:0xd46 r0p1, 0x41:0xd4d r0p1": implementer, part, variant and revision. It is cut if it
 * does not fit. */
static void name_kinds(const struct core *kinds, size_t n_kinds, char *out, size_t out_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < n_kinds && n < out_bytes; i++)
        n += (size_t)snprintf(out + n, out_bytes - n, "%s 0x%lx:0x%lx r%lup%lu",
                              i > 0 ? "," : "ARM", kinds[i].implementer, kinds[i].part,
                              kinds[i].variant, kinds[i].revision);
}

/* Whether the line has this key. Then *value is the text behind the colon, without the newline. */
static bool has_key(char *line, const char *key, const char **value)
{
    char *const colon = strchr(line, ':');
    if (!colon || strncmp(line, key, strlen(key)) != 0)
        return false;
    colon[strcspn(colon, "\n")] = '\0';
    *value = colon + 1 + strspn(colon + 1, " ");
    return true;
}

void bench_machine_read_name(FILE *cpuinfo, char *out, size_t out_bytes)
{
    char line[200];
    const char *value;
    struct core core = {0}, kinds[MAX_KINDS];
    size_t n_kinds = 0;
    out[0] = '\0';
    while (fgets(line, sizeof(line), cpuinfo)) {
        if (has_key(line, "model name", &value)) {
            (void)snprintf(out, out_bytes, "%s", value); /* cut if longer */
            return;
        }
        if (has_key(line, "CPU implementer", &value)) {
            core.implementer = strtoul(value, NULL, 0);
        } else if (has_key(line, "CPU variant", &value)) {
            core.variant = strtoul(value, NULL, 0);
        } else if (has_key(line, "CPU part", &value)) {
            core.part = strtoul(value, NULL, 0);
        } else if (has_key(line, "CPU revision", &value)) {
            core.revision = strtoul(value, NULL, 0);
            add_kind(kinds, &n_kinds, &core);
        }
    }
    name_kinds(kinds, n_kinds, out, out_bytes);
}

static void read_processor(char *out, size_t out_bytes)
{
    FILE *const f = fopen("/proc/cpuinfo", "r");
    if (!f)
        return; /* unknown */
    bench_machine_read_name(f, out, out_bytes);
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
