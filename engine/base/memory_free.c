/*
 * How much more memory this process may take before something has to give: what the system calls
 * available, within the limits of the control groups it is in and of its own address space.
 *
 * Everything is read from Linux' own files; where a file is missing its limit does not exist. Pages
 * of files do not count against a group, since the system takes them back when memory gets short.
 */
#include "engine/base/memory.h"

#include "engine/base/size.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PATH_BYTES 1024
#define LINE_BYTES 1024

/* A number after the first line's beginning `key` ("" for a file of one number). */
static bool read_number(const char *path, const char *key, uint64_t *out)
{
    char line[LINE_BYTES];
    bool is_found = false;
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    while (!is_found && fgets(line, sizeof line, f))
        is_found = strncmp(line, key, strlen(key)) == 0 &&
                   sscanf(line + strlen(key), "%" SCNu64, out) == 1;
    (void)fclose(f); /* only read */
    return is_found;
}

struct group_files {
    const char *mount, *limit, *stat, *key; /* the key's bytes cannot be taken back */
};
static const struct group_files v1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                      "memory.stat", "total_rss "};
static const struct group_files v2 = {"/sys/fs/cgroup", "memory.max", "memory.stat", "anon "};

static size_t free_in_group(const struct group_files *files, const char *dir)
{
    char path[PATH_BYTES + 64];
    uint64_t limit, used;
    (void)snprintf(path, sizeof path, "%s/%s", dir, files->limit);
    if (!read_number(path, "", &limit)) /* "max": no limit */
        return SIZE_MAX;
    (void)snprintf(path, sizeof path, "%s/%s", dir, files->stat);
    if (!read_number(path, files->key, &used))
        return SIZE_MAX;
    return used < limit ? (size_t)(limit - used) : 0;
}

/* The least of a group and of every group around it. Inside a container the path may name
 * directories that only exist outside; what remains is the mount itself. */
static size_t free_in_groups(const struct group_files *files, const char *group)
{
    char dir[PATH_BYTES];
    size_t n = SIZE_MAX;
    const int chars = snprintf(dir, sizeof dir, "%s%s", files->mount, group);
    if (chars < 0 || (size_t)chars >= sizeof dir)
        (void)snprintf(dir, sizeof dir, "%s", files->mount);
    for (;;) {
        n = size_min(n, free_in_group(files, dir));
        char *slash = strrchr(dir, '/');
        if (strlen(dir) <= strlen(files->mount) || !slash)
            return n;
        *slash = '\0';
    }
}

/* Lines of /proc/self/cgroup: "0::/group" (v2) and "4:memory:/group" (v1). */
static size_t cgroup_free(void)
{
    char line[LINE_BYTES];
    size_t n = SIZE_MAX;
    FILE *f = fopen("/proc/self/cgroup", "r");
    if (!f)
        return n;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        const char *names = strchr(line, ':');
        const char *group = names ? strchr(names + 1, ':') : NULL;
        if (!group)
            continue;
        if (group == names + 1)
            n = size_min(n, free_in_groups(&v2, group + 1));
        else if (strncmp(names, ":memory:", 8) == 0)
            n = size_min(n, free_in_groups(&v1, group + 1));
    }
    (void)fclose(f); /* only read */
    return n;
}

static size_t address_space_free(void)
{
    struct rlimit limit;
    uint64_t pages;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        !read_number("/proc/self/statm", "", &pages))
        return SIZE_MAX;
    const uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return used < limit.rlim_cur ? (size_t)(limit.rlim_cur - used) : 0;
}

size_t mem_free_bytes(void)
{
    uint64_t kilobytes;
    size_t n = SIZE_MAX;
    if (read_number("/proc/meminfo", "MemAvailable:", &kilobytes))
        n = (size_t)kilobytes * 1024;
    return size_min(n, size_min(cgroup_free(), address_space_free()));
}
