/*
 * Why lanes beyond n_lanes enter and leave again: a region of fewer threads makes the runtime end
 * the others, and a larger one start them anew.
 */
#include "engine/cpu/cpu_team.h"

#include "engine/base/size.h"

#include <omp.h>

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

void team_run(size_t n_threads, size_t n_lanes, team_job_fn job, void *ud)
{
    if (n_lanes <= 1) {
        job(ud, 0, 1);
        return;
    }
#pragma omp parallel num_threads((int)n_threads)
    {
        const size_t n = size_min(n_lanes, (size_t)omp_get_num_threads());
        const size_t index = (size_t)omp_get_thread_num();
        if (index < n)
            job(ud, index, n);
    }
}
