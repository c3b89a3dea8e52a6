/*
 * Walks from the process's groups up to where they are mounted: see cgroup.h.
 */
#include "engine/base/cgroup.h"

#include "engine/base/size.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define V2_MOUNT "/sys/fs/cgroup"
#define LINE_MAX_BYTES 1024

/* Inside a container the path may name directories that only exist outside; what remains is the
 * mount itself. */
static size_t least_above(const char *root, const char *mount, const char *group,
                          cgroup_limit_fn limit_of)
{
    char dir[CGROUP_DIR_BYTES];
    const size_t mount_chars = strlen(root) + strlen(mount);
    size_t n = SIZE_MAX;
    const int chars = snprintf(dir, sizeof dir, "%s%s%s", root, mount, group);
    if (chars < 0 || (size_t)chars >= sizeof dir)
        (void)snprintf(dir, sizeof dir, "%s%s", root, mount);
    for (;;) {
        n = size_min(n, limit_of(dir));
        char *slash = strrchr(dir, '/');
        if (strlen(dir) <= mount_chars || !slash)
            return n;
        *slash = '\0';
    }
}

/* Is the name one of those in a list with commas? */
static bool is_in_list(const char *list, const char *name)
{
    const size_t chars = strlen(name);
    for (;;) {
        const size_t n = strcspn(list, ",");
        if (n == chars && memcmp(list, name, n) == 0)
            return true;
        if (!list[n])
            return false;
        list += n + 1;
    }
}

/* Lines of /proc/self/cgroup: "0::/group" (v2) and "4:cpu,cpuacct:/group" (v1). */
size_t cgroup_least(const char *root, const struct cgroup_limit *limit)
{
    char path[CGROUP_DIR_BYTES], line[LINE_MAX_BYTES];
    size_t n = SIZE_MAX;
    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    if (!f)
        return n;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *names = strchr(line, ':');
        char *group = names ? strchr(names + 1, ':') : NULL;
        if (!group)
            continue;
        *names++ = '\0';
        *group++ = '\0';
        if (*names == '\0')
            n = size_min(n, least_above(root, V2_MOUNT, group, limit->of_v2));
        else if (is_in_list(names, limit->controller))
            n = size_min(n, least_above(root, limit->v1_mount, group, limit->of_v1));
    }
    (void)fclose(f); /* only read */
    return n;
}
