/*
 * The twin: the kernels of engine/cuda compiled as C, and a table to find them by name.
 */
#include "engine/cuda/kernels/cuda_kernels.cu"
#include "tests/engine/cuda/twin_run.h"

static const struct twin_kernel kernels[] = {
#define KERNEL_ROW(name, args, n_threads) {#name, name, sizeof(struct args), n_threads},
    CUDA_KERNELS(KERNEL_ROW)};

const struct twin_kernel *twin_find(const char *name)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    return NULL;
}
