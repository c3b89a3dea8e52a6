/*
 * Notes about a model file for the user: repairs, applied rules and warnings.
 *
 * Each note has a stable id ("pre-tokenizer", "chat-template", "end-of-turn", ...); `--no-repair`
 * accepts the ids of repairs, or "all". The caller owns the list; all zero is an empty list. A full
 * list drops further notes and counts them.
 */
#ifndef ENGINE_BASE_NOTES_H
#define ENGINE_BASE_NOTES_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define BN_NOTES_MAX 32 /* about a dozen ids exist; the rest is reserve */

enum bn_note_kind {
    BN_NOTE_INFO,    /* a rule that was applied; shown by `bitnet-inspect info` and --verbose */
    BN_NOTE_REPAIR,  /* a known fault of the file was repaired; can be switched off by id */
    BN_NOTE_WARNING, /* shown to the user at the start */
};

struct bn_note {
    enum bn_note_kind kind;
    const char *id; /* static text in lower case, without spaces */
    char text[240]; /* a longer text is cut, between two characters of UTF-8 */
};

struct bn_notes {
    struct bn_note items[BN_NOTES_MAX];
    size_t n;
    size_t n_dropped;
};

/* Append a note. Does nothing if `notes` is NULL. */
void bn_notes_add(struct bn_notes *notes, enum bn_note_kind kind, const char *id, const char *fmt,
                  ...) BN_PRINTF(4, 5);

/* Whether the repair `id` may be made. `no_repair` lists the repairs that are switched off: NULL
 * for none, "all", or ids separated by commas. */
bool bn_repair_allowed(const char *no_repair, const char *id);

#endif
