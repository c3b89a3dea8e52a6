/*
 * How much more memory this process may take before something has to give: what the system calls
 * available, within the limits of the control groups it is in and of its own address space.
 *
 * Everything is read from Linux' own files; where a file is missing its limit does not exist. Pages
 * of files do not count against a group, since the system takes them back when memory gets short.
 */
#include "engine/base/memory.h"

#include "engine/base/cgroup.h"
#include "engine/base/proc_number.h"
#include "engine/base/size.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* A group's limit less the bytes that cannot be taken back: the number after `key` in its
 * memory.stat. */
static size_t free_in_group(const char *dir, const char *limit_name, const char *key)
{
    char path[CGROUP_DIR_BYTES + 64];
    uint64_t limit, used;
    (void)snprintf(path, sizeof path, "%s/%s", dir, limit_name);
    if (!proc_number(path, "", &limit)) /* "max": no limit */
        return SIZE_MAX;
    (void)snprintf(path, sizeof path, "%s/memory.stat", dir);
    if (!proc_number(path, key, &used))
        return SIZE_MAX;
    return used < limit ? (size_t)(limit - used) : 0;
}

static size_t free_of_v1(const char *dir)
{
    return free_in_group(dir, "memory.limit_in_bytes", "total_rss ");
}

static size_t free_of_v2(const char *dir)
{
    return free_in_group(dir, "memory.max", "anon ");
}

static const struct cgroup_limit groups = {"memory", "/sys/fs/cgroup/memory", free_of_v1,
                                           free_of_v2};

static size_t address_space_free(void)
{
    struct rlimit limit;
    uint64_t pages;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        !proc_number("/proc/self/statm", "", &pages))
        return SIZE_MAX;
    const uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return used < limit.rlim_cur ? (size_t)(limit.rlim_cur - used) : 0;
}

size_t mem_free_bytes(void)
{
    uint64_t kilobytes;
    size_t n = SIZE_MAX;
    if (proc_number("/proc/meminfo", "MemAvailable:", &kilobytes))
        n = (size_t)kilobytes * 1024;
    return size_min(n, size_min(cgroup_least("", &groups), address_space_free()));
}
