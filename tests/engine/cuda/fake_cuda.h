/*
 * Counters of the stand-in for the driver library (fake_cuda.c), which tests load with dlsym.
 */
#ifndef TESTS_ENGINE_CUDA_FAKE_CUDA_H
#define TESTS_ENGINE_CUDA_FAKE_CUDA_H

#include <stddef.h>

struct fake_cuda_counts {
    size_t n_used_bytes; /* device memory that has not been freed */
    size_t n_early;      /* launches that need not wait for the previous kernel */
    size_t n_graphs;     /* launches of graphs */
};

struct fake_cuda_counts fake_cuda_counts(void);

#endif
