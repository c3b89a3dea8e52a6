/*
 * All kernels in one translation unit, which nvcc compiles to a fatbin. The fatbin is embedded in
 * the program. The tests compile the same sources as C (see cuda_intrinsics.cuh).
 */
#include "engine/cuda/kernels/attention/cuda_attn.cuh"
#include "engine/cuda/kernels/attention/cuda_attn_split.cuh"
#include "engine/cuda/kernels/attention/cuda_delta.cuh"
#include "engine/cuda/kernels/attention/cuda_vec.cuh"
#include "engine/cuda/kernels/experts/cuda_experts.cuh"
#include "engine/cuda/kernels/experts/cuda_router.cuh"
#include "engine/cuda/kernels/head/cuda_bounds.cuh"
#include "engine/cuda/kernels/head/cuda_head.cuh"
#include "engine/cuda/kernels/head/cuda_pick.cuh"
#include "engine/cuda/kernels/head/cuda_query.cuh"
#include "engine/cuda/kernels/head/cuda_screen.cuh"
#include "engine/cuda/kernels/head/cuda_wide.cuh"
#include "engine/cuda/kernels/products/cuda_blocks.cuh"
#include "engine/cuda/kernels/products/cuda_r16.cuh"
#include "engine/cuda/kernels/products/cuda_r16_many.cuh"
#include "engine/cuda/kernels/products/cuda_norm_rows.cuh"
#include "engine/cuda/kernels/products/cuda_rotate.cuh"
#include "engine/cuda/kernels/products/cuda_ternary.cuh"
#include "engine/cuda/kernels/products/cuda_ternary_many.cuh"
#include "engine/cuda/kernels/products/cuda_ternary_mma.cuh"
