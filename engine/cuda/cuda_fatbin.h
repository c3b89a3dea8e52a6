/*
 * The compiled kernels for several devices. embed_bytes.py generates the array during the build.
 */
#ifndef ENGINE_CUDA_CUDA_FATBIN_H
#define ENGINE_CUDA_CUDA_FATBIN_H

#include <stddef.h>
#include <stdint.h>

extern const uint64_t cuda_fatbin[];
extern const size_t cuda_fatbin_bytes;

#endif
