/*
 * What a batch writes: answers in the order of the lines, as text, objects or events.
 *
 * The oldest line that is not finished is heard while it is answered (--jsonl); what younger lines
 * say waits until it is their turn, so that the output is the same however many are decoded
 * together. Main thread.
 */
#ifndef APP_BATCH_OUT_H
#define APP_BATCH_OUT_H

#include "app/batch/batch_item.h"

struct batch_out {
    const struct options *options;
    const struct tokenizer *tokenizer;
    const char *model; /* name in the file, for JSON objects */
    size_t n_ctx;
    enum { BATCH_TEXT, BATCH_JSON, BATCH_JSONL } kind;
    size_t n_written; /* lines */
};
void batch_out_init(struct batch_out *out, const struct options *options,
                    const struct tokenizer *tokenizer);

/* The line is about to be answered; what it says goes to item->events from here on. */
void batch_out_begin(const struct batch_out *out, struct batch_item *item);
void batch_out_part(void *item, enum answer_part part, struct bn_str text); /* a thought_fn */

/* The oldest line: what it has said so far, and, once it is done, all of it, after which the item
 * is finished. BN_EIO: stdout; BN_ENOMEM. */
bool batch_out_line(struct batch_out *out, struct batch_item *item, struct bn_error *err);
bool batch_out_flush(struct bn_error *err);

/* "bitnet-chat: stopped: no answer to lines 2, 5 to 7 and to what follows line 9" */
struct batch_gaps {
    struct strbuf text;
    size_t first, last; /* the run of lines that is being collected; 0: none */
};
void batch_gaps_add(struct batch_gaps *g, size_t line);
void batch_gaps_tell(struct batch_gaps *g, size_t n_lines, bool more); /* and finish */

#endif
