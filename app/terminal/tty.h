/*
 * The mode of the terminal (termios). tty_acquire sets it. tty_release restores the old mode, and
 * so do the signal handlers in signals.c before they end the process. Main thread only.
 *
 * While the terminal is acquired, each key arrives at once and without echo. Enter (CR) and Ctrl-J
 * (LF) differ. Ctrl-S and Ctrl-V are ordinary keys. Ctrl-C, Ctrl-\ and Ctrl-Z still send signals.
 * With bracketed paste, the terminal sends a mark before and after each paste (term_keys.h).
 */
#ifndef APP_TTY_H
#define APP_TTY_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum tty_paste {
    TTY_PASTE_PLAIN, /* pastes arrive as if they were typed */
    TTY_PASTE_BRACKETED
};

/* In the background of a shell, this stops the process until the shell continues it in the
 * foreground. BN_EIO: descriptor 0 is not a terminal, its mode cannot be set, or a signal ends the
 * program (signals_wait_for_foreground). While the terminal is acquired, another call does nothing,
 * also with another `paste`, and returns true. */
bool tty_acquire(enum tty_paste paste, struct bn_error *err);
/* Whether the shell has this process in the background. Safe in a signal handler. */
bool tty_is_in_background(void);
/* The wait of tty_acquire alone, for a caller that writes to the terminal before tty_reacquire.
 * BN_EIO: a signal ends the program. */
bool tty_wait_for_foreground(struct bn_error *err);
/* Set the mode and bracketed paste again, after another program has used the terminal: wait for the
 * foreground, tty_release, then tty_acquire. BN_EIO as for tty_acquire; the terminal is not
 * acquired then, unless a signal ends the program. */
bool tty_reacquire(struct bn_error *err);
/* Call it after each read from descriptor 0, with the number of bytes that the read returned.
 * Returns how many of these bytes, counted from the first, were typed before the terminal was
 * acquired and have an LF for each Enter. */
size_t tty_take_early(size_t n_bytes);
/* Switch bracketed paste on, for a terminal acquired with TTY_PASTE_PLAIN. tty_release switches it
 * off. */
void tty_enable_bracketed_paste(void);
/* Restore the old mode; nothing if the terminal is not acquired. A process in the background must
 * not change the terminal, which belongs to the shell: then only the state of this module changes.
 */
void tty_release(void);
/* Does the same as tty_release, but a signal handler may call it. Returns whether it restored the
 * mode. */
bool tty_restore_now(void);

/* Write all bytes to standard output, waiting as long as needed. False: write failed, which at a
 * terminal means that it is gone. */
bool tty_write(const char *bytes, size_t n_bytes);

/* Copy a string that the next tty_release or tty_restore_now of the acquired terminal writes first,
 * for example to leave the full screen. The string is then forgotten. Only its first 100 bytes are
 * used. "": write nothing. */
void tty_set_exit_sequence(const char *bytes);

struct tty_size {
    size_t columns, rows; /* at least 1 each */
};
struct tty_size tty_size(int fd); /* of the terminal at `fd`; 80 x 24 if unknown */
/* Columns of a row that ends before the last column, so that the terminal does not break it; at
 * least 1. */
size_t tty_safe_columns(struct tty_size size);

#endif
