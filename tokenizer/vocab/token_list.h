/*
 * A growing list of token ids. The caller owns it: zero-initialise, free with token_list_finish.
 */
#ifndef TOKENIZER_TOKEN_LIST_H
#define TOKENIZER_TOKEN_LIST_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_NONE (-1) /* no token */

struct token_list {
    int32_t *ids; /* (n) */
    size_t n;
    size_t cap;
};

/* Append an id. BN_ENOMEM: the list does not change. */
bool token_list_push(struct token_list *list, int32_t id, struct bn_error *err);
void token_list_finish(struct token_list *list);

#endif
