/*
 * Runs the twin (the kernels of engine/cuda compiled for the host): a grid block by block, with one
 * fiber per thread, so that barriers and warp shuffles work as on the device.
 *
 * Between two barriers the threads of a block run in ascending or in descending order, so a missing
 * barrier changes the result in one of the two orders. The program aborts if some threads of a
 * block miss a barrier or some lanes of a warp miss a shuffle. Only one host thread may use this.
 */
#ifndef TESTS_ENGINE_CUDA_TWIN_RUN_H
#define TESTS_ENGINE_CUDA_TWIN_RUN_H

#include <stddef.h>
#include <stdint.h>

enum twin_order { TWIN_ASCENDING, TWIN_DESCENDING };

struct twin_kernel {
    const char *name;
    void (*run)(const void *args);
    size_t n_arg_bytes;
    uint32_t max_threads;
};

/* NULL if there is no kernel of this name. */
const struct twin_kernel *twin_find(const char *name);

/* Grid and threads per block of a launch; n_threads must be a multiple of 32. */
struct twin_grid {
    uint32_t n_blocks[3], n_threads;
};
void twin_launch(const struct twin_kernel *k, struct twin_grid grid, const void *args,
                 enum twin_order order);

#endif
