/*
 * The monotonic clock without the time for which the terminal has stopped the process: Ctrl-Z stops
 * it, and so does a shell that has it in the background. Rates and times of answers use this clock,
 * because an answer pauses with the process.
 *
 * A stop with SIGSTOP cannot be seen before it happens, so its time is not left out.
 */
#ifndef APP_RUN_CLOCK_H
#define APP_RUN_CLOCK_H

/* The time in seconds. Only differences have a meaning. Any thread. */
double run_clock_seconds(void);
/* The main thread calls these before the process stops and after it is continued. In between the
 * time does not change: other threads may run a little longer, and again a little earlier. */
void run_clock_stop(void);
void run_clock_continue(void);

#endif
