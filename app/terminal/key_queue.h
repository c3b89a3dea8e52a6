/*
 * Keys that were read from the terminal and are not used yet (type-ahead).
 *
 * Bytes that are not valid UTF-8 become U+FFFD, and so do C1 controls, bidirectional overrides and
 * the like (term_text.h). All others stay as they came. Main thread only. Call tty_acquire first.
 */
#ifndef APP_KEY_QUEUE_H
#define APP_KEY_QUEUE_H

#include "app/common/strbuf.h"

#include <stdbool.h>

#define KEY_ESCAPE_SECONDS 0.05 /* an Esc followed by nothing for this long is the Esc key itself */
#define KEY_PASTE_SECONDS 2.0   /* a paste without an end mark ends after this time without a key */
#define KEY_ESCAPE '\033'
#define KEY_EOF '\004' /* Ctrl-D */

struct key_queue {
    struct strbuf bytes;
    char partial[4]; /* (n_partial) an incomplete character */
    size_t n_partial;
    double read_at; /* when the last bytes came (clock_seconds) */
};

/* Read what descriptor 0 has. Some LF (Ctrl-J) become CR (Enter): those typed before the terminal
 * was acquired, and one that is the last of several bytes, as in a line that a program sends; but
 * not within a paste, and not after Esc (Alt-Ctrl-J). *n_added is how much the queue grew, in
 * bytes. False: the terminal is gone. */
bool key_queue_read(struct key_queue *q, size_t *n_added);
double key_queue_idle_seconds(const struct key_queue *q); /* seconds since the last key */
/* Number of bytes at the end that are only Esc keys (0 if they follow other bytes of a sequence).
 * Until KEY_ESCAPE_SECONDS have passed, the last one may begin the sequence of another key. */
size_t key_queue_escapes(const struct key_queue *q);
/* Remove keys that must not wait while an answer is generated: Ctrl-D, so that the user does not
 * leave by accident, and lone Esc keys at the end. Pastes are unchanged. Returns whether Esc was
 * among them. */
bool key_queue_filter(struct key_queue *q);

#endif
