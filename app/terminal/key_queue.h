/*
 * Keys that were read from the terminal and not used yet: what is typed ahead waits here, as it
 * came but for bytes that are no UTF-8, which become U+FFFD. Main thread; the terminal is taken by
 * tty_take before.
 */
#ifndef APP_KEY_QUEUE_H
#define APP_KEY_QUEUE_H

#include "app/common/strbuf.h"

#include <stdbool.h>

#define KEY_ESCAPE_SECONDS 0.05 /* an Esc that nothing follows so long is the key itself */
#define KEY_PASTE_SECONDS 2.0   /* a paste whose end does not come is ended */
#define KEY_BACKSPACE '\b'
#define KEY_DELETE '\177'
#define KEY_KILL '\025'   /* Ctrl-U */
#define KEY_END '\004'    /* Ctrl-D */
#define KEY_REDRAW '\014' /* Ctrl-L */

struct key_queue {
    struct strbuf bytes; /* valid UTF-8 */
    char part[4];        /* (n_part) begins a character that the next bytes may complete */
    size_t n_part;
    double read_at; /* when the last of them came (clock_seconds) */
};

/* Read what descriptor 0 has; gives how many bytes the queue has more. False: the terminal is gone.
 */
bool key_queue_read(struct key_queue *q, size_t *n_added);
double key_queue_waited(const struct key_queue *q); /* seconds since the last key */
/* What the keys would have typed, about: no keys that move, what was deleted is gone. */
void key_queue_typed(const struct key_queue *q, struct strbuf *out);
/* While something runs: takes out Ctrl-D, since nobody leaves in the middle of an answer by
 * accident, an Esc by itself at the end, and where no editor is open (KEYS_WAIT) each Enter and
 * Ctrl-L; what was pasted stays as it is. */
enum key_rule { KEYS_EDIT, KEYS_WAIT };
struct key_wish {
    bool stops;   /* there was such an Esc */
    bool enters;  /* there was such an Enter */
    bool redraws; /* there was such a Ctrl-L */
};
struct key_wish key_queue_filter(struct key_queue *q, enum key_rule rule);

#endif
