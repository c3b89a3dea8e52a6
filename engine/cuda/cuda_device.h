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
#include "engine/cuda/kernels/cuda_args.h"

#include <stdbool.h>
#include <stddef.h>

#define DEVICE_ALIGN 256 /* bytes; alignment of every buffer inside a larger allocation */

#define KERNEL_ID(name, args, n_threads) KERNEL_##name,
enum cuda_kernel { CUDA_KERNELS(KERNEL_ID) KERNEL_N };

/* The compiled kernels for several devices. The build generates the array with embed_bytes.py. */
extern const uint64_t cuda_fatbin[];
extern const size_t cuda_fatbin_bytes;

#define PROFILE_EVENTS 512 /* launches that are measured before their times are read */

/* Times of kernels. An event is recorded before the first launch and after each one. */
struct cuda_profile {
    bool on;
    CUevent events[PROFILE_EVENTS + 1];
    enum cuda_kernel kernels[PROFILE_EVENTS]; /* kernels[i] ran between events i and i + 1 */
    size_t n;                                 /* launches since the times were read */
    double seconds[KERNEL_N];
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
    CUresult failed;       /* first error since cuda_finish, and the call that failed */
    const char *failed_name;
    CUresult lost; /* permanent error of a lost device, or CUDA_SUCCESS */
    struct cuda_profile profile;
};

/* BN_EDEVICE: no driver, no GPU `index`, or an old one. BN_ENOMEM. */
bool cuda_device_open(struct cuda_device *d, size_t index, struct bn_error *err);
void cuda_device_close(struct cuda_device *d);
/* Must be the first call of every operation. BN_ELOST: the device was lost earlier. BN_EDEVICE: the
 * driver failed. */
bool cuda_enter(struct cuda_device *d, struct bn_error *err);
/* Call after a failure: changes BN_EDEVICE to BN_ELOST if the device no longer works. Always
 * returns false. */
bool cuda_check_lost(struct cuda_device *d, struct bn_error *err);
/* Grid dimensions in thread blocks, and threads per block; n_threads 0 is the default of the
 * kernel. */
struct cuda_grid {
    size_t x, y, z, n_threads;
};

/* Number of blocks of `unit` items for n items. */
static inline size_t grid_blocks(size_t n, size_t unit)
{
    return (n + unit - 1) / unit;
}

/* Enqueues a kernel, unless an error is recorded. */
void cuda_launch(struct cuda_device *d, enum cuda_kernel k, struct cuda_grid grid, void *args);
/* Records the result of a call named `what` if it is an error and none is recorded yet. */
void cuda_record_error(struct cuda_device *d, CUresult result, const char *what);
/* Waits for the stream, then returns and clears the recorded error. */
bool cuda_finish(struct cuda_device *d, struct bn_error *err);

/* cuda_profile.c: measures every later launch. Kernels then start one by one. */
bool cuda_profile_open(struct cuda_device *d, struct bn_error *err);
void cuda_profile_close(struct cuda_device *d);
/* Called around each launch if profile.on. */
void cuda_profile_before(struct cuda_device *d);
void cuda_profile_after(struct cuda_device *d, enum cuda_kernel k);
/* Adds up the times of all launches. The stream must have finished, or finishes here. */
void cuda_profile_read(struct cuda_device *d);
/* "linear_one" */
const char *cuda_kernel_name(enum cuda_kernel k);

/* cuda_selftest.c: compares a small layer with plain C. BN_EDEVICE: wrong results or a failed call.
 * BN_ENOMEM: no memory on the host or the GPU. */
bool cuda_selftest(struct cuda_device *d, struct bn_error *err);

#endif
