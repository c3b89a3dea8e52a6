/*
 * Opens a GPU and launches kernels. Each reason why a GPU cannot be used has its own message.
 */
#include "engine/cuda/cuda_device.h"

#include <stdio.h>

/* The kernels need compute capability 8.0: int8 mma and asynchronous copies. */
#define MIN_MAJOR 8
/* First major version of the compute capability with dependent launch, and the version of the PTX
 * from which the kernels contain the instruction that waits for the previous kernel. */
#define DEPENDENT_LAUNCH_MAJOR 9
#define DEPENDENT_LAUNCH_PTX 90

#define KERNEL_TRAIT(name, args, n_threads) {#name, n_threads},
static const struct {
    const char *name;
    unsigned n_threads; /* of a thread block, unless the launch has another number */
} traits[KERNEL_N] = {CUDA_KERNELS(KERNEL_TRAIT)};

static bool check_version(struct cuda_driver *d, struct bn_error *err)
{
    int version = 0;
    if (!cuda_ok(d, d->cuDriverGetVersion(&version), "reading the driver version", err))
        return false;
    /* Machine code runs on every driver with the same or a later major version of CUDA. A version
     * is 1000 * major + 10 * minor. */
    if (version / 1000 < CUDA_VERSION / 1000)
        return bn_fail(
            err, BN_EDEVICE,
            "the NVIDIA driver is too old: it supports CUDA %d.%d, this build needs %d.0",
            version / 1000, version % 1000 / 10, CUDA_VERSION / 1000);
    return true;
}

/* Selects the device with this index in the driver's list, without allocating memory on it. */
static bool find_device(struct cuda_device *dev, size_t index, struct bn_error *err)
{
    struct cuda_driver *d = &dev->driver;
    int n_devices = 0, major = 0, minor = 0;
    const CUresult result = d->cuInit(0);
    if (result == CUDA_SUCCESS &&
        !cuda_ok(d, d->cuDeviceGetCount(&n_devices), "counting the GPUs", err))
        return false;
    if (result == CUDA_ERROR_NO_DEVICE || (result == CUDA_SUCCESS && n_devices == 0))
        return bn_fail(err, BN_EDEVICE,
                       "the NVIDIA driver shows no GPU (is CUDA_VISIBLE_DEVICES empty?)");
    if (!cuda_ok(d, result, "the NVIDIA driver does not start", err) || !check_version(d, err))
        return false;
    if (index >= (size_t)n_devices)
        return bn_fail(err, BN_EDEVICE, "there is no GPU %zu: the driver shows %d", index,
                       n_devices);
    if (!cuda_ok(d, d->cuDeviceGet(&dev->id, (int)index), "opening the GPU", err) ||
        !cuda_ok(d, d->cuDeviceGetName(dev->name, sizeof dev->name, dev->id),
                 "reading the GPU's name", err) ||
        !cuda_ok(
            d,
            d->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev->id),
            "reading the compute capability", err) ||
        !cuda_ok(
            d,
            d->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev->id),
            "reading the compute capability", err) ||
        !cuda_ok(d,
                 d->cuDeviceGetAttribute(&dev->n_processors,
                                         CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, dev->id),
                 "reading the number of multiprocessors", err))
        return false;
    dev->dependent_launch = major >= DEPENDENT_LAUNCH_MAJOR;
    if (major < MIN_MAJOR)
        return bn_fail(err, BN_EDEVICE, "%s has compute capability %d.%d, at least %d.0 is needed",
                       dev->name, major, minor, MIN_MAJOR);
    return true;
}

/* Reading an attribute also loads the code of a kernel, so no kernel is loaded while a graph is
 * captured. For a new device, the driver can compile PTX of a version below DEPENDENT_LAUNCH_PTX.
 * That code has no instruction that waits for the previous kernel, so dependent launch would be a
 * race. */
static bool load_kernels(struct cuda_device *dev, struct bn_error *err)
{
    struct cuda_driver *d = &dev->driver;
    if (!cuda_ok(d, d->cuModuleLoadData(&dev->module, cuda_fatbin), "loading the kernels", err))
        return false;
    for (size_t i = 0; i < KERNEL_N; i++) {
        int ptx = 0;
        if (!cuda_ok(d, d->cuModuleGetFunction(&dev->functions[i], dev->module, traits[i].name),
                     traits[i].name, err) ||
            !cuda_ok(d,
                     d->cuFuncGetAttribute(&ptx, CU_FUNC_ATTRIBUTE_PTX_VERSION, dev->functions[i]),
                     traits[i].name, err))
            return false;
        /* All kernels use the same division between L1 cache and shared memory: a change would
         * delay a launch until the previous kernel has ended. An error does not matter, because
         * the attribute is only a hint. */
        (void)d->cuFuncSetAttribute(dev->functions[i],
                                    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                    CU_SHAREDMEM_CARVEOUT_MAX_SHARED);
        dev->dependent_launch = dev->dependent_launch && ptx >= DEPENDENT_LAUNCH_PTX;
    }
    return true;
}

bool cuda_device_open(struct cuda_device *dev, size_t index, struct bn_error *err)
{
    struct cuda_driver *d = &dev->driver;
    return cuda_driver_open(d, err) && find_device(dev, index, err) &&
           cuda_ok(d, d->cuDevicePrimaryCtxRetain(&dev->context, dev->id), "using the GPU", err) &&
           cuda_enter(dev, err) && load_kernels(dev, err) &&
           cuda_ok(d, d->cuStreamCreate(&dev->stream, CU_STREAM_DEFAULT), "creating a stream", err);
}

/* Ignores all errors: after a device is lost, every call fails. */
void cuda_device_close(struct cuda_device *dev)
{
    struct cuda_driver *d = &dev->driver;
    if (!d->library)
        return;
    cuda_profile_close(dev);
    if (dev->stream)
        (void)d->cuStreamDestroy(dev->stream);
    if (dev->module)
        (void)d->cuModuleUnload(dev->module);
    if (dev->context) {
        (void)d->cuCtxSetCurrent(NULL);
        (void)d->cuDevicePrimaryCtxRelease(dev->id);
    }
    cuda_driver_close(d);
}

/* After an illegal address, or when a device is disconnected, the driver returns the same error for
 * every call of this process. Its documentation requires a new process, so the device is not
 * reopened. */
static bool fail_lost(const char *text, struct bn_error *err)
{
    return bn_fail(err, BN_ELOST, "%s; restart this program to use it again", text);
}

bool cuda_check_lost(struct cuda_device *dev, struct bn_error *err)
{
    if (err->code != BN_EDEVICE)
        return false;
    /* This call succeeds if only the earlier call failed. */
    dev->lost = dev->driver.cuStreamSynchronize(dev->stream);
    const struct bn_error first = *err; /* fail_lost writes to err */
    if (dev->lost != CUDA_SUCCESS)
        (void)fail_lost(first.text, err);
    return false;
}

bool cuda_enter(struct cuda_device *dev, struct bn_error *err)
{
    char text[200];
    if (dev->lost != CUDA_SUCCESS) {
        (void)snprintf(text, sizeof text, "the GPU has failed (%s)",
                       cuda_driver_text(&dev->driver, dev->lost));
        return fail_lost(text, err);
    }
    return cuda_ok(&dev->driver, dev->driver.cuCtxSetCurrent(dev->context), "using the GPU", err);
}

void cuda_record_error(struct cuda_device *dev, CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS && dev->failed == CUDA_SUCCESS) {
        dev->failed = result;
        dev->failed_name = what;
    }
}

const char *cuda_kernel_name(enum cuda_kernel k)
{
    return traits[k].name;
}

void cuda_launch(struct cuda_device *dev, enum cuda_kernel k, struct cuda_grid grid, void *args)
{
    void *params[] = {args};
    /* Dependent launch: this kernel may start before the previous one has ended. */
    CUlaunchAttribute dependent = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                   .value = {.programmaticStreamSerializationAllowed = 1}};
    const CUlaunchConfig config = {.gridDimX = (unsigned)grid.x,
                                   .gridDimY = (unsigned)grid.y,
                                   .gridDimZ = (unsigned)grid.z,
                                   .blockDimX = grid.n_threads ? (unsigned)grid.n_threads
                                                               : traits[k].n_threads,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .hStream = dev->stream,
                                   .attrs = &dependent,
                                   .numAttrs = dev->dependent_launch ? 1 : 0};
    if (dev->failed != CUDA_SUCCESS)
        return;
    if (dev->profile.on)
        cuda_profile_before(dev);
    cuda_record_error(dev, dev->driver.cuLaunchKernelEx(&config, dev->functions[k], params, NULL),
                      traits[k].name);
    if (dev->profile.on)
        cuda_profile_after(dev, k);
}

bool cuda_finish(struct cuda_device *dev, struct bn_error *err)
{
    cuda_record_error(dev, dev->driver.cuStreamSynchronize(dev->stream), "computing");
    if (dev->profile.on)
        cuda_profile_read(dev);
    const CUresult failed = dev->failed;
    dev->failed = CUDA_SUCCESS;
    return failed == CUDA_SUCCESS ||
           bn_fail(err, BN_EDEVICE, "the GPU failed (%s): %s", dev->failed_name,
                   cuda_driver_text(&dev->driver, failed));
}
