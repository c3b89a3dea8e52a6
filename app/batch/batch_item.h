/*
 * One line of a batch and the answer to it: what is asked, how far the answer is, what came out.
 */
#ifndef APP_BATCH_ITEM_H
#define APP_BATCH_ITEM_H

#include "app/app.h"

#include <jansson.h>

struct batch_item {
    size_t line; /* of the input, from 1 */
    json_t *id;  /* to be given back with the answer; NULL: none */
    struct strbuf prompt, system;
    struct turn turn;
    struct thought thought;
    struct detok *detok;
    struct generator_lane *lane; /* while it is being answered, owned by the batch */
    struct token_list ids;       /* prompt and answer */
    int32_t next;                /* chosen and not taken yet */
    size_t n_same;
    size_t n_alts;        /* alternatives wanted with each token */
    bool tells_parts;     /* each part of the answer is an event */
    struct strbuf events; /* not written yet, JSON lines */
    bool is_done;
    struct bn_error err; /* code other than BN_OK: there is no answer */
};
void batch_item_finish(struct batch_item *item); /* all zero is fine */

/* A line: a prompt, or an object if it begins with a brace. What the object does not say stays as
 * it is in the item. BN_EARG: no such object, binary. */
bool batch_item_parse(struct batch_item *item, struct bn_str line, struct bn_error *err);

/* Read the prompt into the lane. BN_ECONTEXT, BN_EARG, BN_EFORMAT are the item's; others, and
 * BN_ECANCELLED, the program's. */
bool batch_item_begin(struct batch_item *item, const struct app *app, size_t n_ctx,
                      const struct bn_control *control, struct bn_error *err);
/* Take item->next into the answer. True in is_done: the answer has ended. */
bool batch_item_take(struct batch_item *item, const struct app *app, size_t n_ctx,
                     struct bn_error *err);
/* Its answer ends here, as far as it is. */
void batch_item_stop(struct batch_item *item);

#endif
