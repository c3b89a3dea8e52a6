/*
 * The conversation as data: a system text and exchanges (what the user said, what was answered).
 *
 * Exchanges are shared between states and never change once shared, so that undo and redo swap
 * small arrays of pointers. `undo` takes back the last exchange, or the last cut (clear, forget,
 * edit, load) while nothing was said since; `redo` is dropped by the next message. Main thread
 * only.
 *
 * Functions that allocate return false when out of memory and change nothing.
 */
#ifndef APP_TRANSCRIPT_H
#define APP_TRANSCRIPT_H

#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum finish {
    FINISH_NONE,        /* no answer yet */
    FINISH_STOP,        /* the model ended it */
    FINISH_LENGTH,      /* --max-tokens */
    FINISH_STOP_STRING, /* --stop */
    FINISH_INTERRUPTED, /* by the user */
    FINISH_CONTEXT,     /* the context is full */
    FINISH_DEGENERATE,  /* one token over and over */
    FINISH_N
};
const char *finish_name(enum finish f); /* "stop", "length", "stop_string", ... */
/* The finish of that name; FINISH_NONE for a word that is none. */
enum finish finish_of(const char *name);

/* An answer carries the ids it was generated as; the text is their detokenisation. Without ids
 * (typed into a file by hand, made by another model) the text alone counts. */
struct answer {
    struct bn_str text; /* owned; may hold any bytes */
    const int32_t *ids; /* (n_ids), owned */
    size_t n_ids;
    enum finish finish;
    struct bn_str extra; /* owned; what else its file said of it, JSON text; n_bytes 0: nothing */
};

struct exchange {
    size_t n_refs;
    size_t serial;            /* differs between any two exchanges of one transcript */
    struct bn_str user;       /* owned, valid UTF-8 */
    struct bn_str user_extra; /* owned, as the answer's */
    struct answer answer;
};

struct transcript_state {
    struct exchange **items; /* (n) */
    size_t n;
    size_t cap;
    size_t n_skipped;     /* oldest exchanges that no longer fit the context: shown, not sent */
    struct bn_str system; /* owned; n_bytes 0: none */
    struct bn_str system_extra, file_extra; /* owned, as an answer's; of the whole file */
};

struct transcript_step; /* one entry of the undo or redo list */

struct transcript {
    struct transcript_state now;
    struct transcript_step *cuts; /* (n_cuts), oldest first */
    size_t n_cuts, cap_cuts;
    struct transcript_step *redos; /* (n_redos), next one last */
    size_t n_redos, cap_redos;
    size_t n_made; /* exchanges ever made: the next serial */
    bool unsaved;  /* changed since it was last stored under a name */
};

void transcript_finish(struct transcript *t); /* an all-zero transcript is an empty one */

/* Copies of the text; the answer of the new exchange is empty, FINISH_NONE. Drops redo. */
bool transcript_ask(struct transcript *t, struct bn_str user);
/* Give the last exchange this answer (text and ids are copied); the one it had stays in old states.
 */
bool transcript_answer(struct transcript *t, const struct answer *answer);
/* Forget the last exchange without a trace: its answer never began. */
void transcript_unask(struct transcript *t);
bool transcript_set_system(struct transcript *t, struct bn_str text);

/* What a file said besides: of itself, of the system text, of the last question. */
enum transcript_place { PLACE_OF_FILE, PLACE_OF_SYSTEM, PLACE_OF_USER };
bool transcript_keep_extra(struct transcript *t, enum transcript_place place, struct bn_str json);

/* Cuts: they keep the state before, for undo. */
bool transcript_clear(struct transcript *t);
bool transcript_forget(struct transcript *t, size_t n_oldest); /* at most now.n */
bool transcript_rewind(struct transcript *t, size_t n_keep);   /* at most now.n */
/* Make `other` the conversation; `other` is left empty. */
bool transcript_replace(struct transcript *t, struct transcript *other);

enum undo_result { UNDO_NOTHING, UNDO_EXCHANGE, UNDO_CUT, UNDO_NO_MEMORY };
enum undo_result transcript_undo(struct transcript *t);
enum undo_result transcript_redo(struct transcript *t);

/* NULL when there is none. */
const struct exchange *transcript_last(const struct transcript *t);

#endif
