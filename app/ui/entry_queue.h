/*
 * The lines that the user has entered during an answer. They are sent in order, one after each
 * answer. Main thread only.
 */
#ifndef APP_ENTRY_QUEUE_H
#define APP_ENTRY_QUEUE_H

#include "app/common/strbuf.h"

struct entry_queue {
    struct strbuf *items; /* (n) the first is sent next; texts may have marks of long pastes */
    size_t n, cap;
};
void entry_queue_finish(struct entry_queue *q);

/* Add a line at the end. False: out of memory. */
bool entry_queue_add(struct entry_queue *q, struct bn_str line);
/* Remove a line and append it to `out`. False: the queue is empty. */
bool entry_queue_take_first(struct entry_queue *q, struct strbuf *out);
bool entry_queue_take_last(struct entry_queue *q, struct strbuf *out);
/* Append one row of at most `width` columns and a newline for each line, in order. If there are
 * more than max_rows >= 1 lines, the last row has the number of the others. */
void entry_queue_rows(const struct entry_queue *q, size_t width, size_t max_rows,
                      struct strbuf *out);
/* Append the row of the last line, without a newline. Nothing if the queue is empty. */
void entry_queue_last_row(const struct entry_queue *q, size_t width, struct strbuf *out);

#endif
