/*
 * The input history in a file: one entry per line, with newlines and backslashes escaped.
 *
 * Several chats can share the file: a lock file beside it protects it while entries are appended or
 * the oldest ones are dropped. No function waits for this lock. Only the owner can read the file.
 */
#ifndef APP_HISTORY_H
#define APP_HISTORY_H

#include "app/common/paths.h"
#include "app/common/strbuf.h"

#define HISTORY_MAX_ENTRIES 1000

struct history {
    char path[PATH_BYTES]; /* "": no file */
    struct strbuf last;    /* the newest entry; an equal entry after it is not added */
    struct strbuf waiting; /* lines to append, because another program held the lock */
};

void history_escape(struct bn_str entry, struct strbuf *out);
void history_unescape(struct bn_str line, struct strbuf *out);

/* Call `each` for every entry, oldest first, but only for the last HISTORY_MAX_ENTRIES. Drops older
 * ones from the file, unless another program holds the lock. A missing file is fine. BN_EIO, also
 * if it is not a regular file. */
bool history_load(struct history *h, void (*each)(void *ud, const char *entry), void *ud,
                  struct bn_error *err);
/* Add an entry, unless it is empty, begins with a space or a newline, or equals the newest entry.
 * *added tells whether it was added. If another program holds the lock, the file gets the entry
 * with a later one, or by history_finish. BN_EIO. */
bool history_add(struct history *h, struct bn_str entry, bool *added, struct bn_error *err);
/* Append the waiting entries, and free the memory. */
void history_finish(struct history *h);

#endif
