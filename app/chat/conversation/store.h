/*
 * Saved chats as files: the last conversation (last.json) and those with a name. The schema
 * is in docs/session-format.md.
 *
 * A file is replaced as a whole or not at all, and only its owner can read it. The ids of an answer
 * are used again only if the vocabulary is the same, none of them ends an answer or begins a turn,
 * and they still decode to the answer's text. Otherwise the text is encoded again.
 */
#ifndef APP_STORE_H
#define APP_STORE_H

#include "app/chat/conversation/transcript.h"
#include "app/common/paths.h"
#include "app/common/strbuf.h"
#include "tokenizer/tokenizer.h"

struct store {
    const struct tokenizer *tokenizer;
    const char *model_name;
    char last_path[PATH_BYTES]; /* "": do not write it (--private, or no state directory) */
    char
        session_path[PATH_BYTES]; /* of --session, /save or /load; "": none; written after a turn */
    bool is_script;               /* nobody types: a failed write ends the program */
    bool is_private;              /* --private or its environment variable: write no files */
    bool has_warned;              /* warn only once about a failed write */
};

/* The path of a saved chat. A NAME with a '/' or ending in .json is a path itself. BN_EARG: not a
 * valid name. */
bool store_path(const char *name, char out[PATH_BYTES], struct bn_error *err);

bool store_write(const struct store *s, const struct transcript_state *state, const char *path,
                 struct bn_error *err);

/* Facts about a file that was read, for a notice. */
struct store_reading {
    size_t n_answers;
    size_t n_retokenised; /* answers whose ids are not used; their text will be encoded again */
    size_t n_forged;      /* of these, answers with ids that delimit turns */
    bool other_vocabulary;
};
/* Append the sentence of a notice; nothing if the ids of all answers are used. */
void store_reading_text(const struct store_reading *reading, struct strbuf *out);

/* Read a saved chat. `out` must be empty and stays empty on failure. BN_EIO: cannot be read.
 * BN_EFORMAT: not a saved chat; the error has the line and column, or the number of the message.
 * BN_ENOMEM. */
bool store_read(const struct store *s, const char *path, struct transcript *out,
                struct store_reading *reading, struct bn_error *err);

/* Remove the temporary files that killed programs left in the directories of saved chats, snapshots
 * and the last conversation. */
void store_clean(void);

/* The names of the saved chats, sorted, one per line. BN_EIO. A missing directory is an empty
 * list. */
bool store_list(struct strbuf *out, size_t *n_sessions, struct bn_error *err);

#endif
