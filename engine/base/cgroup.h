/*
 * Limits of the control groups of this process. Only Linux has them; on other systems no limit is
 * found.
 *
 * The limit of a group also holds for the groups inside it, so the lowest limit of a group and all
 * its ancestors applies.
 */
#ifndef ENGINE_BASE_CGROUP_H
#define ENGINE_BASE_CGROUP_H

#include <stddef.h>

/* Returns the limit of the group with this directory, or what is left of it, whichever the caller
 * of cgroup_lowest_limit needs. SIZE_MAX: no limit, or there is no such directory. */
typedef size_t (*cgroup_limit_fn)(const char *dir);

struct cgroup_limit {
    const char *controller;       /* name of the controller in version 1, as in /proc/self/cgroup */
    const char *v1_mount;         /* mount point of that controller */
    cgroup_limit_fn of_v1, of_v2; /* for groups of version 1 and 2, in the same unit */
};

#define CGROUP_DIR_BYTES 1024 /* longest path passed to of_v1 and of_v2, with terminator */

/* The lowest limit of all groups of the process, SIZE_MAX if no group has a limit or the groups
 * cannot be read. `root` is a prefix of every path; it is "" except in tests. */
size_t cgroup_lowest_limit(const char *root, const struct cgroup_limit *limit);

#endif
