/*
 * One line of a batch: the request, the progress and the answer. Main thread.
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
    json_t *id;  /* member of the request, copied to the answer; NULL if the request lacks it */
    struct strbuf prompt, system;    /* user message and system message, either may be empty */
    struct turn turn;                /* settings, texts, statistics; `ids` is empty, see `answer` */
    double started;                  /* clock_seconds when the evaluation of the prompt began */
    struct thought_splitter thought; /* splits the text of the answer into thought and answer */
    struct answer_state answer;      /* ids of prompt and answer, detokeniser, why it ends */
    struct prompt prompt_facts;      /* the encoded prompt; its ids are in `answer` */
    struct generator_seq *seq;       /* owned by the batch */
    const struct token_list *close;  /* tokens that close a thought; owned by the batch */
    int32_t next;          /* id that will follow answer.ids, not yet part of the answer */
    bool has_events;       /* --jsonl: the text of the answer is written as events */
    struct strbuf events;  /* JSON lines that are not written yet */
    bool is_done;          /* the answer has ended, or the line has failed */
    struct gap_times gaps; /* from one token of the answer to the next */
    struct bn_error err;   /* if err.code is not 0, the line has failed */
};
void batch_item_finish(struct batch_item *item); /* an all-zero item is fine */

/* Parse a line: a JSON object if its first character that is not blank is a brace, else a prompt.
 * Invalid UTF-8 is replaced; *bad_at is the offset of its first byte in the line, or SIZE_MAX. The
 * caller has set the item to the values of the options, with an empty `prompt`; members that the
 * object lacks do not change them. BN_EARG: not a valid object (also an unknown member, a value out
 * of range, or no prompt), or a NUL byte in the line. An object with a faulty member still sets
 * item->id. BN_ENOMEM; if memory is too short for a text of the object, only batch_item_add reports
 * it. */
bool batch_item_parse(struct batch_item *item, struct bn_str line, size_t *bad_at,
                      struct bn_error *err);

/* Evaluate the prompt and choose the first token, item->next. n_ctx is the context in tokens.
 * BN_ECONTEXT (too long), BN_EARG (no tokens, or a setting out of range) and BN_EFORMAT (the
 * template fails) affect only this item. Other errors must end the batch. */
bool batch_item_begin(struct batch_item *item, const struct prompt_maker *maker, size_t n_ctx,
                      const struct bn_control *control, struct bn_error *err);
/* Append item->next to the answer, unless it is an end token. Call it after batch_item_begin, and
 * then each time that generator_step_all has evaluated the last of answer.ids and the caller has
 * set item->next to the id that this step chose. If the budget of a thought is used up, item->next
 * first becomes the next token that closes the thought. Sets is_done when the answer has ended.
 * BN_ENOMEM. */
bool batch_item_add(struct batch_item *item, struct bn_error *err);
/* End the answer now, as interrupted. */
void batch_item_stop(struct batch_item *item);

#endif
