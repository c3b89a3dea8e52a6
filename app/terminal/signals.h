/*
 * Turns signals into flags and a byte on the wake pipe.
 *
 * Exceptions: an armed SIGINT ends the process; at a terminal, every other signal that ends a
 * process by default first restores the terminal; SIGBUS also prints its likely reason (the
 * memory-mapped model file can no longer be read); SIGXFSZ is ignored.
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

/* SIGTSTP, SIGCONT and signals that end the process, other than SIGBUS, are handled only at a
 * terminal. */
enum signal_user { SIGNALS_PIPE, SIGNALS_TERMINAL };

/* Ignore SIGXFSZ, so that a write beyond the size limit of files fails with a message. Call it
 * before the program writes its first file. */
void signals_ignore_size_limit(void);

/* Make the wake pipe, pipe_fds[0] for reading and pipe_fds[1] for writing, and install the
 * handlers, which write to it. Neither end blocks, and both close in child processes. BN_EIO. */
bool signals_open(enum signal_user user, int pipe_fds[2], struct bn_error *err);
/* Return the flags raised since the last call, and clear them. */
unsigned signals_fetch(void);
/* Empty the pipe; wake_fd is its read end. Call it before signals_fetch, or a flag may be lost. */
void signals_drain(int wake_fd);
/* While armed, SIGINT restores the terminal and ends the process at once with the exit code that
 * shells use for it, 130. */
void signals_arm_interrupt(void);
void signals_disarm_interrupt(void);
/* The set of signals that a worker thread blocks: all but the fatal ones. If a thread blocked its
 * own fault, the process would end without running the handler. */
void signals_set_non_fatal(sigset_t *set);
/* In a child process before exec: set the handlers to their defaults and unblock all signals. */
void signals_reset_child(void);
/* Stop this process as Ctrl-Z does by default. Returns when the process is continued. SIGNAL_RESUME
 * is not raised, because acquiring the terminal twice would damage keys typed in between. */
void signals_stop_self(void);

#endif
