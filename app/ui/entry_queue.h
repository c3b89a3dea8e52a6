/*
 * The lines (messages and commands) that the user has entered while a turn runs or waits for the
 * model. They become events in the order of their entry, one at a time, while no turn runs or
 * waits. Before that the user can take them back, or stop the answer (ui_terminal_unqueue_all).
 * Main thread only.
 */
#ifndef APP_ENTRY_QUEUE_H
#define APP_ENTRY_QUEUE_H

#include "app/common/strbuf.h"

struct entry_queue {      /* zeros: an empty queue */
    struct strbuf *items; /* (n) the first is sent next; with placeholders (line_edit.h) */
    size_t n, cap;
};
void entry_queue_finish(struct entry_queue *q); /* frees the lines; the queue is empty then */

/* Add a copy of a line at the end. False: out of memory, and the queue is unchanged. */
bool entry_queue_add(struct entry_queue *q, struct bn_str line);
/* Remove the first line and move it to `out` in place of the old text. This needs no memory. False:
 * the queue is empty, and `out` is unchanged. */
bool entry_queue_take_first(struct entry_queue *q, struct strbuf *out);
/* Remove the last line and append it to `out`. False: the queue is empty. If memory runs out,
 * out->failed is set, and the line is lost. */
bool entry_queue_take_last(struct entry_queue *q, struct strbuf *out);
#define ENTRY_NEXT "next: " /* label of lines that wait */
/* For display: append at most max_rows >= 1 rows of at most `width` columns, each with a newline.
 * Each line in order has a row, the label and the line, which is cut if it is too long. If the
 * lines are more than max_rows, the last row is "and N more" instead. */
void entry_queue_rows(const struct entry_queue *q, const char *label, size_t width, size_t max_rows,
                      struct strbuf *out);
/* Append only the row of the last line, with ENTRY_NEXT and without a newline; nothing if the queue
 * is empty. */
void entry_queue_last_row(const struct entry_queue *q, size_t width, struct strbuf *out);

#endif
