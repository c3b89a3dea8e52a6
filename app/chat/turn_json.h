/*
 * A turn as one JSON object, for --json, --jsonl and --batch.
 */
#ifndef APP_TURN_JSON_H
#define APP_TURN_JSON_H

#include "app/chat/turn.h"

#include <jansson.h>

/* The turn has ended without an error. `model` is the name in the model file or "". The caller owns
 * the object. NULL: out of memory. */
json_t *turn_json(const struct tokenizer *t, const char *model, const struct turn *turn);

#endif
