/*
 * A stand-in for the driver library libcuda.so.1, for machines without a GPU. Device memory is host
 * memory, filled with a pattern when it is allocated. The twin (the CUDA kernels compiled for the
 * host) runs the launches. So tests run the whole backend, and the sanitizers check its kernels.
 * Every misuse of the interface aborts the program.
 *
 * Environment variables: FAKE_CUDA is the kind of machine (`kinds` below), FAKE_CUDA_BYTES its
 * memory. FAKE_CUDA_ORDER=down runs the threads of a block in descending order. FAKE_CUDA_BREAK is
 * a number of launches after which the device fails, or the path of a file: once the file exists,
 * the device fails after the number of launches in it. As on a real device, a later call reports
 * the failure, and all calls fail until the context is destroyed. With FAKE_CUDA_WRONG_TOKEN,
 * results for the ninth token of a pass are wrong.
 */
#include "tests/engine/cuda/fake_cuda.h"
#include "engine/cuda/kernels/args/cuda_args.h"
#include "tests/engine/cuda/twin_run.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_BYTES ((size_t)1 << 30)
#define MAX_BUFFERS 256
#define MAX_OPS 4096
#define MAX_ARG_BYTES 512

struct buffer {
    uint8_t *at;
    size_t n_bytes;
};

/* A launch or a copy, executed at once or when a graph is launched. */
struct op {
    const struct twin_kernel *kernel; /* NULL: a copy */
    struct twin_grid grid;
    uint8_t args[MAX_ARG_BYTES];
    uint8_t *to;
    const uint8_t *from;
    size_t n_bytes;
};

struct CUgraph_st {
    size_t n_ops;
    struct op *ops;
};
struct CUgraphExec_st {
    struct CUgraph_st graph;
};
struct CUstream_st {
    struct CUgraph_st *recording;
    bool is_invalid; /* a call failed since the recording began */
};

static struct {
    bool started, has_context, is_broken;
    size_t n_retained; /* references to the primary context */
    struct buffer buffers[MAX_BUFFERS];
    size_t n_used_bytes;
    struct fake_cuda_counts counts;
    long n_events;   /* recorded */
    long n_launches; /* since cuInit */
    long break_at;   /* launch that breaks the device, from the file; 0: not read yet */
} fake;

struct fake_cuda_counts fake_cuda_counts(void)
{
    fake.counts.n_used_bytes = fake.n_used_bytes;
    return fake.counts;
}

static void misuse(const char *what)
{
    fprintf(stderr, "fake driver: %s\n", what);
    abort();
}

static const char *const kinds[] = {
    "normal",           /* as without FAKE_CUDA */
    "no_device",        /* cuInit reports that there is no GPU */
    "hidden",           /* cuDeviceGetCount returns 0 GPUs */
    "broken",           /* cuInit fails */
    "old_driver",       /* CUDA 11.4 */
    "old_gpu",          /* compute capability 7.5 */
    "wrong",            /* linear_many computes a wrong value */
    "old_ptx",          /* kernels from PTX for 8.0, which do not wait in a dependent launch */
    "no_early_capture", /* a dependent launch cannot be captured */
    "no_capture",       /* nothing can be captured */
    "no_instance",      /* a captured graph cannot be made executable */
    "fatal_capture",    /* a capture breaks the device */
};

static bool machine_is(const char *kind)
{
    const char *text = getenv("FAKE_CUDA");
    size_t i = 0;
    while (text && i < sizeof kinds / sizeof kinds[0] && strcmp(text, kinds[i]) != 0)
        i++;
    if (i == sizeof kinds / sizeof kinds[0])
        misuse("an unknown kind of machine");
    return text && strcmp(text, kind) == 0;
}

static size_t total_bytes(void)
{
    const char *text = getenv("FAKE_CUDA_BYTES");
    return text ? (size_t)strtoull(text, NULL, 10) : DEFAULT_BYTES;
}

/* Every call that needs a context starts with this check. */
static CUresult in_context(void)
{
    if (!fake.started || !fake.has_context)
        misuse("a call without a context");
    return fake.is_broken ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}
#define IN_CONTEXT()                                                                               \
    do {                                                                                           \
        const CUresult state = in_context();                                                       \
        if (state != CUDA_SUCCESS)                                                                 \
            return state;                                                                          \
    } while (0)

/* Counts a launch. Returns true for the launch that breaks the device and for all later ones. */
static bool launch_breaks(void)
{
    const char *const limit = getenv("FAKE_CUDA_BREAK");
    long n_more = 0;
    fake.n_launches++;
    if (!limit || fake.is_broken)
        return fake.is_broken;
    if (limit[0] != '/') {
        fake.is_broken = fake.n_launches > atol(limit);
        return fake.is_broken;
    }
    FILE *file = fake.break_at == 0 ? fopen(limit, "r") : NULL;
    if (file) {
        if (fscanf(file, "%ld", &n_more) == 1)
            fake.break_at = fake.n_launches + n_more;
        (void)fclose(file); /* opened for reading only */
    }
    fake.is_broken = fake.break_at > 0 && fake.n_launches >= fake.break_at;
    return fake.is_broken;
}

/* Aborts unless the n bytes from `at` lie in one buffer. */
static uint8_t *device_bytes(CUdeviceptr at, size_t n)
{
    for (size_t i = 0; i < MAX_BUFFERS; i++) {
        const struct buffer *b = &fake.buffers[i];
        const uintptr_t begin = (uintptr_t)b->at;
        if (b->at && at >= begin && n <= b->n_bytes && at - begin <= b->n_bytes - n)
            return b->at + (at - begin);
    }
    misuse("an address that is not in device memory");
    return NULL;
}

CUresult cuInit(unsigned flags)
{
    (void)flags;
    if (machine_is("no_device"))
        return CUDA_ERROR_NO_DEVICE;
    if (machine_is("broken"))
        return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    fake.started = true;
    fake.n_launches = fake.break_at = 0;
    return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *version)
{
    *version = machine_is("old_driver") ? 11040 : CUDA_VERSION;
    return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == CUDA_ERROR_OUT_OF_MEMORY            ? "out of memory"
            : error == CUDA_ERROR_ILLEGAL_ADDRESS        ? "an illegal memory access"
            : error == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH ? "driver and library do not match"
                                                         : "another error";
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *count)
{
    *count = machine_is("hidden") ? 0 : 1;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
    (void)dev;
    (void)snprintf(name, (size_t)len, "Twin GPU");
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attribute, CUdevice dev)
{
    (void)dev;
    *pi = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
              ? (machine_is("old_gpu") ? 7 : 9)
          : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
              ? (machine_is("old_gpu") ? 5 : 0)
              : 4;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice dev)
{
    (void)dev;
    *context = (CUcontext)&fake;
    fake.n_retained++;
    return CUDA_SUCCESS;
}
/* Releasing the last reference destroys the context. Memory that the backend did not free remains
 * counted, so that tests detect it. On a broken device, memory cannot be freed and does not
 * count. */
CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
    (void)dev;
    if (fake.n_retained == 0)
        misuse("releasing a context that is not retained");
    if (--fake.n_retained > 0)
        return CUDA_SUCCESS;
    fake.has_context = false;
    if (!fake.is_broken)
        return CUDA_SUCCESS;
    for (size_t i = 0; i < MAX_BUFFERS; i++) {
        free(fake.buffers[i].at);
        fake.buffers[i] = (struct buffer){0};
    }
    fake.n_used_bytes = 0;
    fake.is_broken = false;
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context)
{
    fake.has_context = context != NULL;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t *n_free, size_t *n_total)
{
    IN_CONTEXT();
    *n_total = total_bytes();
    *n_free = *n_total > fake.n_used_bytes ? *n_total - fake.n_used_bytes : 0;
    return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr *at, size_t n)
{
    void *p;
    size_t i = 0;
    IN_CONTEXT();
    while (i < MAX_BUFFERS && fake.buffers[i].at)
        i++;
    if (n == 0 || i == MAX_BUFFERS)
        misuse("an empty allocation, or too many allocations");
    *at = 1; /* the value after a failure is undefined */
    if (fake.n_used_bytes > total_bytes() || n > total_bytes() - fake.n_used_bytes ||
        posix_memalign(&p, 256, n) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(p, 0xa5, n);
    fake.buffers[i] = (struct buffer){p, n};
    fake.n_used_bytes += n;
    *at = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr at)
{
    IN_CONTEXT();
    for (size_t i = 0; i < MAX_BUFFERS; i++)
        if (fake.buffers[i].at && (uintptr_t)fake.buffers[i].at == at) {
            free(fake.buffers[i].at);
            fake.n_used_bytes -= fake.buffers[i].n_bytes;
            fake.buffers[i] = (struct buffer){0};
            return CUDA_SUCCESS;
        }
    misuse("freeing memory that was not allocated");
    return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemHostAlloc(void **pp, size_t n, unsigned flags)
{
    IN_CONTEXT();
    if (flags != CU_MEMHOSTALLOC_DEVICEMAP)
        misuse("host memory that kernels cannot read");
    *pp = malloc(n);
    return *pp ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr *at, void *p, unsigned flags)
{
    (void)flags;
    *at = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void *p)
{
    free(p);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t n)
{
    IN_CONTEXT();
    memcpy(device_bytes(to, n), from, n);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t n)
{
    IN_CONTEXT();
    memcpy(to, device_bytes(from, n), n);
    return CUDA_SUCCESS;
}
CUresult cuMemsetD8(CUdeviceptr at, unsigned char value, size_t n)
{
    IN_CONTEXT();
    memset(device_bytes(at, n), value, n);
    return CUDA_SUCCESS;
}

static void run_op(const struct op *op)
{
    const char *order = getenv("FAKE_CUDA_ORDER");
    if (fake.is_broken || (op->kernel && launch_breaks()))
        return;
    if (op->kernel)
        twin_launch(op->kernel, op->grid, op->args,
                    order && strcmp(order, "down") == 0 ? TWIN_DESCENDING : TWIN_ASCENDING);
    else
        memcpy(op->to, op->from, op->n_bytes);
    if (op->kernel && getenv("FAKE_CUDA_WRONG_TOKEN") &&
        strcmp(op->kernel->name, "embed_rows") == 0) {
        struct embed_args args;
        memcpy(&args, op->args, sizeof args);
        if (op->grid.n_blocks[0] > 8)
            args.h[8 * args.stride] += 1e-2f;
    }
    if (op->kernel && machine_is("wrong") && strcmp(op->kernel->name, "linear_many") == 0) {
        struct linear_args args;
        memcpy(&args, op->args, sizeof args);
        args.y[args.n_rows - 1] += 1e-3f;
    }
}

static void do_op(CUstream stream, const struct op *op)
{
    struct CUgraph_st *graph = stream->recording;
    if (!graph) {
        run_op(op);
        return;
    }
    if (graph->n_ops == MAX_OPS)
        misuse("too many launches in a graph");
    graph->ops[graph->n_ops++] = *op;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t n, CUstream stream)
{
    IN_CONTEXT();
    const struct op op = {.to = device_bytes(to, n), .from = from, .n_bytes = n};
    do_op(stream, &op);
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    uint32_t magic;
    IN_CONTEXT();
    memcpy(&magic, image, sizeof magic);
    if (magic != 0xba55ed50u)
        misuse("the kernels are not a fatbin");
    *module = (CUmodule)&fake;
    return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module)
{
    (void)module;
    return in_context();
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    const struct twin_kernel *kernel = twin_find(name);
    if (!kernel)
        return CUDA_ERROR_NOT_FOUND;
    memcpy(function, &kernel, sizeof kernel);
    return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attribute, CUfunction f)
{
    (void)f;
    IN_CONTEXT();
    if (attribute != CU_FUNC_ATTRIBUTE_PTX_VERSION)
        misuse("an attribute of a function that this driver does not have");
    *pi = machine_is("old_ptx") ? 80 : 90;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value)
{
    (void)f;
    IN_CONTEXT();
    if (attribute != CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT || value < -1 ||
        value > 100)
        misuse("an attribute of a function that cannot be set");
    return CUDA_SUCCESS;
}

/* A launch that need not wait for the previous kernel. */
static bool is_early(const CUlaunchConfig *c)
{
    for (unsigned i = 0; i < c->numAttrs; i++)
        if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
            c->attrs[i].value.programmaticStreamSerializationAllowed)
            return true;
    return false;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
    struct op op = {.grid = {{c->gridDimX, c->gridDimY, c->gridDimZ}, c->blockDimX}};
    IN_CONTEXT();
    memcpy(&op.kernel, &f, sizeof op.kernel);
    if (c->blockDimY != 1 || c->blockDimZ != 1 || c->sharedMemBytes != 0 || extra ||
        op.kernel->n_arg_bytes > MAX_ARG_BYTES)
        misuse("unsupported launch parameters");
    if (c->gridDimX == 0 || c->gridDimY == 0 || c->gridDimZ == 0 || c->gridDimX > INT32_MAX ||
        c->gridDimY > 65535 || c->gridDimZ > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_early(c) && machine_is("old_ptx"))
        misuse("a dependent launch of a kernel that does not wait");
    if (is_early(c) && c->hStream->recording && machine_is("no_early_capture")) {
        c->hStream->is_invalid = true;
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    fake.counts.n_early += is_early(c);
    memcpy(op.args, params[0], op.kernel->n_arg_bytes);
    do_op(c->hStream, &op);
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    *stream = calloc(1, sizeof **stream);
    return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuStreamDestroy(CUstream stream)
{
    free(stream);
    return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream)
{
    IN_CONTEXT();
    if (stream && stream->recording)
        misuse("waiting for a stream that captures");
    return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    (void)mode;
    if (stream->recording)
        misuse("a second capture on one stream");
    stream->is_invalid = machine_is("no_capture") || machine_is("fatal_capture");
    stream->recording = calloc(1, sizeof *stream->recording);
    stream->recording->ops = calloc(MAX_OPS, sizeof(struct op));
    return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    *graph = stream->recording;
    stream->recording = NULL;
    if (!*graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (!stream->is_invalid)
        return CUDA_SUCCESS;
    (void)cuGraphDestroy(*graph);
    *graph = NULL;
    fake.is_broken = machine_is("fatal_capture");
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    (void)flags;
    if (machine_is("no_instance"))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *exec = calloc(1, sizeof **exec);
    (*exec)->graph.n_ops = graph->n_ops;
    (*exec)->graph.ops = malloc(graph->n_ops * sizeof(struct op) + 1);
    memcpy((*exec)->graph.ops, graph->ops, graph->n_ops * sizeof(struct op));
    return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    IN_CONTEXT();
    fake.counts.n_graphs++;
    for (size_t i = 0; i < exec->graph.n_ops; i++)
        do_op(stream, &exec->graph.ops[i]);
    return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph)
{
    free(graph->ops);
    free(graph);
    return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    free(exec->graph.ops);
    free(exec);
    return CUDA_SUCCESS;
}

/* Each event is one millisecond after the previous one. */
struct CUevent_st {
    float ms;
};
CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    IN_CONTEXT();
    *event = calloc(1, sizeof **event);
    return *event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuEventRecord(CUevent event, CUstream stream)
{
    IN_CONTEXT();
    if (stream->recording)
        misuse("an event in a graph");
    event->ms = (float)++fake.n_events;
    return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    IN_CONTEXT();
    if (start->ms == 0 || end->ms == 0)
        misuse("the time of an event that is not recorded");
    *ms = end->ms - start->ms;
    return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}
