/*
 * The device instructions that the kernels use: thread indices, barriers, warp shuffles, dot
 * products, wide loads, copies, conversions, atomic additions. All other device code is plain C
 * that uses this file.
 *
 * With nvcc the functions are CUDA intrinsics and PTX. A host compiler gets the twin, cuda_twin.h:
 * the same functions in C. tests/engine/cuda/twin_run.c runs a grid block by block with one fiber
 * per thread, so barriers and shuffles work, and the kernel sources are tested on machines without
 * a GPU.
 */
#ifndef CUDA_INTRINSICS_CUH
#define CUDA_INTRINSICS_CUH

#include "engine/cuda/kernels/args/cuda_args.h"

/* Defines a function that returns an index or a number of threads or blocks. */
#define DEV_INDEX(name, value)                                                                     \
    DEV uint32_t name(void)                                                                        \
    {                                                                                              \
        return value;                                                                              \
    }

#ifdef __CUDACC__

#define DEV static __device__ __forceinline__
#define SHARED __shared__
#define SHARED_WIDE __shared__ __align__(16)
/* Define a kernel; n_threads as in CUDA_KERNELS. KERNEL waits for the previous kernel at its start.
 * KERNEL_EARLY may start before the previous kernel has ended (dependent launch) and must call
 * wait_for_grid. */
#define KERNEL_EARLY(name, args, n_threads) KERNEL_EARLY_DENSE(name, args, n_threads, 1)
#define KERNEL(name, args, n_threads) KERNEL_DENSE(name, args, n_threads, 1)
/* The same with n_blocks, the number of thread blocks that a multiprocessor must be able to run at
 * once. It limits the registers of a thread. */
#define KERNEL_EARLY_DENSE(name, args, n_threads, n_blocks)                                        \
    extern "C" __global__ void __launch_bounds__(n_threads, n_blocks)                              \
        name(const __grid_constant__ struct args a)
#define KERNEL_DENSE(name, args, n_threads, n_blocks)                                              \
    DEV void name##_body(const struct args &a);                                                    \
    KERNEL_EARLY_DENSE(name, args, n_threads, n_blocks)                                            \
    {                                                                                              \
        wait_for_grid();                                                                           \
        name##_body(a);                                                                            \
    }                                                                                              \
    DEV void name##_body(const struct args &a)

/* Waits until the previous kernel has ended and its writes are visible, then allows the next kernel
 * to start. Code before this call must write no global memory. It may read only data that the
 * previous kernel does not write: weights, the inputs of the pass (struct cuda_token and others),
 * keys and values. (The kernel before the previous one has ended, because the previous one waited
 * for it.) A thread block that reads and writes nothing else may end without this call if another
 * one of its grid calls it. Older devices have no dependent launch. */
DEV void wait_for_grid(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

DEV_INDEX(thread_x, threadIdx.x)
DEV_INDEX(n_threads_x, blockDim.x)
DEV_INDEX(block_x, blockIdx.x)
DEV_INDEX(block_y, blockIdx.y)
DEV_INDEX(block_z, blockIdx.z)
DEV_INDEX(n_blocks_x, gridDim.x)
DEV_INDEX(n_blocks_y, gridDim.y)

/* Barrier for all threads of the thread block. Their earlier writes are visible to all of them
 * afterwards. */
DEV void block_sync(void)
{
    __syncthreads();
}

/* Barrier that also returns how many threads passed true. */
DEV uint32_t block_count(bool yes)
{
    return (uint32_t)__syncthreads_count(yes);
}

/* Barrier for the 32 lanes of a warp, whose earlier writes are then visible to all of them. */
DEV void warp_sync(void)
{
    __syncwarp();
}

/* Call it between a write and an atomic addition. If another thread of the grid sees the result of
 * the addition and then calls this function too, it sees the write afterwards. If a barrier of the
 * thread block comes before the call, this applies to the writes of all its threads. */
DEV void grid_fence(void)
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

/* Returns v of the lane with index (index of this lane ^ mask). All 32 lanes must call it. */
DEV uint32_t shuffle_xor_u32(uint32_t v, uint32_t mask)
{
    return __shfl_xor_sync(0xffffffffu, v, (int)mask);
}

/* The largest value of the lanes of a warp. All 32 lanes must call it. */
DEV uint32_t warp_max_u32(uint32_t v)
{
    return __reduce_max_sync(0xffffffffu, v);
}

/* The sum of the values of the lanes of a warp. All 32 lanes must call it. */
DEV int32_t warp_sum_i32(int32_t v)
{
    return __reduce_add_sync(0xffffffffu, v);
}

/* Returns v of the lane with index `lane`. All 32 lanes must call it. */
DEV uint32_t shuffle_u32(uint32_t v, uint32_t lane)
{
    return __shfl_sync(0xffffffffu, v, (int)lane);
}

/* Index of the lowest set bit. The mask must not be 0. */
DEV uint32_t lowest_bit(uint32_t mask)
{
    return (uint32_t)__ffs((int)mask) - 1;
}

/* c plus the dot product of four pairs of signed bytes. */
DEV int32_t dot4(uint32_t a, uint32_t b, int32_t c)
{
    return __dp4a((int)a, (int)b, c);
}

/* A word of the lowest bytes of b[0] to b[3]. */
DEV uint32_t pack_bytes(const uint32_t *b)
{
    const uint32_t low = __byte_perm(b[0], b[1], 0x0040), high = __byte_perm(b[2], b[3], 0x0040);
    return __byte_perm(low, high, 0x5410);
}

/* c += A B for signed bytes, A 16 x 32 and B 32 x 8, distributed over a warp. Lane 4 g + t passes
 * bytes 4t .. 4t + 3 (a[0], a[1], b[0]) and bytes 16 + 4t .. 16 + 4t + 3 (a[2], a[3], b[1]) of row
 * g (a[0], a[2]), row g + 8 (a[1], a[3]) and column g (b). It receives columns 2t and 2t + 1 of row
 * g (c[0], c[1]) and of row g + 8 (c[2], c[3]). */
DEV void mma_16x8x32(int32_t *c, const uint32_t *a, const uint32_t *b)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

DEV float f32_of_bits(uint32_t u)
{
    return __uint_as_float(u);
}
DEV uint32_t bits_of_f32(float f)
{
    return __float_as_uint(f);
}
DEV float f32_of_f16(uint16_t h)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
/* Both F16 numbers of a word, the one in the low half first. */
DEV struct float_pair f32_of_halves(uint32_t w)
{
    struct float_pair f;
    asm("{.reg .f16 low, high; mov.b32 {low, high}, %2;"
        "cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
        : "=f"(f.at[0]), "=f"(f.at[1])
        : "r"(w));
    return f;
}
DEV uint16_t f16_of_f32(float f)
{
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}

/* Returns the value before the addition. */
DEV uint32_t atomic_add(uint32_t *n, uint32_t more)
{
    return atomicAdd(n, more);
}

#include "engine/cuda/kernels/device/cuda_memory.cuh"

#else
#include "engine/cuda/kernels/device/cuda_twin.h"
#endif

#endif
