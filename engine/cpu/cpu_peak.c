/*
 * How many products a second this machine's rung can do at all, of bytes or of floats, with the
 * threads of the backend and nothing read from memory: the yardstick that the speed of reading
 * prompts, and of attention, is held against.
 */
#include "engine/base/clock.h"
#include "engine/cpu/cpu_state.h"

#include <stdatomic.h>

#define ROUNDS 20000
#define SECONDS 0.04 /* one loop, about; clocks have settled after the first */
#define N_LOOPS 5

struct peak_loop {
    mac_peak_fn mac_peak;
    size_t n_rounds;
    atomic_size_t n_macs;
};

static void run_loop(void *ud, size_t index, size_t n_lanes)
{
    struct peak_loop *loop = ud;
    (void)index;
    (void)n_lanes;
    atomic_fetch_add(&loop->n_macs, loop->mac_peak(loop->n_rounds));
}

double cpu_mac_peak(struct backend *b, enum bn_mac kind)
{
    struct peak_loop loop = {.mac_peak = kind == BN_MAC_F32 ? b->k.fma_peak : b->k.mac_peak,
                             .n_rounds = ROUNDS};
    double best = 0.0;
    for (size_t i = 0; i < N_LOOPS; i++) {
        atomic_store(&loop.n_macs, 0);
        const double start = clock_seconds();
        team_run(b->n_threads, b->n_threads, run_loop, &loop);
        const double seconds = clock_seconds() - start;
        const double rate = seconds > 0.0 ? (double)atomic_load(&loop.n_macs) / seconds : 0.0;
        best = rate > best ? rate : best;
        if (i == 0 && seconds > 0.0 && seconds < SECONDS)
            loop.n_rounds = (size_t)(ROUNDS * SECONDS / seconds);
    }
    return best;
}
