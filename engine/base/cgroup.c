/*
 * Finds the lowest limit of the control groups of this process. It walks from each group up to the
 * mount point of its hierarchy.
 *
 * /proc/self/cgroup has one line per hierarchy: "0::/group" (version 2) or
 * "4:cpu,cpuacct:/group" (version 1, with the names of its controllers).
 */
#include "engine/base/cgroup.h"

#include "engine/base/size.h"
#include "engine/base/str.h"

#include <stdio.h>
#include <string.h>

#define V2_MOUNT "/sys/fs/cgroup"
#define LINE_MAX_BYTES 1024 /* of a longer line, only ancestors of the group are found */

/* The lowest limit of `group` and its ancestors. Inside a container the path may name directories
 * that exist only on the host; limit_of finds no limit there. */
static size_t lowest_above(const char *root, const char *mount, const char *group,
                           cgroup_limit_fn limit_of)
{
    char dir[CGROUP_DIR_BYTES];
    const size_t mount_chars = strlen(root) + strlen(mount);
    size_t n = SIZE_MAX;
    const int chars = snprintf(dir, sizeof dir, "%s%s%s", root, mount, group);
    if (chars < 0 || (size_t)chars >= sizeof dir) /* too long: only the mount point */
        (void)snprintf(dir, sizeof dir, "%s%s", root, mount);
    for (;;) {
        n = size_min(n, limit_of(dir));
        char *slash = strrchr(dir, '/');
        if (strlen(dir) <= mount_chars || !slash)
            return n;
        *slash = '\0';
    }
}

size_t cgroup_lowest_limit(const char *root, const struct cgroup_limit *limit)
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
            n = size_min(n, lowest_above(root, V2_MOUNT, group, limit->of_v2));
        else if (str_list_has(names, limit->controller))
            n = size_min(n, lowest_above(root, limit->v1_mount, group, limit->of_v1));
    }
    (void)fclose(f); /* only read */
    return n;
}
