/*
 * The limits of this machine that bench figures are compared with.
 *
 * The bandwidth is measured on the packed weights if they are much larger than most caches, else on
 * a separate buffer. The multiply-adds are counted in special loops, because the kernels of a pass
 * do not reach the limit: ternary_matmul is 7 % below it with AVX-512 VNNI and 37 % with AMX,
 * attention 15 to 20 % (docs/lab-notes.md).
 *
 * Other programs can only slow a loop down, so each limit is the best of many loops. The loops take
 * milliseconds: a long one would be interrupted on a busy machine.
 */
#include "engine/cpu/cpu_measure.h"

#include "engine/base/clock.h"
#include "engine/base/relax.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_work.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define READ_BYTES ((size_t)512000000) /* several times the last-level cache of most machines */
#define READ_ROUNDS 6                  /* times that the whole buffer is read */
/* Bytes of one loop for each thread: a core reads about 10 GB/s, so a loop takes 2 ms, of which
 * starting the threads is less than 1 %. A loop should not find its bytes in a cache: all other
 * slices of the buffer are read in between. So there are at least two slices, which need more than
 * READ_BYTES with 13 threads or more. A slice has at most READ_BYTES, which limits the separate
 * buffer to a gigabyte. */
#define SLICE_BYTES ((size_t)20 << 20)

/* Sum of 64-bit words, n a multiple of 8 * STREAMS. Reads as the ternary kernels do, in distant
 * streams, because a single stream keeps too few cache lines in flight. With each cache line, the
 * line `ahead` words further is prefetched. Rounds with AHEAD and with 0 (no other line) alternate,
 * because on some processors hardware prefetching is faster alone. */
#define STREAMS 4
#define AHEAD 256 /* words: 2 kB */

/* Sanitizers check no read of this loop, because it would measure the checks. */
__attribute__((no_sanitize("address", "undefined"))) static uint64_t
sum_words(const uint64_t *at, size_t n, size_t ahead)
{
    uint64_t sum[8] = {0};
    const size_t part = n / STREAMS;
    for (size_t i = 0; i < part; i += 8)
        for (size_t k = 0; k < STREAMS; k++) {
            /* An integer, because the address may be past the end of the data. */
            cpu_prefetch((const void *)((uintptr_t)(at + k * part + i) + ahead * sizeof *at));
            for (size_t j = 0; j < 8; j++)
                sum[j] += at[k * part + i + j];
        }
    for (size_t j = 1; j < 8; j++)
        sum[0] += sum[j];
    return sum[0];
}

struct read_job {
    const uint64_t *at; /* (n_words) */
    size_t n_words, ahead;
    atomic_uint_fast64_t sum; /* keeps the compiler from removing the reads */
};

static void read_range(void *ud, size_t index, size_t n_threads)
{
    struct read_job *r = ud;
    /* Each thread reads whole pages of 4 kB, which are 512 words. */
    const struct work_range s = work_range_of(r->n_words, 512, index, n_threads);
    const size_t n = (s.end - s.begin) / (8 * STREAMS) * (8 * STREAMS);
    atomic_fetch_add(&r->sum, sum_words(r->at + s.begin, n, r->ahead));
}

double cpu_measure_bandwidth(struct backend *b)
{
    struct mem_map own = {0};
    const uint64_t *at = b->lines.ptr;
    size_t n_bytes = b->line_bytes;
    const size_t slice_bytes = size_min(b->n_threads * SLICE_BYTES, READ_BYTES);
    const size_t least_bytes = size_max(READ_BYTES, 2 * slice_bytes);
    if (n_bytes < least_bytes) {
        if (!mem_map_open(&own, least_bytes, MEM_PAGES_HUGE))
            return 0.0;
        memset(own.ptr, 1, least_bytes); /* pages that were never written share a page of zeros */
        at = own.ptr;
        n_bytes = least_bytes;
    }
    const size_t n_slices = n_bytes / slice_bytes;
    struct read_job r = {.n_words = slice_bytes / sizeof *at};
    double best = 0.0;
    for (size_t i = 0; i < READ_ROUNDS * n_slices; i++) {
        r.at = at + i % n_slices * r.n_words;
        r.ahead = i / n_slices % 2 == 0 ? AHEAD : 0;
        const double start = clock_seconds();
        team_run(b->n_threads, b->n_threads, read_range, &r);
        const double seconds = clock_seconds() - start;
        best = fmax(best, seconds > 0.0 ? (double)slice_bytes / seconds : 0.0);
    }
    mem_map_close(&own);
    return atomic_load(&r.sum) ? best : 0.0; /* the sum is not 0, which the compiler cannot infer */
}

#define PEAK_MIN_ROUNDS 20000 /* of the first loop, and least of the later ones */
#define PEAK_SECONDS 0.001    /* processor time of a loop */
#define PEAK_LOOPS 100        /* the clock rate is stable after the first loops */

struct peak_loop {
    mac_peak_fn mac_peak;
    size_t n_rounds;
    atomic_size_t n_macs;
    double cpu_seconds; /* processor time of the first thread in the last loop */
};

static void run_loop(void *ud, size_t index, size_t n_threads)
{
    struct peak_loop *loop = ud;
    const double start = clock_thread_seconds();
    (void)n_threads;
    atomic_fetch_add(&loop->n_macs, loop->mac_peak(loop->n_rounds));
    if (index == 0)
        loop->cpu_seconds = clock_thread_seconds() - start;
}

double cpu_measure_mac_peak(struct backend *b, enum bn_mac kind)
{
    struct peak_loop loop = {.mac_peak = kind == BN_MAC_F32 ? b->k.fma_peak : b->k.mac_peak,
                             .n_rounds = PEAK_MIN_ROUNDS};
    double best = 0.0;
    for (size_t i = 0; i < PEAK_LOOPS; i++) {
        atomic_store(&loop.n_macs, 0);
        const double start = clock_seconds();
        team_run(b->n_threads, b->n_threads, run_loop, &loop);
        const double seconds = clock_seconds() - start;
        best = fmax(best, seconds > 0.0 ? (double)atomic_load(&loop.n_macs) / seconds : 0.0);
        /* The length of the next loop follows from processor time. Elapsed time includes the time
         * of other programs, and the loops would become too short to reach the peak. */
        if (loop.cpu_seconds > 0.0)
            loop.n_rounds = size_max(
                PEAK_MIN_ROUNDS, (size_t)(PEAK_SECONDS / loop.cpu_seconds * (double)loop.n_rounds));
    }
    return best;
}
