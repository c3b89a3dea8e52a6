/*
 * The conversation as data: a system message and turns ("exchanges": a message of the user and its
 * answer).
 *
 * States share exchanges, and a shared exchange never changes. So undo and redo copy or swap small
 * arrays of pointers and the system message, but copy no exchange. Undo reverts the last cut
 * (clear, forget, edit, load, retry) if the turns are still as the cut left them, else it removes
 * the last exchange. The next answer or cut drops the redo list. Main thread only.
 *
 * Functions that allocate return false (undo and redo: UNDO_NO_MEMORY) if memory runs out. The
 * conversation then stays as it was, but a cut may have dropped the redo list.
 */
#ifndef APP_TRANSCRIPT_H
#define APP_TRANSCRIPT_H

#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum finish_reason {
    FINISH_NONE,        /* no answer yet */
    FINISH_STOP,        /* the model ended its answer */
    FINISH_LENGTH,      /* the answer reached --max-tokens */
    FINISH_STOP_STRING, /* the model wrote a text of --stop, which is not part of the answer */
    FINISH_INTERRUPTED, /* the user or an error stopped it, or the program was killed */
    FINISH_CONTEXT,     /* the context is full */
    FINISH_DEGENERATE,  /* one token was repeated too often (ANSWER_DEGENERATE) */
    FINISH_N
};
const char *finish_reason_name(enum finish_reason f); /* "stop", "length", "stop_string", ... */
/* The inverse; FINISH_NONE for an unknown name. */
enum finish_reason finish_reason_of(const char *name);

/* An answer has the ids as they were generated, and their text. If the ids are unknown or unusable
 * (for example edited in the file, or made by another model), it has only text. */
struct answer {
    struct bn_str text; /* owned; may hold any bytes */
    const int32_t *ids; /* (n_ids), owned */
    size_t n_ids;
    enum finish_reason finish;
    bool starts_in_thought; /* the prompt opened the thought with which the text begins */
    struct bn_str extra;    /* owned; unknown members of its JSON object as JSON text, or empty */
};

struct exchange {
    size_t n_refs;            /* states that contain it, and callers that hold it */
    size_t serial;            /* unique within one transcript */
    size_t oldest_serial;     /* serial of the oldest exchange in the prompt before this one was
                                 added; SIZE_MAX: unknown */
    struct bn_str user;       /* owned; the caller passes valid UTF-8 */
    struct bn_str typed;      /* owned; what the user typed, if `user` also has attached files; else
                                 empty */
    struct bn_str files;      /* owned; canonical paths of files from --file and /file, each
                                 followed by a newline */
    struct bn_str user_extra; /* owned; like answer.extra */
    struct answer answer;
};

struct transcript_state {
    /* /clear and /load begin a new chat with a new number. chat_files.c finds the file of a chat by
     * its number. */
    size_t chat_number;
    struct exchange **items; /* (n) */
    size_t n;
    size_t cap;
    size_t n_skipped;     /* oldest exchanges that no longer fit the context: not in the prompt,
                             except the first one with OVERFLOW_KEEP_FIRST (prompt_fit.h) */
    struct bn_str system; /* owned; n_bytes 0: none */
    struct bn_str system_extra, file_extra; /* owned; like answer.extra */
};

struct transcript_step; /* an entry of the undo or redo list */

struct transcript {
    struct transcript_state now;
    struct transcript_step *cuts; /* (n_cuts), oldest first */
    size_t n_cuts, cap_cuts;
    struct transcript_step *redos; /* (n_redos), next one last */
    size_t n_redos, cap_redos;
    size_t n_made;  /* number of exchanges created so far: the next serial */
    size_t n_chats; /* number of chats begun after the first one, whose number is 0 */
    bool unsaved;   /* changed since the conversation was last saved under a name */
};

void transcript_finish(struct transcript *t); /* an all-zero transcript is an empty one */

/* Add an exchange with an empty answer (FINISH_NONE). Copies the text. */
bool transcript_add_question(struct transcript *t, struct bn_str user);
/* Set the answer of the last exchange, which must exist. Copies text, ids and extra. A new exchange
 * with a new serial replaces the last one, so pointers to that one may become invalid. States of
 * the undo list keep the previous answer. Drops the redo list. Undo of an earlier transcript_retry
 * of this exchange stays possible, because the new answer may be that of /continue. */
bool transcript_answer(struct transcript *t, const struct answer *answer);
/* Remove the last exchange, if there is one, without an undo step: it has no answer, or a journal
 * replaces it. */
void transcript_remove_last(struct transcript *t);
/* Set n_skipped of the conversation, as read from a file: below now.n, or 0. Also forgets
 * oldest_serial of all exchanges, none of which another state may share. */
void transcript_set_skipped(struct transcript *t, size_t n_skipped);
/* Set the system message; empty: remove it. Drops its unknown members (system_extra). This is no
 * undo step of its own, but a state that undo or redo restores has its own system message. False:
 * no memory, and nothing has changed. */
bool transcript_set_system(struct transcript *t, struct bn_str text);

/* Set `typed` and `files` of the last exchange, which must exist and be in no other state: call
 * this after transcript_add_question. Copies the texts. */
bool transcript_set_typed(struct transcript *t, struct bn_str typed, struct bn_str files);
/* The message as the user typed it, without attached files. Owned by the exchange. */
struct bn_str exchange_typed(const struct exchange *e);
/* Remove a reference, and free the exchange after the last one. NULL is fine. */
void exchange_release(struct exchange *e);

/* Store a copy of unknown members (JSON text) of the file, of the system message, or of the last
 * user message, which must exist and be in no other state. */
enum extra_owner { EXTRA_OF_FILE, EXTRA_OF_SYSTEM, EXTRA_OF_USER };
bool transcript_set_extra(struct transcript *t, enum extra_owner place, struct bn_str json);

/* Cuts. Each of these functions stores the state before the change, for undo. */
bool transcript_clear(struct transcript *t);                   /* begins a new chat */
bool transcript_forget(struct transcript *t, size_t n_oldest); /* remove them; at most now.n */
bool transcript_rewind(struct transcript *t, size_t n_keep);   /* keep the first; at most now.n */
/* As transcript_answer, but undo restores the previous answer. `n_skipped` is that of the state
 * before the new answer needed space in the context. */
bool transcript_retry(struct transcript *t, const struct answer *answer, size_t n_skipped);
/* Call it directly after transcript_rewind, if the first message that it removed is put into the
 * editor. From now on transcript_saved returns the state before transcript_rewind, until a message
 * is sent or answered, or undo or another cut changes the conversation. */
void transcript_begin_edit(struct transcript *t);
/* The state that belongs into the files: the conversation, except while a message is edited. So a
 * user who leaves without sending the message, and a crash, lose nothing. */
const struct transcript_state *transcript_saved(const struct transcript *t);
/* Make `other` the conversation, as a new chat. `other` is empty afterwards, also on failure. */
bool transcript_replace(struct transcript *t, struct transcript *other);

enum undo_result {
    UNDO_NOTHING,  /* nothing to undo or redo */
    UNDO_EXCHANGE, /* an exchange was removed or restored */
    UNDO_CUT,      /* a cut was reverted or repeated */
    UNDO_NO_MEMORY,
};
enum undo_result transcript_undo(struct transcript *t);
enum undo_result transcript_redo(struct transcript *t);
/* The cut that undo would revert or redo would repeat. CUT_NONE: it would remove or restore an
 * exchange, or there is nothing to undo or redo. */
enum cut_kind { CUT_NONE, CUT_CLEAR, CUT_FORGET, CUT_EDIT, CUT_LOAD, CUT_RETRY, CUT_N };
enum cut_kind transcript_undo_cut(const struct transcript *t);
enum cut_kind transcript_redo_cut(const struct transcript *t);
/* The chat (transcript_state.chat_number) that would be the present one after undo or redo. */
size_t transcript_undo_chat_number(const struct transcript *t);
size_t transcript_redo_chat_number(const struct transcript *t);

/* Whether two conversations have the same system message, questions, answers (with the reasons why
 * they ended) and unknown keys. */
bool transcript_is_same(const struct transcript_state *a, const struct transcript_state *b);

/* The last exchange, valid until the transcript changes; NULL if there is none. */
const struct exchange *transcript_last(const struct transcript *t);

#endif
