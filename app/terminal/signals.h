/*
 * Signals become flags and a byte on the wake pipe; nothing else happens in a handler, except that
 * a fatal signal puts the terminal back first, and SIGBUS says what it means: the model file is
 * mapped, and is not there any more.
 */
#ifndef APP_SIGNALS_H
#define APP_SIGNALS_H

#include "engine/base/error.h"

#include <signal.h>
#include <stdbool.h>

enum signal_flag {
    SIGNAL_INTERRUPT = 1, /* SIGINT */
    SIGNAL_TERMINATE = 2,
    SIGNAL_HANGUP = 4,
    SIGNAL_RESIZE = 8,
    SIGNAL_SUSPEND = 16, /* SIGTSTP */
    SIGNAL_RESUME = 32,  /* SIGCONT */
};

/* SUSPEND, and fatal signals but SIGBUS, are looked after at a terminal only. */
enum signal_user { SIGNALS_PIPE, SIGNALS_TERMINAL };

/* Both ends non-blocking and closed on exec; wake_fd is what handlers write to. BN_EIO. */
bool signals_open(enum signal_user user, int wake_fd, struct bn_error *err);
/* The flags raised since the last call. */
unsigned signals_take(void);
/* Empty the pipe; wake_fd is its other end. Flags raised before are not lost: take them after. */
void signals_drain(int wake_fd);
/* While armed, an interrupt restores the terminal and ends the process at once, with 130. */
void signals_arm_interrupt(void);
void signals_disarm_interrupt(void);
/* What a thread blocks that leaves signals to another: all but the fatal ones, since where a
 * thread's own fault is blocked the process ends without its handler. */
void signals_but_fatal(sigset_t *set);
/* Stop this process as Ctrl-Z does by default; returns when it is continued, which raises no
 * RESUME: taking the terminal twice would spoil keys that come in between. */
void signals_stop_self(void);

#endif
