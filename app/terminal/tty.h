/*
 * The mode of the terminal: changed by tty_acquire, restored by tty_release and on every exit.
 *
 * While the terminal is acquired, each key arrives at once and without echo. Enter (CR) and Ctrl-J
 * (LF) differ. Ctrl-S and Ctrl-V are ordinary keys. Ctrl-C, Ctrl-\ and Ctrl-Z still send signals.
 * With bracketed paste, the terminal puts marks around each paste.
 */
#ifndef APP_TTY_H
#define APP_TTY_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum tty_paste { TTY_PASTE_PLAIN, TTY_PASTE_BRACKETED };

/* BN_EIO: descriptor 0 is not a terminal. A second call does nothing. */
bool tty_acquire(enum tty_paste paste, struct bn_error *err);
/* Set the same mode again, after another program used the terminal. */
bool tty_reacquire(struct bn_error *err);
/* Call it with the number of bytes that a read returned. Returns how many of them, at the start,
 * were typed before the terminal was acquired. In these bytes an Enter is LF, not CR. */
size_t tty_take_early(size_t n_bytes);
/* Also request bracketed paste, until the terminal is released. */
void tty_enable_bracketed_paste(void);
void tty_release(void);
/* As tty_release, but safe in a signal handler. */
void tty_restore_now(void);

/* Write all bytes to standard output, waiting as long as needed. False: the terminal is gone. */
bool tty_write(const char *bytes, size_t n_bytes);

/* Set at most 100 bytes to write first when the terminal is released. They are written once. ""
 * sets none. */
void tty_set_exit_sequence(const char *bytes);

struct tty_size {
    size_t columns, rows; /* at least 1 each */
};
struct tty_size tty_size(int fd); /* 80 x 24 if unknown */

#endif
