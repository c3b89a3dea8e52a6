/*
 * One line of a batch: the request, the progress and the answer.
 */
#ifndef APP_BATCH_ITEM_H
#define APP_BATCH_ITEM_H

#include "app/chat/conversation/chat_prompt.h"
#include "app/chat/conversation/thought.h"
#include "app/chat/turn.h"
#include "app/common/strbuf.h"

#include <jansson.h>

struct batch_item {
    size_t line; /* number of the input line, from 1 */
    json_t *id;  /* copied to the answer; NULL if the request has none */
    struct strbuf prompt, system;
    struct turn turn;
    struct thought thought;
    struct answer_state answer;
    struct generator_seq *seq;      /* owned by the batch */
    const struct token_list *close; /* tokens that close a thought; owned by the batch */
    int32_t next;                   /* chosen by the model, not yet part of the answer */
    size_t n_alts;                  /* alternatives to report with each token */
    bool has_events;                /* --jsonl: each piece of the answer becomes an event */
    struct strbuf events;           /* JSON lines to write */
    bool is_done;
    struct bn_error err; /* if set, there is no answer */
};
void batch_item_finish(struct batch_item *item); /* an all-zero item is fine */

/* Parse a line: a prompt, or a JSON object if it begins with a brace. Members that the object lacks
 * do not change the item. BN_EARG: not a valid object, or binary data. */
bool batch_item_parse(struct batch_item *item, struct bn_str line, struct bn_error *err);

/* Evaluate the prompt and choose the first token, item->next. BN_ECONTEXT, BN_EARG and BN_EFORMAT
 * affect only this item. Other errors end the batch. */
bool batch_item_begin(struct batch_item *item, const struct prompt_maker *maker, size_t n_ctx,
                      const struct bn_control *control, struct bn_error *err);
/* Append item->next to the answer. Sets is_done when the answer has ended. BN_ENOMEM. */
bool batch_item_add(struct batch_item *item, struct bn_error *err);
/* End the answer now, as interrupted. */
void batch_item_stop(struct batch_item *item);

#endif
