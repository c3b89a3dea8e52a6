/*
 * The control groups that this process is in: limits of a group hold for every group in it, so what
 * counts is the least of all around it. Linux; elsewhere there are none.
 */
#ifndef ENGINE_BASE_CGROUP_H
#define ENGINE_BASE_CGROUP_H

#include <stddef.h>

/* What a limit leaves in the group of this directory, SIZE_MAX for no limit. */
typedef size_t (*cgroup_limit_fn)(const char *dir);

struct cgroup_limit {
    const char *controller; /* as /proc/self/cgroup names it, version 1 */
    const char *v1_mount;   /* where that controller's groups are */
    cgroup_limit_fn of_v1, of_v2;
};

#define CGROUP_DIR_BYTES 1024 /* most bytes of a directory given to of_v1 and of_v2 */

/* The least over all groups around the process; SIZE_MAX where nothing limits it. Files are looked
 * up below `root`: "" but in tests. */
size_t cgroup_least(const char *root, const struct cgroup_limit *limit);

#endif
