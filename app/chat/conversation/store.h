/*
 * Saved chats as files: the last conversations (last.json) and the named chats. The schema
 * is in docs/session-format.md.
 *
 * A file is replaced as a whole or not at all, and only its owner can read it. While a chat uses
 * the file, it has a lock, unless the file system has no locks. Changes are appended to a journal
 * beside it: usually one line for each question and each answer. The journal becomes part of the
 * file when the chat ends, or after a crash when a chat uses the file again.
 *
 * The ids of an answer are used again only if the vocabulary is the same, none of them ends an
 * answer or begins a turn, and they still decode to the answer's text. Otherwise the text is
 * encoded again.
 */
#ifndef APP_STORE_H
#define APP_STORE_H

#include "app/chat/conversation/transcript.h"
#include "app/common/file/file_lock.h"
#include "app/common/file/paths.h"
#include "app/common/strbuf.h"
#include "tokenizer/tokenizer.h"

#define STORE_HASH_BYTES 17 /* a hash as text: 16 hexadecimal digits and a zero */

/* A file that a chat writes, with its lock and its journal. */
struct store_file {
    char path[PATH_BYTES]; /* "": no file */
    struct file_lock lock;
    int journal;          /* descriptor; 0: not open */
    size_t journal_bytes; /* length of the open journal; 0: not open, or empty */
    bool base_is_known;   /* the saved chat has a known state, to which a journal can add turns */
    bool may_have_turns;  /* the saved chat was read or written, so it may have turns */
    bool has_set_aside;   /* store_open has found a journal without its chat and has renamed it:
                           ".old" was added to its name, an earlier such file is lost */
    bool is_journal_damaged; /* the next write of the saved chat renames the journal */
    bool is_behind;          /* store_close must write the saved chat: it lacks turns of the journal
                             or of a failed write, or it is a new copy */
    char base[STORE_HASH_BYTES]; /* hash of the saved chat; valid with base_is_known */
    uint64_t base_state; /* hash of the conversation in it, without the journal; valid likewise */
    size_t *serials;     /* (n) exchange.serial of the turns in file and journal together */
    size_t n, cap, n_skipped; /* n_skipped: that of transcript_state as last written */
    /* Hash of the data that a journal cannot have: the system message, the unknown keys of this
     * message and of the file, and saved_as. */
    uint64_t header_hash;
    /* Only for a last conversation: the path of the saved chat with the same turns; "": there is
     * none. It is written to the file, so that --continue can write later turns there, too. The
     * caller sets it before store_save. */
    char saved_as[PATH_BYTES];
};

/* The named chat of a conversation that is not the present one. */
struct store_paused {
    size_t chat_number; /* transcript_state.chat_number */
    struct store_file file;
};

struct store {
    const struct tokenizer *tokenizer;
    const char *model_name;
    /* The last conversation. It has no path, and is not written, with --private, in a script
     * without --continue, without a state directory, and if all STORE_LAST_SLOTS are in use. */
    struct store_file last;
    struct store_file named; /* of --session, /save or /load; without a path at first */
    bool is_script;          /* no user types messages: a failed write ends the program */
    bool is_private; /* --private or its environment variable: write no files that the user has not
                        named, such as input history and snapshots */
    /* A failed write of `last`, and one of `named`, has been shown. It is shown only once. */
    bool has_warned_last, has_warned_named;
    bool has_lost_named; /* the last write of a chat that is in `paused` has failed */
    struct store_paused
        *paused; /* (n_paused) earlier chats of this run, which /undo can continue */
    size_t n_paused, cap_paused;
};

/* Facts about a file that was read, for a notice. */
struct store_reading {
    size_t n_answers;     /* read from the file and its journal; a journal line may replace some */
    size_t n_retokenised; /* answers with ids that are not used; their text will be encoded again */
    size_t n_with_turn_marks; /* part of n_retokenised: answers with ids that delimit turns */
    bool other_vocabulary;    /* the file names another vocabulary */
    char model[128];          /* the model that the file names, perhaps cut; any text; "": none */
    bool no_vocabulary;       /* the file names none */
    enum {
        JOURNAL_NONE,
        /* Its turns are part of the conversation: after a crash, or while a chat uses the file. */
        JOURNAL_READ,
        JOURNAL_NOT_NEEDED,  /* no complete line, or the file already has its turns */
        JOURNAL_OTHER_STATE, /* not used: of another state of the file, or no journal */
        JOURNAL_DAMAGED,     /* the turns before a damaged line are part of the conversation */
    } journal;
    char base[STORE_HASH_BYTES]; /* hash of the file, for store_continue */
    char saved_as[PATH_BYTES];   /* as in store_file */
};

/* The file that has the present conversation: the named chat, else the last conversation. "": none
 * has it. */
const char *store_main_path(const struct store *s);

/* The path of a saved chat. A name with a '/' or ending in .json is a path already. Another name
 * must have 1 to 200 bytes, no control characters, and not begin with a dot. BN_EARG: not a valid
 * name, or a path that is too long. BN_EIO: there is no data directory, or its path is too long. */
bool store_path(const char *name, char out[PATH_BYTES], struct bn_error *err);

/* Whether the directory of the file `path` exists. That of the saved chats counts as existing,
 * because the program creates it. BN_EIO: it does not exist, or is no directory. */
bool store_has_folder(const char *path, struct bn_error *err);

/* Take the lock of a saved chat and make it the file of `f`, which must have none; for a symbolic
 * link, its target. The file need not exist; missing directories are created. False: another
 * program, or another store_file of this program, has the lock. Then a description of the program
 * is written to `holder` (may be NULL), and `f` has no file. A file that cannot be locked is used
 * without a lock. A journal whose saved chat does not exist is kept under another name: see
 * has_set_aside. */
bool store_open(struct store_file *f, const char *path, char holder[FILE_LOCK_HOLDER_BYTES]);
/* Call this after store_open if `state` and `reading` are results of store_read for this file.
 * Without this call the first write replaces the whole file. Removes a JOURNAL_NOT_NEEDED, and
 * renames a JOURNAL_OTHER_STATE: ".old" is added to its name. A JOURNAL_DAMAGED is renamed when
 * its turns are in the file. */
void store_continue(struct store_file *f, const struct transcript_state *state,
                    const struct store_reading *reading);
/* Save the conversation. Usually this appends the changed turns to the journal, so the bytes
 * written do not depend on the length of the conversation. The file is replaced if f->base_is_known
 * is false, after a change of the system message or of many turns, and if the journal is large.
 * Does nothing if `f` has no file or already has this state, or if the conversation is empty and
 * was never written. BN_EIO, BN_ENOMEM: the next write tries again. */
bool store_save(const struct store *s, struct store_file *f, const struct transcript_state *state,
                struct bn_error *err);
/* Whether the file of `f`, with its journal, has this conversation, so that the next chat with this
 * file reads it. */
bool store_has(const struct store_file *f, const struct transcript_state *state);
/* Write the conversation as a whole to the file of `f`, which must have one, and remove the
 * journal. BN_EIO, BN_ENOMEM. */
bool store_replace(const struct store *s, struct store_file *f,
                   const struct transcript_state *state, struct bn_error *err);
/* As store_close, but `f` keeps its path and what it knows about the saved chat, for
 * store_resume. */
bool store_pause(const struct store *s, struct store_file *f, const struct transcript_state *state,
                 struct bn_error *err);
/* Take the lock of the paused `f` again. False: another program has it (its description is in
 * `holder`), or the saved chat has changed since (`holder` is empty). Then `f` has no file. */
bool store_resume(struct store_file *f, char holder[FILE_LOCK_HOLDER_BYTES]);
void store_forget(struct store_file *f); /* release the lock and free `f`, without writing */
/* If f->is_behind, write the conversation as a whole and remove the journal; otherwise write
 * nothing, so call store_save before. If the saved chat has this conversation already, only the
 * journal is removed. The lock is released and `f` has no file afterwards, also on
 * failure; then the journal stays. BN_EIO, BN_ENOMEM. */
bool store_close(const struct store *s, struct store_file *f, const struct transcript_state *state,
                 struct bn_error *err);

/* Read a saved chat. Without a tokenizer in `s`, the answers get no ids. `out` must be empty and
 * stays empty on failure; *reading is overwritten in any case. BN_EIO: the file or an existing
 * journal cannot be read, or is larger than INPUT_MAX_BYTES (input_text.h). BN_EFORMAT: not a saved
 * chat; if possible, the error has the line and column, or the number of the message. BN_ENOMEM. */
bool store_read(const struct store *s, const char *path, struct transcript *out,
                struct store_reading *reading, struct bn_error *err);

/* A path for a copy of the saved chat NAME.json: NAME-2.json, or with the next number for which no
 * file exists. If there are files up to 999, the path is NAME-999.json. The copy of a path without
 * .json has no .json either. A path that is too long is cut. */
void store_copy_path(const char *path, char out[PATH_BYTES]);
/* The path of a last conversation: last.json for slot 1, last-2.json for slot 2, and so on. Chats
 * that run at the same time use different slots. BN_EIO: there is no state directory, or the path
 * is too long. */
#define STORE_LAST_SLOTS 16 /* if more chats run at the same time, the others write no such file */
bool store_last_path(int slot, char out[PATH_BYTES], struct bn_error *err);
/* The path of the last conversation that was changed most recently. False: there is none, and `out`
 * does not change. */
bool store_newest_last(char out[PATH_BYTES]);

/* Remove the temporary files that killed programs left in the directories of saved chats, snapshots
 * and the last conversation. */
void store_clean(void);

/* Append the names of the saved chats in the data directory, sorted, one per line. Files that
 * store_path cannot name are left out. A missing directory is an empty list. BN_EIO, also if
 * neither XDG_DATA_HOME nor HOME names a data directory or its path is too long. BN_ENOMEM: then
 * `out` may have a part of the names. */
bool store_list(struct strbuf *out, size_t *n_chats, struct bn_error *err);
/* Append the same list as a table for people: a heading, then for each chat its name, the time of
 * its last change, the number of its turns and the beginning of its first message. A chat that
 * cannot be read has a row that says so. A star marks the chat with the path `open_path`; "": none.
 * Appends nothing if there are no chats. Errors of store_list. */
bool store_table(const char *open_path, struct strbuf *out, size_t *n_chats, struct bn_error *err);

#endif
