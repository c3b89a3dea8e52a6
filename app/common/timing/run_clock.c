/*
 * The clock that stops with the process: see run_clock.h.
 *
 * One atomic number has the whole state, so that a thread that is continued before the main thread
 * never sees half of a change.
 */
#include "app/common/timing/run_clock.h"

#include "engine/base/clock.h"

#include <stdatomic.h>

/* Not negative: the seconds of all stops so far. Negative: the clock is stopped, and this is its
 * time with a minus sign. The time is positive, because the monotonic clock begins before the
 * program. */
static _Atomic double state;

double run_clock_seconds(void)
{
    for (;;) {
        const double s = state;
        const double time = s < 0 ? -s : clock_seconds() - s;
        if (s == state) /* else the process may have been stopped between the two lines above */
            return time;
    }
}

void run_clock_stop(void)
{
    state = -run_clock_seconds();
}

void run_clock_continue(void)
{
    state = clock_seconds() - run_clock_seconds();
}
