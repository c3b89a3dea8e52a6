/*
 * Arguments of the kernels of gpu_micro.cu. nvcc and the host compiler both read this file.
 */
#ifndef TESTS_ENGINE_CUDA_GPU_MICRO_ARGS_H
#define TESTS_ENGINE_CUDA_GPU_MICRO_ARGS_H

#include <stdint.h>

#define MICRO_THREADS 256  /* of every kernel but micro_ring */
#define RING_CONSUMERS 8   /* warps that read the stages; one more warp starts the copies */
#define RING_MAX_STAGES 16 /* of a ring */
#define RING_BARRIER_BYTES (2 * RING_MAX_STAGES * 8) /* at the start of its shared memory */
#define LOADS_PER_THREAD 8                           /* of 16 bytes, in a step of micro_loads */

struct micro_empty_args {
    uint32_t unused;
};

/* A number of barriers for the whole grid. */
struct micro_barrier_args {
    uint32_t *counter;  /* zero at the start; counts the blocks that have arrived */
    uint32_t *slots;    /* one for each block, with `checks` */
    uint32_t *n_errors; /* barriers after which a block did not see its neighbour's write */
    uint32_t n_rounds, checks;
};

/* Reads n_words, and adds the sum of the words, modulo 2^32, to *sum. */
struct micro_read_args {
    uint32_t *words; /* micro_fill writes them */
    uint64_t n_words;
    uint32_t *sum;
    uint32_t n_stages, stage_bytes; /* of micro_ring; n_words is a multiple of a stage */
};

#endif
