/*
 * Conversations as files: the last one (last.json) and those with a name. docs/session-format.md
 * has the schema.
 *
 * A file is replaced as a whole or not at all, and is readable by its owner only. An answer's ids
 * are used again only if the vocabulary is the same and they still say the answer's text; else the
 * text wins.
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
    char last_path[PATH_BYTES];    /* "": not kept (--private, or no place for it) */
    char session_path[PATH_BYTES]; /* of --session, /save or /load: written after each turn; "":
                                      none */
    bool is_private;               /* --private or its environment variable: write nothing */
    bool has_warned;               /* one warning for a disk that is full is enough */
};

/* Where a session NAME lives; a NAME with a '/' or ending in .json is a path of its own. BN_EARG:
 * not a possible name. */
bool store_path(const char *name, char out[PATH_BYTES], struct bn_error *err);

bool store_write(const struct store *s, const struct transcript_state *state, const char *path,
                 struct bn_error *err);

/* What a person should know of a file that was read. */
struct store_reading {
    size_t n_answers;
    size_t n_retokenised; /* answers whose ids do not fit: their text is read again */
    bool other_vocabulary;
};
/* BN_EIO: cannot be read; BN_EFORMAT: not a session (line and column, or which message); BN_ENOMEM.
 * On failure `out`, which must be empty, stays so. */
bool store_read(const struct store *s, const char *path, struct transcript *out,
                struct store_reading *reading, struct bn_error *err);

/* Names of the saved sessions, sorted, one a line. BN_EIO; no directory is no session. */
bool store_list(struct strbuf *out, size_t *n_sessions, struct bn_error *err);

#endif
