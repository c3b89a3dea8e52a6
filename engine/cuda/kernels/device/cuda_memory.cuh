/*
 * Loads, stores and copies to shared memory with nvcc. cuda_twin.h has the same functions in C.
 * Only cuda_intrinsics.cuh includes this file.
 */
#ifndef CUDA_MEMORY_CUH
#define CUDA_MEMORY_CUH

DEV struct words load_words(const void *p)
{
    const uint4 u = *(const uint4 *)p;
    struct words w = {{u.x, u.y, u.z, u.w}};
    return w;
}

DEV struct word_pair load_pair(const void *p)
{
    const uint2 u = *(const uint2 *)p;
    struct word_pair w = {{u.x, u.y}};
    return w;
}

/* The address must be 16-byte aligned. */
DEV void store_words(void *p, struct words w)
{
    *(uint4 *)p = make_uint4(w.at[0], w.at[1], w.at[2], w.at[3]);
}

/* Load that bypasses the first-level cache, for data that a thread block reads once and that no
 * kernel of a pass writes. */
DEV struct words load_once(const void *p)
{
    struct words w;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(w.at[0]), "=r"(w.at[1]), "=r"(w.at[2]), "=r"(w.at[3])
        : "l"(p));
    return w;
}

/* As load_once, for 8 bytes; the first four become the low half. The assembler does not move this
 * load behind a warp_sync that follows. */
DEV uint64_t load_once_u64(const void *p)
{
    uint64_t v;
    asm volatile("ld.global.L1::no_allocate.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

/* As load_once, for data that one token reads once: the second-level cache evicts it first, so that
 * activations, norm weights, keys and values stay there. */
DEV struct words load_stream(const void *p)
{
    struct words w;
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
        : "=r"(w.at[0]), "=r"(w.at[1]), "=r"(w.at[2]), "=r"(w.at[3])
        : "l"(p), "l"(policy));
    return w;
}

/* As load_stream, for use before wait_for_grid. The assembler moves the wait in front of the .nc
 * loads of load_stream, but not in front of these loads. */
DEV struct words load_early(const void *p)
{
    struct words w;
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(w.at[0]), "=r"(w.at[1]), "=r"(w.at[2]), "=r"(w.at[3])
                 : "l"(p), "l"(policy));
    return w;
}

/* For use before wait_for_grid: loads a value that a kernel before the previous one has written. It
 * reads the second-level cache, because a multiprocessor on which no kernel has waited since that
 * write may still have the old value in its first-level cache. */
DEV float load_written(const float *p)
{
    float v;
    asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
    return v;
}

/* As load_written, for 8 bytes. */
DEV struct word_pair load_written_pair(const void *p)
{
    struct word_pair w;
    asm volatile("ld.global.cg.v2.u32 {%0, %1}, [%2];"
                 : "=r"(w.at[0]), "=r"(w.at[1])
                 : "l"(p)
                 : "memory");
    return w;
}

/* Loads the cache line of this address into the second-level cache. */
DEV void prefetch_line(const void *p)
{
    asm volatile("prefetch.global.L2 [%0];" : : "l"(p));
}

/* Starts an asynchronous copy of 16 bytes to shared memory, or of zeros if `exists` is false
 * (`from` must still be a valid address). After copy_async_wait the calling thread sees the bytes;
 * other threads see them after a barrier that follows. */
DEV void copy_async(void *to, const void *from, bool exists)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from), "r"(exists ? 16 : 0)
                 : "memory");
}
/* As copy_async, with the policy of load_stream for the second-level cache. */
DEV void copy_stream(void *to, const void *from)
{
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;"
                 :
                 : "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from), "l"(policy)
                 : "memory");
}
DEV void copy_async_wait(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}
/* The copies since the previous call of this function become a copy group, which may be empty. */
DEV void copy_async_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/* As copy_async_wait, but only for all copy groups except the last one. */
DEV void copy_async_wait_but_one(void)
{
    asm volatile("cp.async.wait_group 1;" ::: "memory");
}

#endif
