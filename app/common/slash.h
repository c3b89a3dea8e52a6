/*
 * Is it a command? The rule for what begins with a slash. Pure.
 */
#ifndef APP_SLASH_H
#define APP_SLASH_H

#include "engine/base/str.h"

#define SLASH_FENCE "\"\"\"" /* around a message of several lines */

enum slash_kind {
    SLASH_NOTHING, /* blank */
    SLASH_MESSAGE, /* `text` is the message */
    SLASH_COMMAND, /* `name` without the slash, `text` what follows it, blanks around it gone */
};

struct slash {
    enum slash_kind kind;
    struct bn_str name, text; /* within the entry */
};

/* A slash makes a command, unless the first word has another slash (a path), or the entry has
 * several lines (a paste). "//" and a leading blank make a message, of which one slash or nothing
 * is taken away. A message between three double quotes loses them. */
struct slash slash_parse(struct bn_str entry);

/* Does `text` begin with a fence? *close: where the one that ends it begins, NULL: it is open. */
bool slash_fence(const char *text, const char **close);

#endif
