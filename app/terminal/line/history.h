/*
 * The history file: what was typed, one entry a line, newlines and backslashes escaped.
 *
 * Each entry is appended with one write, so several chats may share the file; it is trimmed at
 * start under a lock. Readable by its owner only.
 */
#ifndef APP_HISTORY_H
#define APP_HISTORY_H

#include "app/common/paths.h"
#include "app/common/strbuf.h"

#define HISTORY_MAX_ENTRIES 1000

struct history {
    char path[PATH_BYTES]; /* "": nothing is kept */
    struct strbuf last;    /* the newest entry: the same line twice in a row is kept once */
};

void history_escape(struct bn_str entry, struct strbuf *out);
void history_unescape(struct bn_str line, struct strbuf *out);

/* Calls `each` for every entry, oldest first, and trims the file. A file that is not there is fine.
 * BN_EIO. */
bool history_load(struct history *h, void (*each)(void *ud, const char *entry), void *ud,
                  struct bn_error *err);
/* Blank entries, entries that begin with a space and repetitions are not kept (gives false in
 * *kept). */
bool history_add(struct history *h, struct bn_str entry, bool *kept, struct bn_error *err);
void history_finish(struct history *h);

#endif
