/*
 * Turns the signals of enum signal_flag into flags, and writes a byte to the wake pipe for each.
 *
 * With SIGNALS_TERMINAL, the other signals that end a process by default get a handler, too, except
 * SIGKILL and SIGXFSZ. The handler restores the terminal and ends the process by this signal. If
 * the program was started with another action for such a signal, such as SIG_IGN, the action stays,
 * except for faults, SIGABRT and SIGQUIT. For SIGBUS the handler also prints the message of
 * mapped_file.h; with SIGNALS_PIPE the handler of mapped_file_watch stays.
 */
#ifndef APP_SIGNALS_H
#define APP_SIGNALS_H

#include "app/common/report.h"
#include "engine/base/error.h"

#include <signal.h>
#include <stdbool.h>

enum signal_flag {
    SIGNAL_INTERRUPT = 1, /* SIGINT */
    SIGNAL_TERMINATE = 2, /* SIGTERM */
    SIGNAL_HANGUP = 4,    /* SIGHUP */
    SIGNAL_RESIZE = 8,    /* SIGWINCH */
    SIGNAL_SUSPEND = 16,  /* SIGTSTP */
    SIGNAL_RESUME = 32,   /* SIGCONT */
};

/* With SIGNALS_PIPE only SIGINT, SIGTERM and SIGHUP are handled. If SIGHUP was ignored when the
 * program started, it stays ignored. With SIGNALS_PIPE this holds for SIGINT, too. */
enum signal_user { SIGNALS_PIPE, SIGNALS_TERMINAL };

/* Ignore SIGXFSZ, so that a write beyond the size limit of files fails with a message. Call it
 * before the program writes its first file. */
void signals_ignore_size_limit(void);

/* Make the wake pipe, pipe_fds[0] for reading and pipe_fds[1] for writing, and install the
 * handlers, which write to it. Both ends are non-blocking and are closed on exec. Call it once; the
 * handlers use the pipe until the process ends. BN_EIO: the pipe or a handler cannot be made; the
 * program must end then, because some handlers may be installed. */
bool signals_open(enum signal_user user, int pipe_fds[2], struct bn_error *err);
/* The flags (enum signal_flag) that are raised. They stay raised. */
unsigned signals_raised(void);
/* The exit code for the strongest of these flags: SIGNAL_TERMINATE, SIGNAL_HANGUP,
 * SIGNAL_INTERRUPT. EXIT_DONE: none of the three. */
enum exit_code signals_exit_code(unsigned flags);
/* Return the flags (enum signal_flag) raised since the last call, and clear them. */
unsigned signals_fetch(void);
/* Clear SIGNAL_INTERRUPT, SIGNAL_SUSPEND and SIGNAL_RESUME. The terminal sends the signals of its
 * keys to all programs in the foreground, so Ctrl-C or Ctrl-Z in another program that uses the
 * terminal raises them here, too. Call this after that program has ended. */
void signals_forget_keys(void);
/* Empty the pipe; wake_fd is its read end. Call it before signals_fetch: in the other order, a
 * signal between the two calls would not end the next wait. */
void signals_drain(int wake_fd);
/* Between these two calls, the handler of SIGINT restores the terminal and ends the process at once
 * with the exit code 130, which shells use for SIGINT. */
void signals_arm_interrupt(void);
void signals_disarm_interrupt(void);
/* Set *set to the signals that a worker thread blocks: all but SIGABRT, SIGQUIT and the faults
 * (SIGSEGV, SIGBUS, SIGILL, SIGFPE). If a thread blocked its own fault, the kernel would end the
 * process without running the handler. */
void signals_set_non_fatal(sigset_t *set);
/* In a child process before exec: set the signals of enum signal_flag, SIGPIPE, SIGQUIT and SIGXFSZ
 * to their default actions, and unblock all signals. */
void signals_reset_child(void);
/* Stop this process as Ctrl-Z does by default. Returns when the process is continued, in the
 * foreground or in the background; at once in an orphaned process group, which the kernel does not
 * stop. Acquire the terminal again afterwards. */
void signals_stop_self(void);
/* For tty.c: while the shell has this process in the background, stop it, as the kernel does with
 * each program there that changes the terminal. True: it is in the foreground, or the terminal
 * reports an error. Then SIGNAL_RESUME is cleared: the caller acquires the terminal now, and if the
 * event loop did so a second time, each Ctrl-J typed in between would become Enter (tty_take_early
 * in tty.h). False: it is in the background, and SIGTERM or SIGHUP has arrived, also if
 * signals_fetch has cleared the flag since. A shell sends them to a stopped process together with
 * SIGCONT, and the program must then end without the terminal. */
bool signals_wait_for_foreground(void);

#endif
