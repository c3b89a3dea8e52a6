/*
 * Members of a saved chat that this program does not know. They are kept as JSON text and written
 * back.
 */
#ifndef APP_EXTRA_KEYS_H
#define APP_EXTRA_KEYS_H

#include "app/common/strbuf.h"

#include <jansson.h>

/* Append to out, as one JSON object, the members of o whose names are not in `known` ("a b c").
 * Appends nothing if there are none. False: out of memory. */
bool extra_keys_take(const json_t *o, const char *known, struct strbuf *out);

/* Add the members to o, except those that it has already. Does nothing if `extra` is no object.
 * False: out of memory. */
bool extra_keys_put(json_t *o, struct bn_str extra);

#endif
