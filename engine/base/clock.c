/*
 * The monotonic clock.
 */
#define _POSIX_C_SOURCE 200809L
#include "engine/base/clock.h"

#include <time.h>

double clock_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with a valid clock and pointer */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
