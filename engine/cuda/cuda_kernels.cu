/*
 * All kernels, one translation unit: nvcc makes a fatbin of it, which is embedded in the program;
 * the tests compile the same sources as C (cuda_device.cuh).
 */
#include "engine/cuda/cuda_attn.cuh"
#include "engine/cuda/cuda_bounds.cuh"
#include "engine/cuda/cuda_head.cuh"
#include "engine/cuda/cuda_many.cuh"
#include "engine/cuda/cuda_pick.cuh"
#include "engine/cuda/cuda_screen.cuh"
#include "engine/cuda/cuda_ternary.cuh"
#include "engine/cuda/cuda_vec.cuh"
