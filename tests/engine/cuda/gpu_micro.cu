/*
 * Kernels of the microbenchmarks (gpu_micro.c): an empty kernel, a barrier for the whole grid, and
 * two ways to read a buffer once. The device of `micro_ring` has compute capability 9.0 or newer.
 *
 * A wait that does not end stops the kernel with an error, so that it cannot hang the GPU.
 */
#include "engine/cuda/kernels/device/cuda_intrinsics.cuh"
#include "tests/engine/cuda/gpu_micro_args.h"

#define POLLS_PER_LOOK 256        /* polls of a wait between two looks at the time */
#define MAX_WAIT_NS 2000000000ull /* longest wait */

/* A wait in a loop: the polls so far, and the time at which it fails. */
struct patience {
    uint32_t n_polls;
    uint64_t end;
};

/* Call this after each poll that found nothing. */
DEV void poll_again(struct patience *p)
{
    uint64_t now;
    if (++p->n_polls % POLLS_PER_LOOK != 0)
        return;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (p->end == 0)
        p->end = now + MAX_WAIT_NS;
    else if (now > p->end)
        __trap();
}

/* The gap between two launches of this kernel is the cost of a dependent launch. */
KERNEL(micro_empty, micro_empty_args, MICRO_THREADS)
{
    (void)a;
}

DEV uint32_t load_acquire(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

DEV void add_release(uint32_t *p, uint32_t n)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" : : "l"(p), "r"(n) : "memory");
}

/* Barrier for all blocks: returns when the counter is at least `target`. All blocks of the grid
 * must run at the same time. */
DEV void grid_sync(uint32_t *counter, uint32_t target)
{
    block_sync();
    if (thread_x() == 0) {
        struct patience patience = {0, 0};
        add_release(counter, 1);
        while (load_acquire(counter) < target)
            poll_again(&patience);
    }
    block_sync();
}

KERNEL(micro_barrier, micro_barrier_args, MICRO_THREADS)
{
    const uint32_t block = block_x(), n_blocks = n_blocks_x();
    for (uint32_t round = 1; round <= a.n_rounds; round++) {
        /* The last thread writes and reads, so that the barriers within the block count too. Two
         * barriers for each check: the next write must not overtake the reads. */
        const bool checks = a.checks && thread_x() == n_threads_x() - 1;
        if (checks)
            a.slots[block] = round;
        grid_sync(a.counter, (2 * round - 1) * n_blocks);
        if (checks && *(volatile uint32_t *)&a.slots[(block + 1) % n_blocks] != round)
            (void)atomic_add(a.n_errors, 1);
        grid_sync(a.counter, 2 * round * n_blocks);
    }
}

/* The value of a word is a hash of its index, so that the sum shows missing and repeated words. */
KERNEL(micro_fill, micro_read_args, MICRO_THREADS)
{
    const uint64_t step = (uint64_t)n_blocks_x() * MICRO_THREADS;
    for (uint64_t i = (uint64_t)block_x() * MICRO_THREADS + thread_x(); i < a.n_words; i += step)
        a.words[i] = (uint32_t)i * 2654435761u;
}

DEV uint32_t sum_of(struct words w)
{
    return w.at[0] + w.at[1] + w.at[2] + w.at[3];
}

/* Adds the sums of the threads of a warp to *sum. */
DEV void add_sum(uint32_t *sum, uint32_t part)
{
    for (uint32_t mask = 16; mask > 0; mask /= 2)
        part += shuffle_xor_u32(part, mask);
    if (thread_x() % 32 == 0)
        (void)atomic_add(sum, part);
}

/* For comparison with the ring: the engine's kernels load weights in this way. */
KERNEL(micro_loads, micro_read_args, MICRO_THREADS)
{
    const uint64_t batch = (uint64_t)MICRO_THREADS * LOADS_PER_THREAD; /* in units of 16 bytes */
    const uint64_t n = a.n_words / 4;
    uint32_t sum = 0;
    for (uint64_t at = block_x() * batch; at < n; at += n_blocks_x() * batch) {
        struct words w[LOADS_PER_THREAD];
#pragma unroll
        for (uint32_t i = 0; i < LOADS_PER_THREAD; i++)
            w[i] = load_stream(a.words + 4 * (at + i * MICRO_THREADS + thread_x()));
#pragma unroll
        for (uint32_t i = 0; i < LOADS_PER_THREAD; i++)
            sum += sum_of(w[i]);
    }
    add_sum(a.sum, sum);
}

#if __CUDA_ARCH__ >= 900
DEV uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

DEV void barrier_open(uint64_t *barrier, uint32_t n_arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 :
                 : "r"(shared_address(barrier)), "r"(n_arrivals)
                 : "memory");
}

DEV void barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                 :
                 : "r"(shared_address(barrier))
                 : "memory");
}

/* Waits until the phase with this parity has ended. */
DEV void barrier_wait(uint64_t *barrier, uint32_t parity)
{
    struct patience patience = {0, 0};
    uint32_t is_done = 0;
    while (!is_done) {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(is_done)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
        if (!is_done)
            poll_again(&patience);
    }
}

/* Starts a bulk copy to shared memory. The barrier's phase ends when all bytes have arrived. */
DEV void copy_bulk(void *to, const void *from, uint32_t n_bytes, uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(shared_address(barrier)), "r"(n_bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];"
                 :
                 : "r"(shared_address(to)), "l"(from), "r"(n_bytes), "r"(shared_address(barrier))
                 : "memory");
}

/* One thread starts the copies of this block's stages and waits before each for the readers of the
 * stage's previous content. */
DEV void ring_fill(const struct micro_read_args &a, unsigned char *stages, uint64_t *full,
                   uint64_t *empty)
{
    const uint64_t n = a.n_words * 4 / a.stage_bytes;
    uint32_t stage = 0, parity = 1; /* the first wait of each stage returns at once */
    for (uint64_t i = block_x(); i < n; i += n_blocks_x()) {
        barrier_wait(&empty[stage], parity);
        copy_bulk(stages + stage * a.stage_bytes,
                  (const unsigned char *)a.words + i * a.stage_bytes, a.stage_bytes, &full[stage]);
        if (++stage == a.n_stages) {
            stage = 0;
            parity ^= 1;
        }
    }
}

DEV uint32_t ring_read(const struct micro_read_args &a, const unsigned char *stages, uint64_t *full,
                       uint64_t *empty)
{
    const uint64_t n = a.n_words * 4 / a.stage_bytes;
    uint32_t stage = 0, parity = 0, sum = 0;
    for (uint64_t i = block_x(); i < n; i += n_blocks_x()) {
        barrier_wait(&full[stage], parity);
        for (uint32_t at = thread_x() * 16; at < a.stage_bytes; at += RING_CONSUMERS * 32 * 16)
            sum += sum_of(load_words(stages + stage * a.stage_bytes + at));
        __syncwarp();
        if (thread_x() % 32 == 0)
            barrier_arrive(&empty[stage]);
        if (++stage == a.n_stages) {
            stage = 0;
            parity ^= 1;
        }
    }
    return sum;
}
#endif

/* A ring of bulk copies: `n_stages` stages in shared memory, each with a barrier that counts the
 * bytes that arrive and a barrier that counts the warps that have read it. */
KERNEL(micro_ring, micro_read_args, (RING_CONSUMERS + 1) * 32)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) unsigned char memory[];
    uint64_t *const full = (uint64_t *)memory, *const empty = full + RING_MAX_STAGES;
    unsigned char *const stages = memory + RING_BARRIER_BYTES;
    if (thread_x() == 0) {
        for (uint32_t i = 0; i < a.n_stages; i++) {
            barrier_open(&full[i], 1);
            barrier_open(&empty[i], RING_CONSUMERS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    block_sync();
    if (thread_x() < RING_CONSUMERS * 32)
        add_sum(a.sum, ring_read(a, stages, full, empty));
    else if (thread_x() == RING_CONSUMERS * 32)
        ring_fill(a, stages, full, empty);
#else
    (void)a;
    __trap();
#endif
}
