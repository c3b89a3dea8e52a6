/*
 * Decides whether the text that a user has entered is a command or a message. Pure functions.
 */
#ifndef APP_SLASH_H
#define APP_SLASH_H

#include "engine/base/str.h"

#define SLASH_FENCE "\"\"\"" /* before and after a message of several lines */

enum slash_kind {
    SLASH_NOTHING, /* blank, or blank between fences; `name` and `text` are empty */
    SLASH_MESSAGE, /* `text` is the message */
    SLASH_COMMAND, /* `name` without the slash, empty if a blank or nothing follows the slash;
                      `text`: the trimmed text after it */
};

struct slash {
    enum slash_kind kind;
    /* Within the entry. SLASH_MESSAGE: `name` is empty, except for several lines that would be a
     * command if they were one line. */
    struct bn_str name, text;
};

/* An entry that begins with a slash is a command, unless its first word has another slash (a path)
 * or the trimmed entry has several lines (pasted text). "//" begins a message, and one slash is
 * removed. Every other entry is a message, also one with a blank before the slash.
 * Fences around a message are removed, with the blanks outside them and one newline inside each,
 * unless there is another fence between them. */
struct slash slash_parse(struct bn_str entry);

/* True if `text` begins with a fence. Then *close points to the next fence in `text`, or is NULL if
 * there is none. False: *close is not set. */
bool slash_fence(const char *text, const char **close);

#endif
