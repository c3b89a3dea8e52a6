/*
 * The twin of cuda_intrinsics.cuh: the same functions in C, for kernels compiled for the host. Only
 * that file includes this one, and defines DEV_INDEX before.
 * tests/engine/cuda/twin_run.c defines the external functions and runs each thread of a thread
 * block as a fiber. Thread blocks run one after another on one host thread, so shared memory can be
 * static.
 */
#ifndef ENGINE_CUDA_KERNELS_CUDA_TWIN_H
#define ENGINE_CUDA_KERNELS_CUDA_TWIN_H

#include "engine/base/fp16.h"
#include "engine/cuda/kernels/args/cuda_args.h"

#include <math.h>
#include <string.h>

#define DEV static inline
#define SHARED static
#define SHARED_WIDE static _Alignas(16)
/* The kernel is declared first because no header declares it and -Wmissing-prototypes is on. */
#define KERNEL(name, args, n_threads)                                                              \
    static void name##_body(const struct args a);                                                  \
    void name(const void *p);                                                                      \
    void name(const void *p)                                                                       \
    {                                                                                              \
        name##_body(*(const struct args *)p);                                                      \
    }                                                                                              \
    static void name##_body(const struct args a)
#define KERNEL_EARLY KERNEL
#define KERNEL_EARLY_DENSE(name, args, n_threads, n_blocks) KERNEL(name, args, n_threads)
#define KERNEL_DENSE(name, args, n_threads, n_blocks) KERNEL(name, args, n_threads)

struct twin_indices {
    uint32_t thread, n_threads, block[3], n_blocks[3];
};
const struct twin_indices *twin_current(void); /* of the running thread */
/* As block_sync and block_count of cuda_intrinsics.cuh. */
void twin_block_sync(void);
uint32_t twin_block_count(uint32_t yes);
/* Passes n words to the other lanes of the warp and waits for all 32 lanes. Returns the words of
 * all lanes: lane l's are at [l * n]. They stay valid until this lane's next call. */
const uint32_t *twin_exchange(const uint32_t *v, uint32_t n);
/* Copies of a thread are done only when it waits for them, which is as late as the device may do
 * them. twin_copy_commit ends a copy group: the copies that the thread has started since the last
 * one. twin_copy_wait does the copies of all groups except the last n_groups. With n_groups = 0 it
 * also does those that are in no copy group yet. */
void twin_copy(void *to, const void *from, bool exists);
void twin_copy_commit(void);
void twin_copy_wait(uint32_t n_groups);

DEV void wait_for_grid(void)
{
    /* the twin runs one kernel after the other */
}
DEV_INDEX(thread_x, twin_current()->thread)
DEV_INDEX(n_threads_x, twin_current()->n_threads)
DEV_INDEX(block_x, twin_current()->block[0])
DEV_INDEX(block_y, twin_current()->block[1])
DEV_INDEX(block_z, twin_current()->block[2])
DEV_INDEX(n_blocks_x, twin_current()->n_blocks[0])
DEV_INDEX(n_blocks_y, twin_current()->n_blocks[1])
DEV void block_sync(void)
{
    twin_block_sync();
}

DEV void warp_sync(void)
{
    const uint32_t nothing = 0;
    (void)twin_exchange(&nothing, 1);
}

DEV void grid_fence(void)
{
    /* the twin runs one thread at a time */
}

DEV uint32_t block_count(bool yes)
{
    return twin_block_count(yes);
}

DEV uint32_t warp_max_u32(uint32_t v)
{
    const uint32_t *all = twin_exchange(&v, 1);
    for (uint32_t lane = 0; lane < 32; lane++)
        v = all[lane] > v ? all[lane] : v;
    return v;
}

DEV int32_t warp_sum_i32(int32_t v)
{
    const uint32_t mine = (uint32_t)v, *all = twin_exchange(&mine, 1);
    uint32_t sum = 0;
    for (uint32_t lane = 0; lane < 32; lane++)
        sum += all[lane];
    return (int32_t)sum;
}

DEV uint32_t lowest_bit(uint32_t mask)
{
    return (uint32_t)__builtin_ctz(mask);
}

DEV uint32_t shuffle_xor_u32(uint32_t v, uint32_t mask)
{
    return twin_exchange(&v, 1)[(thread_x() % 32) ^ mask];
}

DEV uint32_t shuffle_u32(uint32_t v, uint32_t lane)
{
    return twin_exchange(&v, 1)[lane];
}

/* Byte i of a word, sign-extended. */
DEV int32_t twin_byte(uint32_t word, uint32_t i)
{
    return (int8_t)(word >> (8 * i) & 255);
}

DEV int32_t dot4(uint32_t a, uint32_t b, int32_t c)
{
    for (uint32_t i = 0; i < 4; i++)
        c += twin_byte(a, i) * twin_byte(b, i);
    return c;
}

DEV uint32_t pack_bytes(const uint32_t *b)
{
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4; i++)
        word |= (b[i] & 255u) << (8 * i);
    return word;
}

DEV void mma_16x8x32(int32_t *c, const uint32_t *a, const uint32_t *b)
{
    const uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    const uint32_t *all = twin_exchange(mine, 6);
    const uint32_t g = thread_x() % 32 / 4, t = thread_x() % 4;
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t quarter = 0; quarter < 4; quarter++) {
            const uint32_t *row = all + (4 * g + quarter) * 6 + i / 2;
            const uint32_t *column = all + (4 * (2 * t + i % 2) + quarter) * 6 + 4;
            c[i] = dot4(row[0], column[0], c[i]);
            c[i] = dot4(row[2], column[1], c[i]);
        }
}

DEV struct words load_words(const void *p)
{
    struct words w;
    memcpy(&w, __builtin_assume_aligned(p, 16), sizeof w);
    return w;
}
DEV struct word_pair load_pair(const void *p)
{
    struct word_pair w;
    memcpy(&w, __builtin_assume_aligned(p, 8), sizeof w);
    return w;
}
DEV void store_words(void *p, struct words w)
{
    memcpy(__builtin_assume_aligned(p, 16), &w, sizeof w);
}
DEV struct words load_once(const void *p)
{
    return load_words(p);
}
DEV uint64_t load_once_u64(const void *p)
{
    uint64_t v;
    memcpy(&v, __builtin_assume_aligned(p, 8), sizeof v);
    return v;
}
DEV struct words load_stream(const void *p)
{
    return load_words(p);
}
DEV struct words load_early(const void *p)
{
    return load_words(p);
}
DEV float load_written(const float *p)
{
    return *p;
}
DEV struct word_pair load_written_pair(const void *p)
{
    return load_pair(p);
}
DEV void prefetch_line(const void *p)
{
    (void)*(const volatile uint8_t *)p; /* AddressSanitizer checks the address */
}
DEV void copy_async(void *to, const void *from, bool exists)
{
    twin_copy(to, from, exists);
}
DEV void copy_stream(void *to, const void *from)
{
    twin_copy(to, from, true);
}
DEV void copy_async_wait(void)
{
    twin_copy_wait(0);
}
DEV void copy_async_commit(void)
{
    twin_copy_commit();
}
DEV void copy_async_wait_but_one(void)
{
    twin_copy_wait(1);
}
DEV float f32_of_bits(uint32_t u)
{
    return f32_from_bits(u);
}
DEV uint32_t bits_of_f32(float f)
{
    return f32_bits(f);
}
DEV float f32_of_f16(uint16_t h)
{
    return f16_to_f32(h);
}
DEV struct float_pair f32_of_halves(uint32_t w)
{
    const struct float_pair f = {
        {f16_to_f32((uint16_t)(w & 0xffff)), f16_to_f32((uint16_t)(w >> 16))}};
    return f;
}
DEV uint16_t f16_of_f32(float f)
{
    return f32_to_f16(f);
}
DEV uint32_t atomic_add(uint32_t *n, uint32_t more)
{
    const uint32_t before = *n;
    *n += more;
    return before;
}

#endif
