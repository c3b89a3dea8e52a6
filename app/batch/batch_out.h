/*
 * The output of a batch: answers in the order of the lines, as text, JSON objects or events.
 *
 * With --jsonl the events of the oldest unfinished line are written as they come. Events of later
 * lines wait, so that the output is the same for any number of lines decoded together. Main thread.
 */
#ifndef APP_BATCH_OUT_H
#define APP_BATCH_OUT_H

#include "app/batch/batch_item.h"

struct batch_out {
    const struct options *options;
    const struct tokenizer *tokenizer;
    const char *model; /* name in the model file, for JSON objects */
    size_t n_ctx;
    enum { BATCH_TEXT, BATCH_JSON, BATCH_JSONL } kind;
    size_t n_written; /* number of answers written */
};
void batch_out_init(struct batch_out *out, const struct options *options,
                    const struct tokenizer *tokenizer);

/* Call before the line is answered. With --jsonl the item then collects its events. */
void batch_out_begin(const struct batch_out *out, struct batch_item *item);
void batch_out_text(void *item, enum answer_part part, struct bn_str text); /* a thought_fn */

/* Write the new output of the oldest unfinished line. If the line is done, write its answer and
 * free the item. BN_EIO: stdout cannot be written. BN_ENOMEM. */
bool batch_out_line(struct batch_out *out, struct batch_item *item, struct bn_error *err);
bool batch_out_flush(struct bn_error *err);

/* Collects the numbers of unanswered lines for one message such as "bitnet-chat: stopped: no answer
 * to lines 2, 5 to 7 and to the lines after line 9". */
struct batch_gaps {
    struct strbuf text;
    size_t first, last; /* the range of lines being collected; 0 if none */
};
void batch_gaps_add(struct batch_gaps *g, size_t line);
/* Print the message and free the struct. `more`: there are lines after the first n_lines. */
void batch_gaps_report(struct batch_gaps *g, size_t n_lines, bool more);

#endif
