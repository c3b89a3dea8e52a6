/*
 * Runs the kernels of engine/cuda on the host: a grid block by block, a fiber a thread, so that
 * barriers and exchanges inside a warp do what they do on the device.
 *
 * Threads of a block run in ascending order between two barriers, or in descending order: a missing
 * barrier changes the result of one of them. A barrier that some threads do not reach, or an
 * exchange that some lanes of a warp skip, ends the program. Not for several host threads at once.
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

/* NULL: no kernel is called that. */
const struct twin_kernel *twin_find(const char *name);

/* grid and threads as a launch has them; threads is a multiple of 32. */
struct twin_grid {
    uint32_t n_blocks[3], n_threads;
};
void twin_launch(const struct twin_kernel *k, struct twin_grid grid, const void *args,
                 enum twin_order order);

#endif
