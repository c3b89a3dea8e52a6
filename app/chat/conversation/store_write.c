/*
 * Writes saved chats and their journals: see store.h and docs/session-format.md.
 *
 * The first line of a journal has the hash of the file to which the journal adds turns. Before the
 * file is replaced, the hash of the new file is appended to the journal. So after a crash at any
 * time a reader can find out whether the file already has the turns of the journal.
 */
#include "app/chat/conversation/store_format.h"

#include "app/common/file/new_file.h"
#include "app/common/input_text.h"
#include "app/common/json_out.h"
#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define APPEND_MAX_TURNS 8 /* more have changed only after a command such as /load or /forget */
#define JOURNAL_MAX_BYTES ((size_t)16 << 20) /* then the file is written as a whole */

/* ---- JSON ---- */

/* Add the members of a JSON text to *o, except those that *o has already. On failure *o is freed
 * and becomes NULL. */
static void add_extra(json_t **o, struct bn_str extra)
{
    if (extra.n_bytes == 0)
        return;
    json_t *members = json_loadb(extra.ptr, extra.n_bytes, JSON_ALLOW_NUL, NULL);
    bool ok = json_is_object(members);
    const char *key;
    json_t *value;
    /* json_object_update_missing would do this, but does not report that memory ran out. */
    json_object_foreach(members, key, value)
    {
        if (!json_object_get(*o, key))
            ok = ok && json_object_set(*o, key, value) == 0;
    }
    if (!ok) {
        json_decref(*o);
        *o = NULL;
    }
    json_decref(members);
}

static json_t *message_json(const char *role, struct bn_str text, struct bn_str extra)
{
    json_t *o = json_pack("{s:s, s:o}", "role", role, "content", json_out_text(text));
    add_extra(&o, extra);
    return o;
}

/* Newline-terminated lines as an array of strings. */
static json_t *lines_json(struct bn_str lines)
{
    json_t *list = json_array();
    struct bn_str line;
    for (size_t at = 0; bn_str_next_line(lines, &at, &line);)
        json_out_append(&list, json_out_text(line));
    return list;
}

/* The message of a user. With attached files, also the typed text, and the paths of the files from
 * --file and /file. */
static json_t *user_json(const struct exchange *e)
{
    json_t *o = message_json("user", e->user, e->user_extra);
    if (e->typed.n_bytes > 0)
        json_out_put(&o, "typed", json_out_text(e->typed));
    if (e->files.n_bytes > 0)
        json_out_put(&o, "files", lines_json(e->files));
    return o;
}

static json_t *answer_json(const struct answer *a)
{
    json_t *o = message_json("assistant", a->text, a->extra), *ids = json_array();
    for (size_t i = 0; i < a->n_ids; i++)
        json_out_append(&ids, json_integer(a->ids[i]));
    json_out_put(&o, "finish", json_string(finish_reason_name(a->finish)));
    json_out_put(&o, "ids", ids);
    if (a->starts_in_thought)
        json_out_put(&o, "starts_in_thought", json_true());
    return o;
}

/* Append the turns from index `first` on. */
static void add_turns(json_t **list, const struct transcript_state *state, size_t first)
{
    for (size_t i = first; i < state->n; i++) {
        const struct exchange *e = state->items[i];
        json_out_append(list, user_json(e));
        if (e->answer.finish != FINISH_NONE)
            json_out_append(list, answer_json(&e->answer));
    }
}

static json_t *messages_json(const struct transcript_state *state)
{
    json_t *list = json_array();
    if (state->system.n_bytes > 0)
        json_out_append(&list, message_json("system", state->system, state->system_extra));
    add_turns(&list, state, 0);
    return list;
}

void store_vocabulary(const struct store *s, char out[STORE_HASH_BYTES])
{
    (void)snprintf(out, STORE_HASH_BYTES, "%016llx",
                   (unsigned long long)tokenizer_info(s->tokenizer)->hash); /* 16 digits */
}

static json_t *chat_json(const struct store *s, const struct transcript_state *state,
                         const char *saved_as)
{
    char hash[STORE_HASH_BYTES];
    store_vocabulary(s, hash);
    json_t *o =
        json_pack("{s:s, s:i, s:o, s:s, s:I, s:o}", "format", STORE_FORMAT, "version",
                  STORE_VERSION, "model", json_out_text(bn_str_of(s->model_name)), "vocabulary",
                  hash, "skipped", (json_int_t)state->n_skipped, "messages", messages_json(state));
    if (saved_as[0])
        json_out_put(&o, "saved_as", json_out_text(bn_str_of(saved_as)));
    add_extra(&o, state->file_extra);
    return o;
}

/* ---- the file as a whole ---- */

void store_hash_bytes(const void *bytes, size_t n_bytes, char out[STORE_HASH_BYTES])
{
    const uint64_t hash = fnv1a_add_bytes(FNV1A_START, bytes, n_bytes);
    (void)snprintf(out, STORE_HASH_BYTES, "%016llx", (unsigned long long)hash);
}

void store_journal_path(const char *path, char out[STORE_JOURNAL_PATH_BYTES])
{
    (void)snprintf(out, STORE_JOURNAL_PATH_BYTES, "%s.journal", path); /* fits */
}

/* Takes ownership of the JSON object. */
static bool write_json(struct new_file *n, json_t *json, struct bn_error *err)
{
    const bool ok = json_out_write(json, n->f, JSON_OUT_INDENT, err);
    if (!ok && ferror(n->f))
        (void)new_file_fail(n, err);
    return ok;
}

/* ---- the journal ---- */

/* The hash for store_file.header_hash. The lengths are hashed too: otherwise texts that are divided
 * differently into parts would have the same hash. */
static uint64_t header_hash_of(const struct store_file *f, const struct transcript_state *state)
{
    const struct bn_str parts[] = {state->system, state->system_extra, state->file_extra,
                                   bn_str_of(f->saved_as)};
    uint64_t hash = FNV1A_START;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        hash = fnv1a_add(fnv1a_add_bytes(hash, parts[i].ptr, parts[i].n_bytes), parts[i].n_bytes);
    return hash;
}

/* The hash for store_file.base_state. */
static uint64_t state_hash_of(const struct store_file *f, const struct transcript_state *state)
{
    uint64_t hash = fnv1a_add(header_hash_of(f, state), state->n_skipped);
    for (size_t i = 0; i < state->n; i++)
        hash = fnv1a_add(hash, state->items[i]->serial);
    return hash;
}

/* Number of turns at the beginning that the file with its journal and the conversation have in
 * common. */
static size_t count_shared(const struct store_file *f, const struct transcript_state *state)
{
    size_t n = 0;
    while (n < f->n && n < state->n && f->serials[n] == state->items[n]->serial)
        n++;
    return n;
}

/* Call this when file and journal together have this state. If memory runs out, the next write
 * replaces the file. */
static void set_written(struct store_file *f, const struct transcript_state *state)
{
    f->may_have_turns = true;
    f->n = count_shared(f, state);
    if (!mem_grow(&f->serials, &f->cap, state->n, sizeof(*f->serials))) {
        f->base_is_known = false;
        return;
    }
    for (; f->n < state->n; f->n++)
        f->serials[f->n] = state->items[f->n]->serial;
    f->n_skipped = state->n_skipped;
    f->header_hash = header_hash_of(f, state);
}

static void close_journal(struct store_file *f)
{
    if (f->journal > 0)
        (void)close(f->journal); /* each write was checked */
    f->journal = 0;
    f->journal_bytes = 0;
}

static void remove_journal(struct store_file *f)
{
    char path[STORE_JOURNAL_PATH_BYTES];
    close_journal(f);
    store_journal_path(f->path, path);
    (void)unlink(path); /* if it stays, a reader does not apply it, but may report it */
}

/* Add ".old" to the name of the journal. False: there is none, or this fails; then the next write
 * destroys lines that were not read. */
static bool set_aside_journal(struct store_file *f)
{
    char path[STORE_JOURNAL_PATH_BYTES], aside[STORE_JOURNAL_PATH_BYTES + 4];
    close_journal(f);
    store_journal_path(f->path, path);
    (void)snprintf(aside, sizeof(aside), "%s.old", path); /* 4 more bytes fit */
    return rename(path, aside) == 0;
}

/* A program that was killed while it appended may have left a part of a line at the end. Remove it,
 * so that the next line does not continue it. n_bytes is the size of the file and becomes smaller.
 * False: errno says why. */
static bool cut_incomplete_line(int fd, size_t *n_bytes)
{
    char bytes[4096];
    size_t end = *n_bytes;
    while (end > 0) {
        const size_t n = size_min(end, sizeof(bytes));
        errno = EIO; /* of a read that is too short */
        if (pread(fd, bytes, n, (off_t)(end - n)) != (ssize_t)n)
            return false;
        size_t n_complete = n; /* up to the last newline of this part */
        while (n_complete > 0 && bytes[n_complete - 1] != '\n')
            n_complete--;
        end = end - n + n_complete;
        if (n_complete > 0)
            break;
    }
    if (end < *n_bytes && ftruncate(fd, (off_t)end) != 0)
        return false;
    *n_bytes = end;
    return true;
}

/* Open the journal for appending, and remove an incomplete line at its end. O_NOFOLLOW and
 * O_NONBLOCK protect against a symbolic link or a FIFO in its place. Returns a descriptor, or -1
 * with errno. n_bytes is the size. */
static int open_journal(const char *path, int flags, size_t *n_bytes)
{
    struct stat st;
    const int fd =
        open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0) {
        *n_bytes = (size_t)st.st_size;
        errno = EINVAL; /* of what is no regular file */
        if (S_ISREG(st.st_mode) && cut_incomplete_line(fd, n_bytes))
            return fd;
    }
    const int reason = errno;
    (void)close(fd); /* nothing was written */
    errno = reason;
    return -1;
}

/* Append lines to the journal and wait until they are on disk. */
static bool append_lines(struct store_file *f, int flags, struct bn_str lines, struct bn_error *err)
{
    char path[STORE_JOURNAL_PATH_BYTES];
    store_journal_path(f->path, path);
    if (f->journal == 0) {
        size_t n_bytes;
        const int fd = open_journal(path, flags, &n_bytes);
        if (fd < 0)
            return bn_fail(err, BN_EIO, "cannot write '%s': %s", path, strerror(errno));
        f->journal = fd;
        f->journal_bytes = n_bytes;
    }
    if (fd_write_all(f->journal, lines.ptr, lines.n_bytes) && fdatasync(f->journal) == 0) {
        f->journal_bytes += lines.n_bytes;
        if (flags & O_CREAT)
            path_sync_parent(path);
        return true;
    }
    (void)bn_fail(err, BN_EIO, "cannot write '%s': %s", path, strerror(errno));
    /* Remove the part that was written. If this fails too, a line that is appended later would
     * continue the incomplete line, and a reader would drop both. So the next write replaces the
     * file. */
    if (ftruncate(f->journal, (off_t)f->journal_bytes) != 0)
        f->base_is_known = false;
    return false;
}

static void add_header(const struct store *s, const struct store_file *f, struct strbuf *out)
{
    char hash[STORE_HASH_BYTES];
    store_vocabulary(s, hash);
    json_out_line(json_pack("{s:s, s:i, s:s, s:s}", "format", STORE_JOURNAL_FORMAT, "version",
                            STORE_VERSION, "base", f->base, "vocabulary", hash),
                  out);
}

/* Append the turns after the first n_keep. They replace all turns after n_keep in file and
 * journal. */
static bool append_turns(const struct store *s, struct store_file *f,
                         const struct transcript_state *state, size_t n_keep, struct bn_error *err)
{
    struct strbuf lines = {0};
    json_t *messages = json_array();
    add_turns(&messages, state, n_keep);
    if (f->journal_bytes == 0)
        add_header(s, f, &lines);
    json_out_line(json_pack("{s:I, s:I, s:o}", "keep", (json_int_t)n_keep, "skipped",
                            (json_int_t)state->n_skipped, "messages", messages),
                  &lines);
    /* O_TRUNC: the lines of an old journal that could not be removed or renamed must not precede
     * the header. */
    const int flags = f->journal_bytes == 0 ? O_CREAT | O_TRUNC : 0;
    const bool ok = lines.failed ? bn_fail(err, BN_ENOMEM, "out of memory for the saved chat")
                                 : append_lines(f, flags, strbuf_str(&lines), err);
    strbuf_finish(&lines);
    if (ok)
        set_written(f, state);
    return ok;
}

/* ---- open, save, close ---- */

static bool hash_file(const char *path, char out[STORE_HASH_BYTES], struct bn_error *err)
{
    char *bytes;
    size_t n_bytes;
    if (!path_read_all(path, INPUT_MAX_BYTES, &bytes, &n_bytes, err))
        return false;
    store_hash_bytes(bytes, n_bytes, out);
    mem_free(bytes);
    return true;
}

/* Append a line to the journal which says that a file with this hash has the turns of the journal.
 * Errors are ignored. One is usual: there may be no journal. Otherwise the line matters only if the
 * program is killed after it has replaced the file and before it has removed the journal: without
 * the line a reader then reports a journal of another state. */
static void mark_journal(struct store_file *f, const char *hash)
{
    char line[64];
    struct bn_error ignored;
    const int n = snprintf(line, sizeof(line), "{\"compacted\": \"%s\"}\n", hash); /* fits */
    (void)append_lines(f, 0, (struct bn_str){line, (size_t)n}, &ignored);
}

bool store_replace(const struct store *s, struct store_file *f,
                   const struct transcript_state *state, struct bn_error *err)
{
    struct new_file n;
    json_t *json = chat_json(s, state, f->saved_as);
    f->base_is_known = false;
    if (!json)
        return bn_fail(err, BN_ENOMEM, "out of memory for the saved chat");
    if (!new_file_open(&n, f->path, err)) {
        json_decref(json);
        return false;
    }
    bool ok = write_json(&n, json, err);
    if (ok && fflush(n.f) != 0)
        ok = new_file_fail(&n, err);
    /* Hash and mark must be ready before new_file_close renames the file: see the file comment. */
    const bool has_hash = ok && hash_file(n.temp_path, f->base, &(struct bn_error){0});
    if (has_hash && !f->is_journal_damaged)
        mark_journal(f, f->base);
    if (!new_file_close(&n, ok ? NEW_FILE_SYNC : NEW_FILE_DROP, err))
        return false;
    if (f->is_journal_damaged)
        (void)set_aside_journal(f);
    else
        remove_journal(f);
    f->is_journal_damaged = f->is_behind = false;
    f->base_is_known = has_hash; /* a file that cannot be read back (too large) gets no journal */
    f->base_state = state_hash_of(f, state);
    set_written(f, state);
    return true;
}

bool store_open(struct store_file *f, const char *path, char holder[FILE_LOCK_HOLDER_BYTES])
{
    struct bn_error ignored; /* writing reports it */
    char target[PATH_BYTES];
    path_follow(path, target);
    (void)path_make_parents(target, &ignored);
    if (file_lock_take(&f->lock, target, holder) == FILE_LOCK_BUSY)
        return false;
    memcpy(f->path, target, sizeof(f->path));
    f->has_set_aside = access(target, F_OK) != 0 && set_aside_journal(f);
    return true;
}

void store_continue(struct store_file *f, const struct transcript_state *state,
                    const struct store_reading *reading)
{
    f->is_behind = reading->journal == JOURNAL_READ || reading->journal == JOURNAL_DAMAGED;
    f->base_is_known = !f->is_behind; /* after a crash the first write replaces the file */
    memcpy(f->base, reading->base, sizeof(f->base));
    memcpy(f->saved_as, reading->saved_as, sizeof(f->saved_as));
    f->base_state = state_hash_of(f, state);
    set_written(f, state);
    if (reading->journal == JOURNAL_NOT_NEEDED)
        remove_journal(f);
    if (reading->journal == JOURNAL_OTHER_STATE)
        (void)set_aside_journal(f);
    f->is_journal_damaged = reading->journal == JOURNAL_DAMAGED;
}

bool store_has(const struct store_file *f, const struct transcript_state *state)
{
    /* A failed write does not change these members. It changes neither the file nor the turns in
     * the journal. */
    return f->may_have_turns && f->n == state->n && count_shared(f, state) == f->n &&
           f->n_skipped == state->n_skipped && f->header_hash == header_hash_of(f, state);
}

/* Whether nothing has to be written. An empty chat that was never written needs no file. */
static bool is_saved(const struct store_file *f, const struct transcript_state *state)
{
    if (!f->may_have_turns && !f->is_behind && state->n == 0 && state->system.n_bytes == 0)
        return true;
    return f->base_is_known && store_has(f, state);
}

/* Whether the file and its journal still have their names. If another program has deleted one of
 * them, a line that is appended to the journal would be lost. */
static bool has_files(const struct store_file *f)
{
    struct stat st;
    return access(f->path, F_OK) == 0 &&
           (f->journal == 0 || (fstat(f->journal, &st) == 0 && st.st_nlink > 0));
}

bool store_save(const struct store *s, struct store_file *f, const struct transcript_state *state,
                struct bn_error *err)
{
    if (!f->path[0] || is_saved(f, state))
        return true;
    const size_t n_keep = count_shared(f, state);
    const bool appends = f->base_is_known && f->header_hash == header_hash_of(f, state) &&
                         state->n - n_keep <= APPEND_MAX_TURNS &&
                         f->journal_bytes < JOURNAL_MAX_BYTES && has_files(f);
    /* The journal becomes part of the file later, so the file must be writable when it is used. */
    const bool ok =
        appends ? new_file_may_replace(f->path, err) && append_turns(s, f, state, n_keep, err)
                : store_replace(s, f, state, err);
    if (appends || !ok)
        f->is_behind = true;
    return ok;
}

/* Write what the saved chat lacks. It lacks nothing if all changes were undone or a message was
 * refused. Then it must stay as it is: with another model, store_replace would write it without the
 * ids of its answers. */
static bool write_behind(const struct store *s, struct store_file *f,
                         const struct transcript_state *state, struct bn_error *err)
{
    if (!f->base_is_known || f->base_state != state_hash_of(f, state) || !has_files(f))
        return store_replace(s, f, state, err);
    remove_journal(f);
    f->is_behind = false;
    set_written(f, state);
    return true;
}

bool store_pause(const struct store *s, struct store_file *f, const struct transcript_state *state,
                 struct bn_error *err)
{
    const bool ok = !f->path[0] || !f->is_behind || write_behind(s, f, state, err);
    close_journal(f);
    file_lock_release(&f->lock);
    return ok;
}

void store_forget(struct store_file *f)
{
    file_lock_release(&f->lock);
    mem_free(f->serials);
    *f = (struct store_file){0};
}

bool store_close(const struct store *s, struct store_file *f, const struct transcript_state *state,
                 struct bn_error *err)
{
    const bool ok = store_pause(s, f, state, err);
    store_forget(f);
    return ok;
}

/* Whether the saved chat is as this program left it: the same bytes and no journal, or no file if
 * it was never written. */
static bool is_as_left(const struct store_file *f)
{
    char journal[STORE_JOURNAL_PATH_BYTES], hash[STORE_HASH_BYTES];
    struct bn_error ignored;
    store_journal_path(f->path, journal);
    if (access(journal, F_OK) == 0)
        return false;
    if (!f->may_have_turns)
        return access(f->path, F_OK) != 0;
    return f->base_is_known && hash_file(f->path, hash, &ignored) && strcmp(hash, f->base) == 0;
}

bool store_resume(struct store_file *f, char holder[FILE_LOCK_HOLDER_BYTES])
{
    holder[0] = 0;
    if (file_lock_take(&f->lock, f->path, holder) != FILE_LOCK_BUSY && is_as_left(f))
        return true;
    store_forget(f);
    return false;
}
