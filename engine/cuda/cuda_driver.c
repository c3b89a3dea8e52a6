/*
 * Loads the entry points of the driver library with dlopen and dlsym.
 */
#include "engine/cuda/cuda_driver.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"

#define TEXT(name) #name
#define ENTRY(name) {TEXT(name), offsetof(struct cuda_driver, name)},

static const struct entry {
    const char *name; /* with its version (cuMemAlloc_v2), because ENTRY expands macros of cuda.h */
    size_t offset;
} entries[] = {CUDA_ENTRIES(ENTRY)};

bool cuda_driver_open(struct cuda_driver *d, struct bn_error *err)
{
    *d = (struct cuda_driver){0};
    /* RTLD_NODELETE: the library must stay loaded, because its threads and handlers remain. */
    d->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!d->library)
        return bn_fail(err, BN_EDEVICE, "there is no NVIDIA driver here (%s)", LIBRARY);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *const symbol = dlsym(d->library, entries[i].name);
        if (!symbol) {
            cuda_driver_close(d);
            return bn_fail(err, BN_EDEVICE, "the NVIDIA driver is too old: it has no %s",
                           entries[i].name);
        }
        /* memcpy, because C does not convert void * to a pointer to a function */
        memcpy((char *)d + entries[i].offset, &symbol, sizeof symbol);
    }
    return true;
}

void cuda_driver_close(struct cuda_driver *d)
{
    if (d->library)
        (void)dlclose(d->library); /* only decrements the reference count */
    d->library = NULL;
}

const char *cuda_driver_text(const struct cuda_driver *d, CUresult result)
{
    const char *text = NULL;
    if (d->cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
        text = "an unknown error";
    return text;
}

bool cuda_ok(const struct cuda_driver *d, CUresult result, const char *what, struct bn_error *err)
{
    if (result == CUDA_SUCCESS)
        return true;
    return bn_fail(err, result == CUDA_ERROR_OUT_OF_MEMORY ? BN_ENOMEM : BN_EDEVICE, "%s: %s", what,
                   cuda_driver_text(d, result));
}
