/*
 * Members of a session file that this program does not know, kept as text and written back.
 */
#ifndef APP_EXTRA_KEYS_H
#define APP_EXTRA_KEYS_H

#include "app/common/strbuf.h"

#include <jansson.h>

/* The members of o whose names are not among the words of `known` ("a b c"), as one JSON object at
 * the end of out; nothing where there are none. False: out of memory. */
bool extra_keys_take(const json_t *o, const char *known, struct strbuf *out);

/* Put them back where o has no such member; what is no object is left out. False: out of memory. */
bool extra_keys_put(json_t *o, struct bn_str extra);

#endif
