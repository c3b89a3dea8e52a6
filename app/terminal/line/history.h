/*
 * The input history of the line editor in a file: one entry per line, with newlines and backslashes
 * escaped.
 *
 * Several chats can share the file: a chat holds a lock file beside it while it appends entries or
 * drops the oldest ones. No function waits for this lock. Where no lock file can be made, entries
 * are appended without a lock. A new history file has mode 0600.
 */
#ifndef APP_HISTORY_H
#define APP_HISTORY_H

#include "app/common/file/paths.h"
#include "app/common/strbuf.h"

#define HISTORY_MAX_ENTRIES 1000
/* A longer entry is not written to the file. One pasted document could otherwise be as large as all
 * other entries together, and each start of a chat reads the file. */
#define HISTORY_ENTRY_BYTES 65536

struct history {           /* zeros, then set the path; free with history_finish */
    char path[PATH_BYTES]; /* "": no file */
    bool is_off;           /* new entries are not written to the file */
    struct strbuf last;    /* the newest entry; an equal entry after it is not added */
    struct strbuf waiting; /* lines to append later: the lock was held by another program, or the
                              directory could not be made */
};

/* Append an entry as a line of the file, without the newline of this line; history_unescape is the
 * inverse. Both leave out NUL bytes. */
void history_escape(struct bn_str entry, struct strbuf *out);
void history_unescape(struct bn_str line, struct strbuf *out);

/* Call `each` for the last HISTORY_MAX_ENTRIES lines in the last 16 MiB of the file, and for an
 * incomplete line at its end, oldest first, but not for empty lines; `entry` is valid during the
 * call. Older lines are dropped from the file, unless the lock is not available or the file cannot
 * be replaced. A missing file is fine, and so is the path "". BN_EIO: the file cannot be read, is
 * not a regular file, or memory is short. */
bool history_load(struct history *h, void (*each)(void *ud, const char *entry), void *ud,
                  struct bn_error *err);
/* Add an entry, unless it is empty, begins with a space or a newline, or equals the newest entry.
 * *added is false in these cases, and the function succeeds. *added is true for an entry of more
 * than HISTORY_ENTRY_BYTES bytes, which the editor can recall until the program ends. If another
 * program holds the lock, a later history_add or history_finish writes the entry to the file.
 * BN_EIO: the entry and the waiting ones are not in the file, but *added is set. BN_ENOMEM: only
 * this entry is not in the file, but *added is set. */
bool history_add(struct history *h, struct bn_str entry, bool *added, struct bn_error *err);
/* Append the waiting lines to the file, even if another program holds the lock, and free the
 * memory. An error is not reported. */
void history_finish(struct history *h);

#endif
