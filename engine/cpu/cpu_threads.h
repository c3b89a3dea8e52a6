/*
 * How many threads to use: the affinity mask, the physical cores and the quota of the cgroup.
 */
#ifndef ENGINE_CPU_CPU_THREADS_H
#define ENGINE_CPU_CPU_THREADS_H

#include <stddef.h>

/* List the CPUs that the calling thread's mask allows: one of each physical core first, then the
 * other hardware threads of these cores. At most cap numbers are written; cpus may be NULL if cap
 * is 0. Returns the number of all these CPUs, also if it is above cap, and sets *n_cores to that of
 * cores. Both are 0 if the system does not report them or memory is short. */
size_t cpu_list_allowed(size_t *cpus, size_t cap, size_t *n_cores);

#define MAX_THREADS 1024 /* most threads of a backend; bounds its scratch memory */
/* Number of threads this process should use: one per physical core of the affinity mask, limited by
 * the cgroup quota. 1 to MAX_THREADS. */
size_t cpu_default_threads(void);
/* The cgroup CPU quota in whole CPUs, rounded up; SIZE_MAX: no limit. Reads ROOT/proc/self/cgroup
 * and ROOT/sys/fs/cgroup; root is "" except in tests. */
size_t cpu_quota_threads(const char *root);

#endif
