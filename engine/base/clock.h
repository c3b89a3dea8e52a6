/*
 * Seconds on a clock that never goes back.
 */
#ifndef ENGINE_BASE_CLOCK_H
#define ENGINE_BASE_CLOCK_H

double clock_seconds(void);

#endif
