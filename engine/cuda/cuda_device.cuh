/*
 * Everything of the kernels that is an instruction of the device rather than plain C: who am I,
 * waiting for each other, exchanging registers, dot products, wide loads.
 *
 * Compiled by nvcc these are the device's own; compiled as C they are the twin of cuda_twin.h,
 * which runs a grid block by block with a fiber a thread, so that barriers and exchanges work and
 * the same kernel sources are tested on machines without a GPU.
 */
#ifndef ENGINE_CUDA_CUDA_DEVICE_CUH
#define ENGINE_CUDA_CUDA_DEVICE_CUH

#include "engine/cuda/cuda_args.h"

#ifdef __CUDACC__

#define DEV static __device__ __forceinline__
#define SHARED __shared__
#define SHARED_WIDE __shared__ __align__(16)
/* A kernel that may begin before the one in front of it has ended, and calls wait_for_grid itself;
 * and any other, which waits first. */
#define KERNEL_AHEAD(name, args, n_threads)                                                        \
    extern "C" __global__ void __launch_bounds__(n_threads)                                        \
        name(const __grid_constant__ struct args a)
#define KERNEL(name, args, n_threads)                                                              \
    DEV void name##_body(const struct args &a);                                                    \
    KERNEL_AHEAD(name, args, n_threads)                                                            \
    {                                                                                              \
        wait_for_grid();                                                                           \
        name##_body(a);                                                                            \
    }                                                                                              \
    DEV void name##_body(const struct args &a)

/* Until the kernel in front of this one has ended and what it wrote is seen; then the next may
 * begin. Before it only what no kernel of a pass writes may be read, and nothing written. */
DEV void wait_for_grid(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

DEV uint32_t thread_x(void)
{
    return threadIdx.x;
}
DEV uint32_t n_threads_x(void)
{
    return blockDim.x;
}
DEV uint32_t block_x(void)
{
    return blockIdx.x;
}
DEV uint32_t block_y(void)
{
    return blockIdx.y;
}
DEV uint32_t block_z(void)
{
    return blockIdx.z;
}
DEV uint32_t n_blocks_x(void)
{
    return gridDim.x;
}

/* Every thread of the block is here, and sees what the others wrote. */
DEV void block_sync(void)
{
    __syncthreads();
}

/* The same, and how many of them say yes. */
DEV uint32_t block_count(bool yes)
{
    return (uint32_t)__syncthreads_count(yes);
}

/* A bit for each lane of the warp that says yes; all 32 take part. */
DEV uint32_t warp_vote(bool yes)
{
    return __ballot_sync(0xffffffffu, yes);
}

/* The value of the lane whose number differs in `mask`; all 32 lanes of a warp take part. */
DEV uint32_t swap_u32(uint32_t v, uint32_t mask)
{
    return __shfl_xor_sync(0xffffffffu, v, (int)mask);
}

/* The number of the lowest bit set in a mask that has one. */
DEV uint32_t lowest_bit(uint32_t mask)
{
    return (uint32_t)__ffs((int)mask) - 1;
}

DEV uint32_t n_bits(uint32_t mask)
{
    return (uint32_t)__popc(mask);
}

/* c + the dot product of four pairs of signed bytes. */
DEV int32_t dot4(uint32_t a, uint32_t b, int32_t c)
{
    return __dp4a((int)a, (int)b, c);
}

/* c += A B for signed bytes, A 16 x 32, B 32 x 8, spread over a warp; lane = 4 g + t holds bytes
 * 4t .. 4t + 3 (a[0], a[1], b[0]) and 16 + 4t .. (a[2], a[3], b[1]) of row g (a[0], a[2]), row
 * g + 8 (a[1], a[3]) and column g (b), and gets columns 2t, 2t + 1 of row g (c[0], c[1]) and row
 * g + 8 (c[2], c[3]). */
DEV void mma_16x8x32(int32_t *c, const uint32_t *a, const uint32_t *b)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

DEV struct words load_words(const void *p)
{
    const uint4 u = *(const uint4 *)p;
    struct words w = {{u.x, u.y, u.z, u.w}};
    return w;
}

/* The same for what is read once and no kernel of a pass writes: past the first-level cache. */
DEV struct words load_once(const void *p)
{
    struct words w;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(w.at[0]), "=r"(w.at[1]), "=r"(w.at[2]), "=r"(w.at[3])
        : "l"(p));
    return w;
}

/* The same, under way before a wait for another kernel that stands after it: the assembler moves
 * such a wait in front of loads of the kind above (.nc), but not of these. */
DEV struct words load_ahead(const void *p)
{
    struct words w;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w.at[0]), "=r"(w.at[1]), "=r"(w.at[2]), "=r"(w.at[3])
                 : "l"(p));
    return w;
}

/* Sixteen bytes to shared memory while the thread goes on, or zeros if there is nothing to copy
 * (`from` is an address all the same); they are there after copies_wait, and for other threads
 * after a barrier behind that. */
DEV void copy_ahead(void *to, const void *from, bool exists)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from), "r"(exists ? 16 : 0)
                 : "memory");
}
DEV void copies_wait(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
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
DEV uint16_t f16_of_f32(float f)
{
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}

/* What was there before `more` was added. */
DEV uint32_t count_up(uint32_t *n, uint32_t more)
{
    return atomicAdd(n, more);
}

#else
#include "engine/cuda/cuda_twin.h"
#endif

#endif
