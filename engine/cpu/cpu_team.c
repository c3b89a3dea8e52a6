/*
 * OpenMP teams. Threads beyond n_active enter each parallel region and leave at once, because after
 * a region with fewer threads the OpenMP runtime ends the others and has to start them again.
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include "engine/cpu/cpu_team.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_threads.h"

#include <omp.h>
#include <sched.h>

/* The largest CPU mask that Linux uses: 8,192 CPUs. A cpu_set_t has 1,024. */
struct cpu_mask {
    cpu_set_t sets[8];
};

struct team_pins {
    size_t n_threads;
    size_t *cpus;            /* (n_threads) CPU of each thread */
    struct cpu_mask *before; /* (n_threads) masks before pinning */
    bool *is_pinned;         /* (n_threads) */
};

size_t team_start(size_t n_threads)
{
    size_t n = 1;
#pragma omp parallel num_threads((int)n_threads)
    {
#pragma omp single
        n = (size_t)omp_get_num_threads();
    }
    return n;
}

void team_run(size_t n_threads, size_t n_active, team_job_fn job, void *ud)
{
    if (n_active <= 1) {
        job(ud, 0, 1);
        return;
    }
#pragma omp parallel num_threads((int)n_threads)
    {
        const size_t n = size_min(n_active, (size_t)omp_get_num_threads());
        const size_t index = (size_t)omp_get_thread_num();
        if (index < n)
            job(ud, index, n);
    }
}

static void pin_on_thread(void *ud, size_t index, size_t n_active)
{
    struct team_pins *p = ud;
    struct cpu_mask one;
    (void)n_active;
    CPU_ZERO_S(sizeof one, one.sets);
    CPU_SET_S(p->cpus[index], sizeof one, one.sets);
    p->is_pinned[index] = sched_getaffinity(0, sizeof one, p->before[index].sets) == 0 &&
                          sched_setaffinity(0, sizeof one, one.sets) == 0;
}

static void unpin_on_thread(void *ud, size_t index, size_t n_active)
{
    const struct team_pins *p = ud;
    (void)n_active;
    /* This mask was valid before, so the call fails only if its CPUs were removed. */
    if (p->is_pinned[index])
        (void)sched_setaffinity(0, sizeof p->before[index], p->before[index].sets);
}

static void free_pins(struct team_pins *p)
{
    mem_free(p->cpus);
    mem_free(p->before);
    mem_free(p->is_pinned);
    mem_free(p);
}

static struct team_pins *make_pins(size_t n_threads)
{
    struct team_pins *p = mem_alloc(1, sizeof *p);
    if (!p)
        return NULL;
    *p = (struct team_pins){
        .n_threads = n_threads,
        .cpus = mem_alloc(n_threads, sizeof *p->cpus),
        .before = mem_alloc(n_threads, sizeof *p->before),
        .is_pinned = mem_alloc(n_threads, sizeof *p->is_pinned),
    };
    if (p->cpus && p->before && p->is_pinned)
        return p;
    free_pins(p);
    return NULL;
}

bool team_pin(size_t n_threads, struct team_pins **out, struct bn_error *err)
{
    size_t n_cores; /* not needed */
    struct team_pins *p = make_pins(n_threads);
    if (!p)
        return bn_fail(err, BN_ENOMEM, "no memory for the masks of %zu threads", n_threads);
    const size_t n_cpus = cpu_list_allowed(p->cpus, n_threads, &n_cores);
    if (n_cpus < n_threads) {
        free_pins(p);
        return bn_fail(err, BN_EARG,
                       "%zu threads cannot be pinned: this process may use %zu processor%s",
                       n_threads, n_cpus, n_cpus == 1 ? "" : "s");
    }
    team_run(n_threads, n_threads, pin_on_thread, p);
    for (size_t i = 0; i < n_threads; i++) {
        if (p->is_pinned[i])
            continue;
        (void)bn_fail(err, BN_EDEVICE, "thread %zu cannot be pinned to processor %zu", i,
                      p->cpus[i]);
        team_unpin(p);
        return false;
    }
    *out = p;
    return true;
}

void team_unpin(struct team_pins *p)
{
    if (!p)
        return;
    team_run(p->n_threads, p->n_threads, unpin_on_thread, p);
    free_pins(p);
}
