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
#define KEY_BACKSPACE '\b'
#define KEY_DELETE '\177'
#define KEY_KILL '\025'   /* Ctrl-U */
#define KEY_EOF '\004'    /* Ctrl-D */
#define KEY_REDRAW '\014' /* Ctrl-L */

struct key_queue {
    struct strbuf bytes;
    char partial[4]; /* (n_partial) an incomplete character */
    size_t n_partial;
    double read_at; /* when the last bytes came (clock_seconds) */
};

/* Read what descriptor 0 has. *n_added is how much the queue grew, in bytes. False: the terminal is
 * gone. */
bool key_queue_read(struct key_queue *q, size_t *n_added);
double key_queue_idle_seconds(const struct key_queue *q); /* seconds since the last key */
/* Append approximately what the keys would type: movement keys are ignored, deletions are
 * applied. */
void key_queue_typed(const struct key_queue *q, struct strbuf *out);
/* Remove keys that must not wait while an answer is generated: Ctrl-D (so that the user does not
 * leave by accident), a lone Esc at the end and, while no editor is open (KEYS_WAIT), each Enter
 * and Ctrl-L without Alt. Pastes are unchanged. Returns which of Esc, Enter, Ctrl-L it removed. */
enum key_rule { KEYS_EDIT, KEYS_WAIT };
struct key_requests {
    bool stops;   /* Esc */
    bool enters;  /* Enter */
    bool redraws; /* Ctrl-L */
};
struct key_requests key_queue_filter(struct key_queue *q, enum key_rule rule);

#endif
