/*
 * The NVIDIA driver library. It is opened at run time, so that one binary starts on machines with
 * and without it. The types of its entry points come from the toolkit's cuda.h.
 *
 * Private to engine/cuda. All calls come from the thread that calls the engine (see engine.h).
 */
#ifndef ENGINE_CUDA_CUDA_DRIVER_H
#define ENGINE_CUDA_CUDA_DRIVER_H

#include "engine/base/error.h"

#include <cuda.h>
#include <stddef.h>

/* cuda.h defines macros that rename some functions to versioned names. The struct members get the
 * same names. */
#define CUDA_ENTRIES(X)                                                                            \
    X(cuInit)                                                                                      \
    X(cuDriverGetVersion)                                                                          \
    X(cuGetErrorString)                                                                            \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuCtxSetCurrent)                                                                             \
    X(cuMemGetInfo)                                                                                \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemFreeHost)                                                                               \
    X(cuMemHostGetDevicePointer)                                                                   \
    X(cuMemcpyHtoD)                                                                                \
    X(cuMemcpyDtoH)                                                                                \
    X(cuMemcpyHtoDAsync)                                                                           \
    X(cuMemsetD8)                                                                                  \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleUnload)                                                                              \
    X(cuModuleGetFunction)                                                                         \
    X(cuFuncGetAttribute)                                                                          \
    X(cuFuncSetAttribute)                                                                          \
    X(cuLaunchKernelEx)                                                                            \
    X(cuStreamCreate)                                                                              \
    X(cuStreamDestroy)                                                                             \
    X(cuStreamSynchronize)                                                                         \
    X(cuStreamBeginCapture)                                                                        \
    X(cuStreamEndCapture)                                                                          \
    X(cuGraphInstantiateWithFlags)                                                                 \
    X(cuGraphLaunch)                                                                               \
    X(cuGraphDestroy)                                                                              \
    X(cuGraphExecDestroy)                                                                          \
    X(cuEventCreate)                                                                               \
    X(cuEventRecord)                                                                               \
    X(cuEventElapsedTime)                                                                          \
    X(cuEventDestroy)

#define CUDA_MEMBER(name) __typeof__(&name) name;
struct cuda_driver {
    void *library;
    CUDA_ENTRIES(CUDA_MEMBER)
};

/* Fails with BN_EDEVICE if the library or one of its entry points is missing; *d then needs no
 * cuda_driver_close. */
bool cuda_driver_open(struct cuda_driver *d, struct bn_error *err);
void cuda_driver_close(struct cuda_driver *d);

/* The driver's description of an error. Static text. */
const char *cuda_driver_text(const struct cuda_driver *d, CUresult result);

/* Returns true for CUDA_SUCCESS. Otherwise fails with BN_ENOMEM (out of memory) or BN_EDEVICE. The
 * text is `what`, a colon, and the driver's description. */
bool cuda_ok(const struct cuda_driver *d, CUresult result, const char *what, struct bn_error *err);

#endif
