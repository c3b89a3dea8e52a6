/*
 * The number of threads of this process. Decoding is bound by memory, so a second thread on the
 * same core would only compete for cache.
 *
 * Topology and quota are read from Linux files. Without the file of a quota there is no limit, and
 * without that of a CPU's siblings the CPU counts as a core.
 */
#define _GNU_SOURCE /* sched_getaffinity, CPU_ISSET */
#include "engine/cpu/cpu_threads.h"

#include "engine/base/cgroup.h"
#include "engine/base/size.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CPUS 8192       /* most that Linux supports */
#define LINE_MAX_BYTES 1024 /* more than the lines of these files have */

/* Read the first line of a file without its newline; false if the file is missing or empty. */
static bool read_line(const char *path, char line[LINE_MAX_BYTES])
{
    FILE *f = fopen(path, "re"); /* e: child programs do not inherit the file */
    if (!f)
        return false;
    const bool ok = fgets(line, LINE_MAX_BYTES, f) != NULL;
    (void)fclose(f);
    if (ok)
        line[strcspn(line, "\n")] = '\0';
    return ok;
}

/* Whether an allowed CPU below `cpu` shares its core, according to a list such as "0,64" or
 * "0-1". */
static bool has_lower_sibling(const char *list, size_t cpu, const cpu_set_t *set, size_t set_bytes)
{
    const char *p = list;
    while (*p >= '0' && *p <= '9') {
        char *end;
        const unsigned long first = strtoul(p, &end, 10);
        unsigned long last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long i = first; i <= last && i < cpu; i++)
            if (CPU_ISSET_S(i, set_bytes, set))
                return true;
        p = *end == ',' ? end + 1 : end;
    }
    return false;
}

/* Whether this is the lowest allowed CPU of its core. */
static bool is_first_of_core(size_t cpu, const cpu_set_t *set, size_t set_bytes)
{
    char path[128], list[LINE_MAX_BYTES];
    (void)snprintf(path, sizeof path,
                   "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list", cpu);
    return !read_line(path, list) || !has_lower_sibling(list, cpu, set, set_bytes);
}

size_t cpu_list_allowed(size_t *cpus, size_t cap, size_t *n_cores)
{
    const size_t set_bytes = CPU_ALLOC_SIZE(MAX_CPUS);
    cpu_set_t *set = CPU_ALLOC(MAX_CPUS);
    size_t n = 0;
    *n_cores = 0;
    if (!set)
        return 0;
    CPU_ZERO_S(set_bytes, set);
    if (sched_getaffinity(0, set_bytes, set) != 0) /* then no CPU is listed */
        CPU_ZERO_S(set_bytes, set);
    for (int round = 0; round < 2; round++) { /* first CPUs of cores, then their siblings */
        for (size_t cpu = 0; cpu < MAX_CPUS; cpu++) {
            if (!CPU_ISSET_S(cpu, set_bytes, set) ||
                is_first_of_core(cpu, set, set_bytes) != (round == 0))
                continue;
            if (n < cap)
                cpus[n] = cpu;
            n++;
        }
        if (round == 0)
            *n_cores = n;
    }
    CPU_FREE(set);
    return n;
}

/* quota / period in whole CPUs, rounded up; SIZE_MAX for no limit. */
static size_t quota_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return SIZE_MAX;
    return (size_t)((quota - 1) / period + 1);
}

static size_t quota_of_v2(const char *dir)
{
    char path[CGROUP_DIR_BYTES + 64], line[LINE_MAX_BYTES], *end;
    (void)snprintf(path, sizeof path, "%s/cpu.max", dir);
    if (!read_line(path, line) || strncmp(line, "max", 3) == 0)
        return SIZE_MAX;
    const long long quota = strtoll(line, &end, 10);
    return quota_cpus(quota, strtoll(end, NULL, 10));
}

static size_t quota_of_v1(const char *dir)
{
    char path[CGROUP_DIR_BYTES + 64], quota[LINE_MAX_BYTES], period[LINE_MAX_BYTES];
    (void)snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", dir);
    if (!read_line(path, quota))
        return SIZE_MAX;
    (void)snprintf(path, sizeof path, "%s/cpu.cfs_period_us", dir);
    if (!read_line(path, period))
        return SIZE_MAX;
    return quota_cpus(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

static const struct cgroup_limit quota = {"cpu", "/sys/fs/cgroup/cpu", quota_of_v1, quota_of_v2};

size_t cpu_quota_threads(const char *root)
{
    return cgroup_lowest_limit(root, &quota);
}

size_t cpu_default_threads(void)
{
    size_t n_cores;
    (void)cpu_list_allowed(NULL, 0, &n_cores); /* only n_cores is needed */
    return size_min(size_min(size_max(n_cores, 1), MAX_THREADS), cpu_quota_threads(""));
}
