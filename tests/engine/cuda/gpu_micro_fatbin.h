/*
 * The compiled kernels of gpu_micro.cu. The build generates the array with embed_bytes.py.
 */
#ifndef TESTS_ENGINE_CUDA_GPU_MICRO_FATBIN_H
#define TESTS_ENGINE_CUDA_GPU_MICRO_FATBIN_H

#include <stddef.h>
#include <stdint.h>

extern const uint64_t gpu_micro_fatbin[];
extern const size_t gpu_micro_fatbin_bytes;

#endif
