/*
 * OpenMP teams. Threads beyond n_active enter each parallel region and leave at once: a region with
 * fewer threads would make the OpenMP runtime end the other threads, and a later larger region
 * would have to start them again.
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include "engine/cpu/cpu_team.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_caps.h"

#include <omp.h>
#include <sched.h>

#define MASK_CPUS 8192 /* the largest CPU mask that Linux uses */
#define MASK_BYTES CPU_ALLOC_SIZE(MASK_CPUS)

struct team_pins {
    size_t n_threads;
    size_t *cpus;         /* (n_threads) CPU of each thread */
    unsigned char *masks; /* (n_threads, MASK_BYTES) masks before pinning */
    bool *is_pinned;      /* (n_threads) */
    unsigned char *one;   /* (n_threads, MASK_BYTES) masks with one CPU each */
};

size_t team_size(size_t n_threads)
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
    cpu_set_t *const before = (cpu_set_t *)(void *)(p->masks + index * MASK_BYTES);
    cpu_set_t *const one = (cpu_set_t *)(void *)(p->one + index * MASK_BYTES);
    (void)n_active;
    CPU_SET_S(p->cpus[index], MASK_BYTES, one);
    p->is_pinned[index] =
        sched_getaffinity(0, MASK_BYTES, before) == 0 && sched_setaffinity(0, MASK_BYTES, one) == 0;
}

static void unpin_on_thread(void *ud, size_t index, size_t n_active)
{
    const struct team_pins *p = ud;
    (void)n_active;
    /* This mask was valid before, so the call fails only if its CPUs were removed. */
    if (p->is_pinned[index])
        (void)sched_setaffinity(0, MASK_BYTES,
                                (const cpu_set_t *)(const void *)(p->masks + index * MASK_BYTES));
}

static void free_pins(struct team_pins *p)
{
    mem_free(p->cpus);
    mem_free(p->masks);
    mem_free(p->is_pinned);
    mem_free(p->one);
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
        .masks = mem_alloc(n_threads, MASK_BYTES),
        .is_pinned = mem_alloc(n_threads, sizeof *p->is_pinned),
        .one = mem_alloc(n_threads, MASK_BYTES),
    };
    if (p->cpus && p->masks && p->is_pinned && p->one)
        return p;
    free_pins(p);
    return NULL;
}

bool team_pin(size_t n_threads, struct team_pins **out, struct bn_error *err)
{
    size_t n_cores;
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
