/*
 * Keys that were read from the terminal and are not used yet (type-ahead). A key is the byte or the
 * bytes that the terminal sends for it.
 *
 * Invalid UTF-8 and unsafe characters beyond ASCII, such as bidirectional overrides, become U+FFFD
 * (term_text.h). ASCII control characters stay, because they are keys. Main thread only. Call
 * tty_acquire first.
 */
#ifndef APP_KEY_QUEUE_H
#define APP_KEY_QUEUE_H

#include "app/common/strbuf.h"

#include <stdbool.h>

/* An Esc byte with nothing after it for this long is the Esc key, not the first byte of an escape
 * sequence. A terminal sends the bytes of a sequence at once, so they usually arrive together. */
#define KEY_ESCAPE_SECONDS 0.05
#define KEY_PASTE_SECONDS 2.0 /* a paste without an end mark ends after this time without a byte */
#define KEY_ESCAPE '\033'
#define KEY_EOF '\004' /* Ctrl-D */

struct key_queue {       /* zeros: an empty queue; free with strbuf_finish(&q->bytes) */
    struct strbuf bytes; /* complete characters; users remove bytes from its beginning */
    char partial[4];     /* (n_partial) the beginning of a UTF-8 character, not in `bytes` */
    size_t n_partial;
    double read_at; /* when the last bytes arrived (clock_seconds) */
};

/* Read the available bytes of descriptor 0, at most 64 KiB; if there are none, wait for some or for
 * a signal. An LF (Ctrl-J) becomes CR (Enter) in two cases: it was typed before the terminal was
 * acquired, in a mode that stored Enter as LF; or it is the last of several bytes that were read
 * together, as in a line that a program sends (CR LF then becomes one CR). The second case excludes
 * an LF in a paste or after Esc (Alt-Ctrl-J). *n_added is the number of bytes added to the queue.
 * It can be 0, after a signal or if only a part of a character has arrived. If memory is short,
 * keys are lost. False: the terminal is gone. */
bool key_queue_read(struct key_queue *q, size_t *n_added);
double key_queue_idle_seconds(const struct key_queue *q); /* since the last bytes arrived */
/* Number of Esc bytes at the end of the queue. Until KEY_ESCAPE_SECONDS have passed, the last one
 * may be the first byte of an escape sequence. */
size_t key_queue_escapes(const struct key_queue *q);
/* Whether the queue ends within a paste. An Esc byte at the end may then begin the paste's end mark
 * (term_keys.h). */
bool key_queue_in_paste(const struct key_queue *q);
/* Remove the keys that must not stay in the queue during an answer: each Ctrl-D, so that the user
 * does not leave by accident, and after KEY_ESCAPE_SECONDS the Esc keys at the end, with which the
 * user stops the answer. Pastes are unchanged. Returns whether Esc was removed. */
bool key_queue_filter(struct key_queue *q);

#endif
