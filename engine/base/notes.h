/*
 * What a person should know about how a file was read: repairs made, rules applied, things odd.
 *
 * A repair has a stable id ("pre-tokenizer", "chat-template", "end-of-turn", ...), which
 * `--no-repair` takes. Notes are collected in the caller's struct; a full list drops further notes
 * and counts them.
 */
#ifndef ENGINE_BASE_NOTES_H
#define ENGINE_BASE_NOTES_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define BN_NOTES_MAX 32 /* a dozen kinds exist; the rest is head-room */

enum bn_note_kind {
    BN_NOTE_INFO,    /* a rule that was applied, worth showing in `info` */
    BN_NOTE_REPAIR,  /* a known fault of the file, mended; can be switched off by id */
    BN_NOTE_WARNING, /* shown to the user at start */
};

struct bn_note {
    enum bn_note_kind kind;
    const char *id; /* static text, lower case, dashes */
    char text[240];
};

struct bn_notes {
    struct bn_note items[BN_NOTES_MAX];
    size_t n;
    size_t n_dropped;
};

/* Append a note. `notes` may be NULL: the caller does not want to know. */
void bn_notes_add(struct bn_notes *notes, enum bn_note_kind kind, const char *id, const char *fmt,
                  ...) BN_PRINTF(4, 5);

/* May the repair `id` be made? `no_repair` is NULL (all may), "all" (none may), or ids with commas.
 */
bool bn_repair_allowed(const char *no_repair, const char *id);

#endif
