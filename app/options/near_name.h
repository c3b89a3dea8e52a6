/*
 * The name that the user meant by a mistyped one, for "did you mean NAME?".
 *
 * A name is near if few edits turn the typed text into it, if it begins with the typed text, or if
 * both begin with the same 3 bytes; this is also the order from nearest to farthest. An edit
 * inserts, removes or replaces a byte, or exchanges two neighbours (the optimal string alignment
 * distance). A typed text of n bytes may have at most 1 + n / 5 edits, and fewer than n. No name is
 * near to an empty text. Texts and names of more than 40 bytes are never near.
 */
#ifndef APP_NEAR_NAME_H
#define APP_NEAR_NAME_H

#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

/* Begin with {.typed = TEXT}, and add the names. */
struct near_name {
    struct bn_str typed;
    const char *best; /* the nearest name so far, the first one of several; NULL: none is near */
    size_t cost;      /* of best: a nearer name has a smaller cost */
};

/* A cost below this one is the number of edits. */
#define NEAR_NAME_EDITS 10

/* Returns whether `name` is the nearest one so far. It must stay valid as long as n->best is
 * used. */
bool near_name_add(struct near_name *n, const char *name);

#endif
