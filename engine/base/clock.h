/*
 * The monotonic clock, in seconds. Only differences have a meaning.
 */
#ifndef ENGINE_BASE_CLOCK_H
#define ENGINE_BASE_CLOCK_H

#include <time.h>

static inline double clock_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with a valid clock and pointer */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
