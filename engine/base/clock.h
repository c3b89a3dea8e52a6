/*
 * The monotonic clock and the processor time of a thread, in seconds. Only differences have a
 * meaning.
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

/* Of the calling thread. The time in which the system runs other threads does not count. */
static inline double clock_thread_seconds(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* 0 if the system has no such clock */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
