/*
 * All kernels in one translation unit, which nvcc compiles to a fatbin. The fatbin is embedded in
 * the program. The tests compile the same sources as C (see cuda_intrinsics.cuh).
 */
#include "engine/cuda/kernels/cuda_attn.cuh"
#include "engine/cuda/kernels/cuda_attn_split.cuh"
#include "engine/cuda/kernels/cuda_blocks.cuh"
#include "engine/cuda/kernels/cuda_bounds.cuh"
#include "engine/cuda/kernels/cuda_delta.cuh"
#include "engine/cuda/kernels/cuda_experts.cuh"
#include "engine/cuda/kernels/cuda_grouped.cuh"
#include "engine/cuda/kernels/cuda_grouped_many.cuh"
#include "engine/cuda/kernels/cuda_head.cuh"
#include "engine/cuda/kernels/cuda_norm_rows.cuh"
#include "engine/cuda/kernels/cuda_pick.cuh"
#include "engine/cuda/kernels/cuda_query.cuh"
#include "engine/cuda/kernels/cuda_rotate.cuh"
#include "engine/cuda/kernels/cuda_router.cuh"
#include "engine/cuda/kernels/cuda_screen.cuh"
#include "engine/cuda/kernels/cuda_ternary.cuh"
#include "engine/cuda/kernels/cuda_ternary_many.cuh"
#include "engine/cuda/kernels/cuda_ternary_mma.cuh"
#include "engine/cuda/kernels/cuda_vec.cuh"
#include "engine/cuda/kernels/cuda_wide.cuh"
