/*
 * The input history in a file: one entry per line, with newlines and backslashes escaped.
 *
 * Several chats can share the file, because each entry is appended with one write. The file is
 * trimmed at start, under a lock. Only its owner can read it.
 */
#ifndef APP_HISTORY_H
#define APP_HISTORY_H

#include "app/common/paths.h"
#include "app/common/strbuf.h"

#define HISTORY_MAX_ENTRIES 1000

struct history {
    char path[PATH_BYTES]; /* "": no file */
    struct strbuf last;    /* the newest entry; an equal entry after it is not added */
};

void history_escape(struct bn_str entry, struct strbuf *out);
void history_unescape(struct bn_str line, struct strbuf *out);

/* Call `each` for every entry, oldest first, and trim the file. A missing file is fine. BN_EIO. */
bool history_load(struct history *h, void (*each)(void *ud, const char *entry), void *ud,
                  struct bn_error *err);
/* Add an entry, unless it is empty, begins with a space or a newline, or equals the newest entry.
 * *added tells whether it was added. */
bool history_add(struct history *h, struct bn_str entry, bool *added, struct bn_error *err);
void history_finish(struct history *h);

#endif
