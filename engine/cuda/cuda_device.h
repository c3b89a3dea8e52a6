/*
 * One GPU: opening it, launching kernels on its stream, and reporting errors. Private to
 * engine/cuda.
 *
 * The driver can report errors late: when a launch crashes, a later call fails. So cuda_launch and
 * cuda_record_error only record the first error, and cuda_finish returns it.
 */
#ifndef ENGINE_CUDA_CUDA_DEVICE_H
#define ENGINE_CUDA_CUDA_DEVICE_H

#include "engine/cuda/cuda_driver.h"
#include "engine/cuda/kernels/args/cuda_args.h"

#include <stdbool.h>
#include <stddef.h>

/* Alignment in bytes of weights, of scratch buffers and of the first recurrent state inside the
 * larger allocations that hold them. */
#define DEVICE_ALIGN 256

#define KERNEL_ID(name, args, n_threads) KERNEL_##name,
enum cuda_kernel { CUDA_KERNELS(KERNEL_ID) KERNEL_N };

/* A fat binary: the kernels compiled for several compute capabilities. The build generates the
 * array with embed_bytes.py. */
extern const uint64_t cuda_fatbin[];
extern const size_t cuda_fatbin_bytes;

#define PROFILE_EVENTS 512 /* launches that are measured before their times are read */

/* Times of kernels. An event is recorded after each launch, and before it if n is 0. */
struct cuda_profile {
    bool on;
    CUevent events[PROFILE_EVENTS + 1];
    enum cuda_kernel kernels[PROFILE_EVENTS]; /* kernels[i] ran between events i and i + 1 */
    size_t n;                                 /* launches since the times were read */
    double seconds[KERNEL_N];                 /* since the last call of backend_ops.profile */
    uint64_t n_calls[KERNEL_N];
};

/* A GPU; cuda_enter makes it current on the calling thread. */
struct cuda_device {
    struct cuda_driver driver;
    CUdevice id;
    CUcontext context; /* the primary context, retained by this object */
    CUmodule module;
    CUfunction functions[KERNEL_N];
    CUstream stream;
    char name[96];
    int n_processors;      /* multiprocessors */
    bool dependent_launch; /* a kernel may start before the previous one has ended */
    /* first error since the last cuda_finish or the last captured graph, or CUDA_SUCCESS */
    CUresult failed;
    const char *failed_name; /* the call that returned `failed` */
    CUresult lost;           /* permanent error of a lost device, or CUDA_SUCCESS */
    struct cuda_profile profile;
};

/* *d must be zero before the call. BN_EDEVICE: no driver, no GPU `index`, a driver or GPU that is
 * too old, or a driver call failed. BN_ENOMEM: the driver has no memory. The caller calls
 * cuda_device_close after an error too. */
bool cuda_device_open(struct cuda_device *d, size_t index, struct bn_error *err);
/* Also frees the events of cuda_profile_open. Accepts a struct of zeros. */
void cuda_device_close(struct cuda_device *d);
/* Makes the GPU current on the calling thread. Call it first in an operation that reports errors.
 * BN_ELOST: the device was lost earlier. BN_EDEVICE: the driver failed. */
bool cuda_enter(struct cuda_device *d, struct bn_error *err);
/* Call after a failure that is described in *err: changes BN_EDEVICE to BN_ELOST if the device no
 * longer works. Always returns false. */
bool cuda_check_lost(struct cuda_device *d, struct bn_error *err);
/* Grid dimensions in thread blocks, and threads per thread block. With n_threads 0 a thread block
 * has the number of threads in CUDA_KERNELS. */
struct cuda_grid {
    size_t x, y, z, n_threads;
};

/* Number of blocks of `unit` items that n items need: n / unit, rounded up. */
static inline size_t grid_blocks(size_t n, size_t unit)
{
    return (n + unit - 1) / unit;
}

/* Enqueues a kernel, unless an error is recorded. `args` is its argument struct, which is
 * copied. */
void cuda_launch(struct cuda_device *d, enum cuda_kernel k, struct cuda_grid grid, void *args);
/* Records the result of a call named `what` (static text) if it is an error and none is recorded
 * yet. */
void cuda_record_error(struct cuda_device *d, CUresult result, const char *what);
/* Waits for the stream, then clears the recorded error. BN_EDEVICE: there was one. */
bool cuda_finish(struct cuda_device *d, struct bn_error *err);

/* cuda_profile.c: measures every later launch. No kernel then starts before the previous one has
 * ended. BN_EDEVICE, BN_ENOMEM: an event could not be created. */
bool cuda_profile_open(struct cuda_device *d, struct bn_error *err);
/* Destroys the events that exist; only for cuda_device_close. */
void cuda_profile_close(struct cuda_device *d);
/* Called around each launch if profile.on. */
void cuda_profile_before(struct cuda_device *d);
void cuda_profile_after(struct cuda_device *d, enum cuda_kernel k);
/* Adds the times of the launches since the last call to `seconds` and `n_calls`. The caller waits
 * for the stream first: the time of an unfinished launch is lost. */
void cuda_profile_read(struct cuda_device *d);
/* The name in CUDA_KERNELS, such as "linear_one". Static text. */
const char *cuda_kernel_name(enum cuda_kernel k);

/* cuda_selftest.c: compares a small layer with plain C. BN_EDEVICE: wrong results or a failed call.
 * BN_ENOMEM: no memory on the host or the GPU. */
bool cuda_selftest(struct cuda_device *d, struct bn_error *err);

#endif
