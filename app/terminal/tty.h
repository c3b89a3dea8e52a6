/*
 * The terminal's modes: taken once, given back on every way out.
 *
 * While taken, keys come one by one and unseen, Enter (CR) and Ctrl-J (LF) differ, Ctrl-S and
 * Ctrl-V are ordinary keys, Ctrl-C, Ctrl-\ and Ctrl-Z are still signals, and pastes come between
 * markers.
 */
#ifndef APP_TTY_H
#define APP_TTY_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum tty_paste { TTY_PASTE_PLAIN, TTY_PASTE_MARKED }; /* MARKED: ask for bracketed paste */

/* BN_EIO: descriptor 0 is no terminal. Taking twice is fine. */
bool tty_take(enum tty_paste paste, struct bn_error *err);
/* As it was taken last, after somebody else had the terminal. */
bool tty_take_again(struct bn_error *err);
/* Ask for marked pastes after all, until the terminal is given back. */
void tty_mark_pastes(void);
void tty_give_back(void);
/* The same from a signal handler: only calls that are safe there. */
void tty_restore_now(void);

/* All bytes to standard output, however long it takes it. False: the terminal is gone. */
bool tty_write(const char *bytes, size_t n_bytes);

/* What else brings the terminal back: written first by the calls above. Cut at 100 bytes; "": there
 * is nothing. Forgotten when the terminal is given back. */
void tty_set_leave(const char *bytes);

struct tty_size {
    size_t columns, rows; /* at least 1 each */
};
struct tty_size tty_size(int fd); /* 80 x 24 where the system does not say */

#endif
