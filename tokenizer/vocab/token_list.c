/*
 * Lists of token ids: see token_list.h.
 */
#include "tokenizer/vocab/token_list.h"

#include "engine/base/memory.h"

bool token_list_push(struct token_list *list, int32_t id, struct bn_error *err)
{
    if (list->n == list->cap && !mem_grow(&list->ids, &list->cap, list->n + 1, sizeof(*list->ids)))
        return bn_fail(err, BN_ENOMEM, "no memory for %zu token ids", list->n + 1);
    list->ids[list->n++] = id;
    return true;
}

void token_list_finish(struct token_list *list)
{
    mem_free(list->ids);
    *list = (struct token_list){0};
}
