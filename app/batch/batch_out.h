/*
 * The output of a batch: answers in the order of the lines, as text, JSON objects or events.
 *
 * With --jsonl the events of the oldest unwritten line are written while it is answered. Events of
 * later lines wait, so that the output is the same for any number of lines decoded together. Main
 * thread.
 */
#ifndef APP_BATCH_OUT_H
#define APP_BATCH_OUT_H

#include "app/batch/batch_item.h"
#include "app/common/log_file.h"

struct batch_out {
    const struct options *options;
    const struct tokenizer *tokenizer;
    /* The caller sets the next two when the model is open. */
    const char *model;    /* name in the model file, for JSON objects */
    size_t n_ctx;         /* context of a sequence in tokens, for --stats */
    struct log_file *log; /* gets the statistics of each answer; owned by the batch */
    enum { BATCH_TEXT, BATCH_JSON, BATCH_JSONL } kind; /* JSON: --json; JSONL: --jsonl */
    size_t n_written; /* number of answers written, failed lines included */
};
void batch_out_init(struct batch_out *out, const struct options *options,
                    const struct tokenizer *tokenizer, struct log_file *log);

/* Call it after the line is parsed, also without success, and before its answer begins. With
 * --jsonl the item then collects its events, first the event "start". */
void batch_out_begin(const struct batch_out *out, struct batch_item *item);
/* A thought_fn: appends `text` to the answer or thought of `item`, a struct batch_item, and with
 * --jsonl adds an event with this text. */
void batch_out_text(void *item, enum answer_part part, struct bn_str text);

/* Write the new events of `item`, the oldest unwritten line, to stdout, which is not flushed. If
 * the line is done, also write its answer, print its statistics and warnings, and call
 * batch_item_finish. BN_EIO: stdout cannot be written. BN_ENOMEM. */
bool batch_out_line(struct batch_out *out, struct batch_item *item, struct bn_error *err);
bool batch_out_flush(struct bn_error *err); /* flush stdout; BN_EIO */

/* Collects the numbers of unanswered lines for one message such as "bitnet-chat: stopped: no answer
 * to lines 2, 5 to 7 and to the lines after line 9". */
struct batch_unanswered {
    struct strbuf text; /* the finished ranges: "2, 5 to 7" */
    size_t first, last; /* the range that the next line may extend; 0 before the first line */
};
/* Add a line; lines are added in ascending order. */
void batch_unanswered_add(struct batch_unanswered *u, size_t line);
/* Print the message, unless no line was added and `more` is false, and free the struct. n_lines is
 * the number of lines read so far. `more`: stdin has or may have further lines. */
void batch_unanswered_report(struct batch_unanswered *u, size_t n_lines, bool more);

#endif
