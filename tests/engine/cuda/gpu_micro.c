/*
 * Microbenchmarks of the GPU, for run_on_gpu.sh:
 *
 *   gpu_micro
 *       prints a line for each measurement to stderr, and at the end all of them as one line of
 *       JSON to stdout. Exit status 1: a measurement failed or computed a wrong result.
 *
 * Measurements: the gap between dependent launches, a barrier for the whole grid, and the rate of
 * reading memory with plain loads and with a ring of bulk copies. They show if one kernel for a
 * whole token would be faster than one launch for each step. On the stand-in for the driver library
 * nothing is measured.
 */
#include "engine/cuda/cuda_device.h"
#include "tests/engine/cuda/gpu_micro_args.h"
#include "tests/engine/cuda/gpu_micro_fatbin.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_RUNS 7 /* the median counts */
#define N_WORDS ((uint64_t)1 << 28)
/* The numbers of launches or barriers in two measurements. The time of one launch or barrier is the
 * difference of the two times divided by N_MANY - N_FEW, which removes the fixed costs. */
#define N_FEW 200
#define N_MANY 1200
#define RING_MAJOR 9 /* compute capability with bulk copies */

enum kernel { EMPTY, BARRIER, FILL, LOADS, RING, N_KERNELS };
enum launch { PLAIN, EARLY, COOPERATIVE };

struct micro {
    struct cuda_device dev;
    CUmodule module;
    CUfunction functions[N_KERNELS];
    CUevent start, end;
    CUdeviceptr words, small; /* the buffer that is read; counters and slots */
    char rows[32768];         /* JSON objects */
    size_t n_used;
    bool failed;
};

/* Launches that are measured together. The host does not wait between them. */
struct work {
    enum kernel kernel;
    enum launch launch;
    unsigned n_blocks, n_threads, shared_bytes;
    void *args;
    unsigned n;        /* launches */
    CUgraphExec graph; /* NULL: the launches go to the stream */
};

__attribute__((format(printf, 2, 3))) static void add_row(struct micro *m, const char *format, ...)
{
    char row[400];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(row, sizeof row, format, list);
    va_end(list);
    fprintf(stderr, "%s\n", row);
    if (m->n_used + strlen(row) + 2 > sizeof m->rows) {
        m->failed = true;
        return;
    }
    m->n_used += (size_t)snprintf(m->rows + m->n_used, sizeof m->rows - m->n_used, "%s%s",
                                  m->n_used ? "," : "", row);
}

/* Adds the reason of a failure. The text gets no characters that JSON would have to escape. */
static void add_failure(struct micro *m, const char *what, struct bn_error *err)
{
    for (char *c = err->text; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
            *c = '\'';
    m->failed = true;
    add_row(m, "{\"what\":\"%s\",\"error\":\"%.300s\"}", what, err->text);
}

static bool ok(struct micro *m, CUresult result, const char *what, struct bn_error *err)
{
    return cuda_ok(&m->dev.driver, result, what, err);
}

static bool launch(struct micro *m, const struct work *w, struct bn_error *err)
{
    void *params[] = {w->args};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                   .value = {.programmaticStreamSerializationAllowed = 1}};
    if (w->launch == COOPERATIVE)
        attribute =
            (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
    const CUlaunchConfig config = {.gridDimX = w->n_blocks,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = w->n_threads,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .sharedMemBytes = w->shared_bytes,
                                   .hStream = m->dev.stream,
                                   .attrs = &attribute,
                                   .numAttrs = w->launch == PLAIN ? 0 : 1};
    bool good = true;
    for (unsigned i = 0; good && i < w->n; i++)
        good = ok(m, m->dev.driver.cuLaunchKernelEx(&config, m->functions[w->kernel], params, NULL),
                  "launching a kernel", err);
    return good;
}

/* Captures the launches as w->graph. */
static bool capture(struct micro *m, struct work *w, struct bn_error *err)
{
    struct cuda_driver *d = &m->dev.driver;
    CUgraph graph = NULL;
    if (!ok(m, d->cuStreamBeginCapture(m->dev.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
            "capturing a graph", err))
        return false;
    bool good = launch(m, w, err);
    const CUresult ended = d->cuStreamEndCapture(m->dev.stream, &graph);
    good = good && ok(m, ended, "capturing a graph", err) &&
           ok(m, d->cuGraphInstantiateWithFlags(&w->graph, graph, 0), "making a graph executable",
              err);
    if (graph)
        (void)d->cuGraphDestroy(graph);
    return good;
}

static bool run(struct micro *m, const struct work *w, struct bn_error *err)
{
    if (!w->graph)
        return launch(m, w, err);
    return ok(m, m->dev.driver.cuGraphLaunch(w->graph, m->dev.stream), "launching a graph", err);
}

static int compare(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The median time of the work in seconds. The first run is not measured. Before each run the first
 * word of m->small becomes zero. */
static bool measure(struct micro *m, const struct work *w, double *seconds, struct bn_error *err)
{
    struct cuda_driver *d = &m->dev.driver;
    float ms[N_RUNS + 1];
    for (size_t i = 0; i <= N_RUNS; i++)
        if (!ok(m, d->cuMemsetD8(m->small, 0, sizeof(uint32_t)), "clearing a counter", err) ||
            !ok(m, d->cuEventRecord(m->start, m->dev.stream), "recording an event", err) ||
            !run(m, w, err) ||
            !ok(m, d->cuEventRecord(m->end, m->dev.stream), "recording an event", err) ||
            !ok(m, d->cuStreamSynchronize(m->dev.stream), "computing", err) ||
            !ok(m, d->cuEventElapsedTime(&ms[i], m->start, m->end), "reading a time", err))
            return false;
    qsort(ms + 1, N_RUNS, sizeof ms[0], compare);
    *seconds = (double)ms[1 + N_RUNS / 2] / 1e3;
    return true;
}

static bool measure_launches(struct micro *m, struct work w, unsigned n, bool with_graph,
                             double *seconds, struct bn_error *err)
{
    w.n = n;
    const bool good = (!with_graph || capture(m, &w, err)) && measure(m, &w, seconds, err);
    if (w.graph)
        (void)m->dev.driver.cuGraphExecDestroy(w.graph);
    return good;
}

/* The time from one launch to the next one of empty kernels, which wait for each other. */
static void measure_gap(struct micro *m, enum launch how, bool with_graph, unsigned n_blocks)
{
    struct micro_empty_args args = {0};
    const struct work w = {EMPTY, how, n_blocks, MICRO_THREADS, 0, &args, 0, NULL};
    struct bn_error err;
    double few = 0, many = 0;
    if (measure_launches(m, w, N_FEW, with_graph, &few, &err) &&
        measure_launches(m, w, N_MANY, with_graph, &many, &err))
        add_row(m, "{\"what\":\"gap\",\"graph\":%s,\"early\":%s,\"blocks\":%u,\"us\":%.3f}",
                with_graph ? "true" : "false", how == EARLY ? "true" : "false", n_blocks,
                (many - few) / (N_MANY - N_FEW) * 1e6);
    else
        add_failure(m, "gap", &err);
}

/* Runs the barriers once with checks: each block writes a slot and reads that of the next block. */
static bool check_barrier(struct micro *m, struct work w, struct micro_barrier_args args,
                          struct bn_error *err)
{
    struct cuda_driver *d = &m->dev.driver;
    uint32_t found[2]; /* the counter and the errors */
    args.checks = 1;
    w.args = &args;
    if (!ok(m, d->cuMemsetD8(m->small, 0, sizeof found), "clearing a counter", err) ||
        !launch(m, &w, err) || !ok(m, d->cuStreamSynchronize(m->dev.stream), "computing", err) ||
        !ok(m, d->cuMemcpyDtoH(found, m->small, sizeof found), "reading a result", err))
        return false;
    return (found[0] == 2 * args.n_rounds * w.n_blocks && found[1] == 0) ||
           bn_fail(err, BN_EDEVICE, "%u arrivals and %u errors after %u barriers of %u blocks",
                   found[0], found[1], 2 * args.n_rounds, w.n_blocks);
}

/* The time of one barrier. A cooperative launch fails unless all blocks can run at once. */
static void measure_barrier(struct micro *m, unsigned n_blocks)
{
    struct micro_barrier_args args = {.counter = (uint32_t *)(uintptr_t)m->small,
                                      .n_errors = (uint32_t *)(uintptr_t)m->small + 1,
                                      .slots = (uint32_t *)(uintptr_t)m->small + 64,
                                      .n_rounds = N_FEW / 2,
                                      .checks = 0};
    const struct work w = {BARRIER, COOPERATIVE, n_blocks, MICRO_THREADS, 0, &args, 1, NULL};
    struct bn_error err;
    double few = 0, many = 0;
    bool good = check_barrier(m, w, args, &err) && measure(m, &w, &few, &err);
    args.n_rounds = N_MANY / 2;
    good = good && measure(m, &w, &many, &err);
    if (good)
        add_row(m, "{\"what\":\"barrier\",\"blocks\":%u,\"us\":%.3f}", n_blocks,
                (many - few) / (N_MANY - N_FEW) * 1e6);
    else
        add_failure(m, "barrier", &err);
}

/* Measures a kernel that reads the buffer, and compares its sum with that of all words. */
static bool measure_read(struct micro *m, const struct work *w, double *gb_per_s,
                         struct bn_error *err)
{
    const uint64_t n_pairs = N_WORDS / 2 * (N_WORDS - 1); /* 0 + 1 + ... + (N_WORDS - 1) */
    const uint32_t wanted = (uint32_t)n_pairs * 2654435761u;
    uint32_t sum = 0;
    double seconds = 1;
    if (!measure(m, w, &seconds, err) ||
        !ok(m, m->dev.driver.cuMemcpyDtoH(&sum, m->small, sizeof sum), "reading a result", err))
        return false;
    *gb_per_s = (double)N_WORDS * sizeof(uint32_t) / seconds / 1e9;
    return sum == wanted ||
           bn_fail(err, BN_EDEVICE, "the sum of the words is %08x instead of %08x", sum, wanted);
}

static void measure_loads(struct micro *m, struct micro_read_args args, unsigned n_blocks)
{
    const struct work w = {LOADS, PLAIN, n_blocks, MICRO_THREADS, 0, &args, 1, NULL};
    struct bn_error err;
    double rate = 0;
    if (measure_read(m, &w, &rate, &err))
        add_row(m, "{\"what\":\"loads\",\"blocks\":%u,\"gb_per_s\":%.1f}", n_blocks, rate);
    else
        add_failure(m, "loads", &err);
}

static void measure_ring(struct micro *m, struct micro_read_args args, unsigned n_blocks)
{
    const unsigned n_bytes = RING_BARRIER_BYTES + args.n_stages * args.stage_bytes;
    const struct work w = {RING,    PLAIN, n_blocks, (RING_CONSUMERS + 1) * 32,
                           n_bytes, &args, 1,        NULL};
    struct bn_error err;
    double rate = 0;
    if (ok(m,
           m->dev.driver.cuFuncSetAttribute(
               m->functions[RING], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)n_bytes),
           "reserving shared memory", &err) &&
        measure_read(m, &w, &rate, &err))
        add_row(m,
                "{\"what\":\"ring\",\"blocks\":%u,\"stages\":%u,\"stage_bytes\":%u,"
                "\"gb_per_s\":%.1f}",
                n_blocks, args.n_stages, args.stage_bytes, rate);
    else
        add_failure(m, "ring", &err);
}

static bool attribute(struct micro *m, CUdevice_attribute which, unsigned *value,
                      struct bn_error *err)
{
    int n = 0;
    const bool good = ok(m, m->dev.driver.cuDeviceGetAttribute(&n, which, m->dev.id),
                         "reading an attribute of the GPU", err);
    *value = (unsigned)n;
    return good;
}

/* Rings of every size that fits in shared memory, with one and with two blocks per
 * multiprocessor. */
static void measure_rings(struct micro *m, struct micro_read_args args)
{
    static const uint32_t sizes[] = {2048, 4096, 8192, 16384, 32768, 65536};
    static const uint32_t stages[] = {2, 3, 4, 6, 8, 12, RING_MAX_STAGES};
    const unsigned reserved = 1024; /* bytes of shared memory of each block for the driver */
    struct bn_error err;
    unsigned major = 0, block_bytes = 0, all_bytes = 0;
    if (!attribute(m, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major, &err) ||
        !attribute(m, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &block_bytes, &err) ||
        !attribute(m, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &all_bytes, &err)) {
        add_failure(m, "ring", &err);
        return;
    }
    if (major < RING_MAJOR)
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t j = 0; j < sizeof stages / sizeof stages[0]; j++) {
            args.stage_bytes = sizes[i];
            args.n_stages = stages[j];
            const unsigned n_bytes = RING_BARRIER_BYTES + sizes[i] * stages[j];
            if (n_bytes <= block_bytes)
                measure_ring(m, args, (unsigned)m->dev.n_processors);
            if (2 * (n_bytes + reserved) <= all_bytes)
                measure_ring(m, args, 2 * (unsigned)m->dev.n_processors);
        }
}

static void measure_reads(struct micro *m)
{
    const unsigned n = (unsigned)m->dev.n_processors;
    struct micro_read_args args = {.words = (uint32_t *)(uintptr_t)m->words,
                                   .n_words = N_WORDS,
                                   .sum = (uint32_t *)(uintptr_t)m->small,
                                   .n_stages = 0,
                                   .stage_bytes = 0};
    const struct work fill = {FILL, PLAIN, n, MICRO_THREADS, 0, &args, 1, NULL};
    struct bn_error err;
    if (!launch(m, &fill, &err)) {
        add_failure(m, "fill", &err);
        return;
    }
    for (unsigned per = 1; per <= 8; per *= 2)
        measure_loads(m, args, per * n);
    measure_rings(m, args);
}

static bool open_all(struct micro *m, struct bn_error *err)
{
    static const char *const names[N_KERNELS] = {"micro_empty", "micro_barrier", "micro_fill",
                                                 "micro_loads", "micro_ring"};
    struct cuda_driver *d = &m->dev.driver;
    const size_t small_bytes = (64 + 2 * (size_t)m->dev.n_processors) * sizeof(uint32_t);
    if (!ok(m, d->cuModuleLoadData(&m->module, gpu_micro_fatbin), "loading the kernels", err))
        return false;
    for (size_t i = 0; i < N_KERNELS; i++)
        if (!ok(m, d->cuModuleGetFunction(&m->functions[i], m->module, names[i]), names[i], err))
            return false;
    return ok(m, d->cuEventCreate(&m->start, CU_EVENT_DEFAULT), "creating an event", err) &&
           ok(m, d->cuEventCreate(&m->end, CU_EVENT_DEFAULT), "creating an event", err) &&
           ok(m, d->cuMemAlloc(&m->small, small_bytes), "memory for counters", err) &&
           ok(m, d->cuMemAlloc(&m->words, N_WORDS * sizeof(uint32_t)), "memory to read", err);
}

static void measure_all(struct micro *m)
{
    const unsigned n = (unsigned)m->dev.n_processors;
    for (unsigned with_graph = 0; with_graph < 2; with_graph++)
        for (unsigned n_blocks = 1; n_blocks <= n; n_blocks += n > 1 ? n - 1 : 1) {
            measure_gap(m, PLAIN, with_graph, n_blocks);
            if (m->dev.dependent_launch)
                measure_gap(m, EARLY, with_graph, n_blocks);
        }
    measure_barrier(m, n);
    measure_barrier(m, 2 * n);
    measure_reads(m);
}

/* The end of the process frees what is still allocated. */
int main(void)
{
    static struct micro m;
    struct bn_error err;
    const char *skipped = "";
    if (!cuda_device_open(&m.dev, 0, &err))
        add_failure(&m, "open", &err);
    else if (dlsym(m.dev.driver.library, "fake_cuda_counts"))
        skipped = "\"skipped\":\"no device, only the stand-in for the driver\",";
    else if (!open_all(&m, &err))
        add_failure(&m, "open", &err);
    else
        measure_all(&m);
    printf("{%s\"rows\":[%s]}\n", skipped, m.rows);
    cuda_device_close(&m.dev);
    return m.failed ? 1 : 0;
}
