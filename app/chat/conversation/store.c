/*
 * Saved chats as files, version 1: see store.h and docs/session-format.md.
 */
#include "app/chat/conversation/store.h"

#include "app/chat/conversation/chat_prompt.h"
#include "app/common/file/new_file.h"
#include "app/common/input_text.h"
#include "app/common/json_out.h"
#include "app/common/term_text.h"
#include "engine/base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FORMAT_NAME "bitnet-chat session"
#define FORMAT_VERSION 1
#define MAX_MESSAGES ((size_t)1 << 20)

bool store_path(const char *name, char out[PATH_BYTES], struct bn_error *err)
{
    const size_t n = strlen(name);
    char below[300];
    if (strchr(name, '/') || (n > 5 && strcmp(name + n - 5, ".json") == 0)) {
        if (n >= PATH_BYTES)
            return bn_fail(err, BN_EARG, "a path of %zu bytes is too long", n);
        memcpy(out, name, n + 1);
        return true;
    }
    if (n == 0 || n > 200 || name[0] == '.')
        return bn_fail(err, BN_EARG, "'%.40s' is not a valid name for a saved chat", name);
    (void)snprintf(below, sizeof(below), "sessions/%s.json", name); /* at most 200 + 14 bytes */
    return path_of(PATH_DATA, below, out, err);
}

/* ---- writing ---- */

/* Add the members of a JSON text to *o, except those that *o has already. On failure *o is freed
 * and becomes NULL. */
static void add_extra(json_t **o, struct bn_str extra)
{
    if (extra.n_bytes == 0)
        return;
    json_t *members = json_loadb(extra.ptr, extra.n_bytes, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(members) || json_object_update_missing(*o, members) != 0) {
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

/* Newline-terminated lines as an array. */
static json_t *lines_json(struct bn_str lines)
{
    json_t *list = json_array();
    for (size_t at = 0; at < lines.n_bytes;) {
        const char *end = memchr(lines.ptr + at, '\n', lines.n_bytes - at);
        const size_t n = end ? (size_t)(end - lines.ptr) - at : lines.n_bytes - at;
        json_out_append(&list, json_out_text((struct bn_str){lines.ptr + at, n}));
        at += n + 1;
    }
    return list;
}

/* The message of a user. With attached files, also what was typed, and the paths given to /file. */
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
    json_out_put(&o, "finish", json_string(finish_name(a->finish)));
    json_out_put(&o, "ids", ids);
    return o;
}

static json_t *messages_json(const struct transcript_state *state)
{
    json_t *list = json_array();
    if (state->system.n_bytes > 0)
        json_out_append(&list, message_json("system", state->system, state->system_extra));
    for (size_t i = 0; i < state->n; i++) {
        const struct exchange *e = state->items[i];
        json_out_append(&list, user_json(e));
        if (e->answer.finish != FINISH_NONE)
            json_out_append(&list, answer_json(&e->answer));
    }
    return list;
}

static void format_hash(const struct store *s, char out[17])
{
    (void)snprintf(out, 17, "%016llx",
                   (unsigned long long)tokenizer_info(s->tokenizer)->hash); /* 16 digits */
}

static json_t *session_json(const struct store *s, const struct transcript_state *state)
{
    char hash[17];
    format_hash(s, hash);
    json_t *o =
        json_pack("{s:s, s:i, s:o, s:s, s:I, s:o}", "format", FORMAT_NAME, "version",
                  FORMAT_VERSION, "model", json_out_text(bn_str_of(s->model_name)), "vocabulary",
                  hash, "skipped", (json_int_t)state->n_skipped, "messages", messages_json(state));
    add_extra(&o, state->file_extra);
    return o;
}

/* Takes ownership of the JSON object. */
static bool replace_file(const char *path, json_t *json, struct bn_error *err)
{
    struct new_file n;
    if (!new_file_open(&n, path, err)) {
        json_decref(json);
        return false;
    }
    const bool ok = json_out_write(json, n.f, JSON_OUT_INDENT, err);
    if (!ok && ferror(n.f))
        (void)new_file_fail(&n, err);
    return new_file_close(&n, ok ? NEW_FILE_SYNC : NEW_FILE_DROP, err);
}

bool store_write(const struct store *s, const struct transcript_state *state, const char *path,
                 struct bn_error *err)
{
    json_t *json = session_json(s, state);
    if (!json)
        return bn_fail(err, BN_ENOMEM, "out of memory for the session");
    return replace_file(path, json, err);
}

/* ---- reading ---- */

struct session_reader {
    const struct store *s;
    const char *path;
    struct transcript *out;
    struct store_reading *reading;
    bool same_vocabulary;
};

static bool fail_message(const struct session_reader *r, size_t index, const char *problem,
                         struct bn_error *err)
{
    return bn_fail(err, BN_EFORMAT, "'%s': message %zu %s", r->path, index, problem);
}

static bool has_word(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words; n > 0 && (at = strstr(at, word)) != NULL; at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0))
            return true;
    return false;
}

/* Append to `out`, as one JSON object, the members of o whose names are not in `known` ("a b c").
 * Appends nothing if there are none. Saving writes them back. False: out of memory. */
static bool collect_extra(const json_t *o, const char *known, struct strbuf *out)
{
    json_t *extra = json_object();
    void *iter = json_object_iter((json_t *)(uintptr_t)o); /* the object is not changed */
    bool ok = extra != NULL;
    for (; ok && iter; iter = json_object_iter_next((json_t *)(uintptr_t)o, iter))
        if (!has_word(known, json_object_iter_key(iter)))
            ok = json_object_set(extra, json_object_iter_key(iter), json_object_iter_value(iter)) ==
                 0;
    if (ok && json_object_size(extra) > 0) {
        char *text =
            json_dumps(extra, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17));
        ok = text != NULL;
        if (ok)
            strbuf_add_text(out, text);
        free(text);
    }
    json_decref(extra);
    return ok && !out->failed;
}

static bool read_ids(const json_t *list, size_t n_vocab, int32_t **out, size_t *n_ids,
                     bool *no_memory)
{
    const size_t n = json_array_size(list);
    int32_t *ids = mem_alloc(n, sizeof(*ids));
    *no_memory = !ids;
    for (size_t i = 0; ids && i < n; i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            (uint64_t)json_integer_value(id) >= n_vocab) {
            mem_free(ids);
            return false;
        }
        ids[i] = (int32_t)json_integer_value(id);
    }
    *out = ids;
    *n_ids = n;
    return ids != NULL;
}

/* The text of the ids. The file holds a repaired form of it, so this restores a broken character at
 * the end of a stopped answer. */
static bool text_of_ids(const struct tokenizer *t, const int32_t *ids, size_t n_ids,
                        struct strbuf *out)
{
    struct detok *d;
    struct bn_error ignored; /* the caller uses the text instead */
    const struct detok_config cfg = {.at_start = true};
    bool stopped = false;
    bool ok = detok_open(t, &cfg, &d, &ignored);
    if (!ok)
        return false;
    for (size_t i = 0; ok && i < n_ids; i++) {
        struct bn_str text;
        ok = detok_push(d, ids[i], &text, &stopped, &ignored);
        if (ok)
            strbuf_add_str(out, text);
    }
    strbuf_add_str(out, detok_flush(d));
    detok_close(d);
    return ok && !out->failed;
}

/* Whether an id ends an answer or begins a turn. The model would read such an answer as several
 * turns, although its text does not show them. */
static bool has_turn_mark(const struct tokenizer *t, const int32_t *ids, size_t n_ids)
{
    for (size_t i = 0; i < n_ids; i++)
        if (tokenizer_is_eog(t, ids[i]))
            return true;
    return false;
}

/* Use the ids if they decode to the text of the answer. `text` then holds the answer as it was
 * generated. *no_memory: it cannot be decided. */
static bool restore_ids(const struct session_reader *r, const json_t *message, struct answer *a,
                        struct strbuf *text, bool *no_memory)
{
    int32_t *ids = NULL;
    struct strbuf repaired = {0};
    *no_memory = false;
    const json_t *const list = json_object_get(message, "ids");
    bool fits = r->same_vocabulary && json_array_size(list) > 0;
    fits = fits &&
           read_ids(list, tokenizer_info(r->s->tokenizer)->n_vocab, &ids, &a->n_ids, no_memory);
    if (fits && has_turn_mark(r->s->tokenizer, ids, a->n_ids)) {
        r->reading->n_forged++;
        fits = false;
    } else if (fits) {
        *no_memory = !text_of_ids(r->s->tokenizer, ids, a->n_ids, text);
        (void)term_text_repair(strbuf_str(text), &repaired);
        *no_memory |= repaired.failed;
        fits = !*no_memory && bn_str_equal(strbuf_str(&repaired), a->text);
    }
    strbuf_finish(&repaired);
    if (fits) {
        a->ids = ids;
        a->text = strbuf_str(text);
    } else {
        mem_free(ids);
        a->n_ids = 0;
    }
    return fits;
}

static bool fail_memory(const struct session_reader *r, struct bn_error *err)
{
    return bn_fail(err, BN_ENOMEM, "out of memory for '%s'", r->path);
}

static bool read_answer(const struct session_reader *r, size_t index, const json_t *message,
                        struct bn_str text, struct bn_error *err)
{
    const struct exchange *last = transcript_last(r->out);
    const char *finish = json_string_value(json_object_get(message, "finish"));
    struct answer a = {.text = text, .finish = finish_of(finish ? finish : "stop")};
    struct strbuf generated = {0}, extra = {0};
    if (!last || last->answer.finish != FINISH_NONE)
        return fail_message(r, index, "is an answer without a question", err);
    if (a.finish == FINISH_NONE)
        return fail_message(r, index, "has an unknown \"finish\"", err);
    r->reading->n_answers++;
    bool no_memory;
    if (!restore_ids(r, message, &a, &generated, &no_memory))
        r->reading->n_retokenised++;
    bool ok = !no_memory && collect_extra(message, "role content finish ids", &extra);
    a.extra = strbuf_str(&extra);
    ok = ok && transcript_answer(r->out, &a);
    mem_free((void *)(uintptr_t)a.ids); /* allocated by read_ids */
    strbuf_finish(&generated);
    strbuf_finish(&extra);
    return ok || fail_memory(r, err);
}

/* Store the unknown members of an object with the part of the conversation that it describes. */
static bool read_extra(const struct session_reader *r, enum extra_owner place, const json_t *o,
                       const char *known, struct bn_error *err)
{
    struct strbuf extra = {0};
    bool ok = collect_extra(o, known, &extra);
    if (ok && extra.n_bytes > 0)
        ok = transcript_set_extra(r->out, place, strbuf_str(&extra));
    strbuf_finish(&extra);
    return ok || fail_memory(r, err);
}

/* What the user typed, and the files attached to it. Both are ignored if `content` does not end
 * with the typed text: then the file was edited by hand. */
static bool read_typed(const struct session_reader *r, const json_t *message, struct bn_str content,
                       struct bn_error *err)
{
    const json_t *typed = json_object_get(message, "typed"),
                 *list = json_object_get(message, "files");
    const struct bn_str text = {json_string_value(typed), json_string_length(typed)};
    struct strbuf files = {0};
    if (text.n_bytes == 0 || text.n_bytes > content.n_bytes ||
        memcmp(content.ptr + content.n_bytes - text.n_bytes, text.ptr, text.n_bytes) != 0)
        return true;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *path = json_array_get(list, i);
        const struct bn_str s = {json_string_value(path), json_string_length(path)};
        if (s.n_bytes == 0 || memchr(s.ptr, '\n', s.n_bytes) || memchr(s.ptr, 0, s.n_bytes))
            continue;
        strbuf_add_str(&files, s);
        strbuf_add_char(&files, '\n');
    }
    const bool ok = !files.failed && transcript_set_typed(r->out, text, strbuf_str(&files));
    strbuf_finish(&files);
    return ok || fail_memory(r, err);
}

static bool read_message(const struct session_reader *r, size_t index, const json_t *message,
                         struct bn_error *err)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    const json_t *content = json_object_get(message, "content");
    if (!role || !json_is_string(content))
        return fail_message(r, index, "lacks a string \"role\" or \"content\"", err);
    const struct bn_str text = {json_string_value(content), json_string_length(content)};
    if (strcmp(role, "assistant") == 0)
        return read_answer(r, index, message, text, err);
    const bool is_user = strcmp(role, "user") == 0;
    if (!is_user && (strcmp(role, "system") != 0 || index > 0))
        return fail_message(
            r, index, "has a role other than user or assistant (only message 0 may be system)",
            err);
    if (!(is_user ? transcript_add_question(r->out, text) : transcript_set_system(r->out, text)))
        return fail_memory(r, err);
    if (is_user)
        return read_typed(r, message, text, err) &&
               read_extra(r, EXTRA_OF_USER, message, "role content typed files", err);
    return read_extra(r, EXTRA_OF_SYSTEM, message, "role content", err);
}

static bool check_header(const struct session_reader *r, const json_t *json, struct bn_error *err)
{
    const char *format = json_string_value(json_object_get(json, "format"));
    const json_t *version = json_object_get(json, "version");
    const json_t *messages = json_object_get(json, "messages");
    if (!format || strcmp(format, FORMAT_NAME) != 0)
        return bn_fail(err, BN_EFORMAT, "'%s' is not a bitnet-chat session: no \"format\": \"%s\"",
                       r->path, FORMAT_NAME);
    if (!json_is_integer(version) || json_integer_value(version) != FORMAT_VERSION)
        return bn_fail(err, BN_EFORMAT, "'%s' is a session of a version other than %d", r->path,
                       FORMAT_VERSION);
    if (!json_is_array(messages) || json_array_size(messages) > MAX_MESSAGES)
        return bn_fail(err, BN_EFORMAT, "'%s' has no list of \"messages\"", r->path);
    return true;
}

static bool read_session(struct session_reader *r, const json_t *json, struct bn_error *err)
{
    char hash[17];
    if (!check_header(r, json, err))
        return false;
    const char *stored = json_string_value(json_object_get(json, "vocabulary"));
    format_hash(r->s, hash);
    r->same_vocabulary = stored && strcmp(stored, hash) == 0;
    r->reading->other_vocabulary = !r->same_vocabulary;
    const json_t *messages = json_object_get(json, "messages");
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (!read_message(r, i, json_array_get(messages, i), err))
            return false;
    const json_int_t skipped = json_integer_value(json_object_get(json, "skipped"));
    if (skipped > 0 && (uint64_t)skipped < r->out->now.n)
        r->out->now.n_skipped = (size_t)skipped;
    if (!read_extra(r, EXTRA_OF_FILE, json, "format version model vocabulary skipped messages",
                    err))
        return false;
    r->out->unsaved = false;
    return true;
}

bool store_read(const struct store *s, const char *path, struct transcript *out,
                struct store_reading *reading, struct bn_error *err)
{
    struct session_reader r = {.s = s, .path = path, .out = out, .reading = reading};
    json_error_t where;
    char *bytes;
    size_t n_bytes;
    *reading = (struct store_reading){0};
    if (!path_read_all(path, INPUT_MAX_BYTES, &bytes, &n_bytes, err))
        return false;
    json_t *json = json_loadb(bytes, n_bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &where);
    mem_free(bytes);
    if (!json)
        return bn_fail(err, BN_EFORMAT, "'%s' is not JSON: line %d, column %d: %s", path,
                       where.line, where.column, where.text);
    const bool ok = read_session(&r, json, err);
    json_decref(json);
    if (!ok)
        transcript_finish(out);
    return ok;
}

void store_reading_text(const struct store_reading *reading, struct strbuf *out)
{
    if (reading->n_retokenised == 0)
        return;
    strbuf_addf(out, "%zu of %zu answers are tokenised again", reading->n_retokenised,
                reading->n_answers);
    if (reading->other_vocabulary)
        strbuf_add_text(out, ": their tokens belong to another model's vocabulary");
    else if (reading->n_forged > 0)
        strbuf_addf(out,
                    ": the tokens of %zu would begin or end a turn, so the text is used instead",
                    reading->n_forged);
}

void store_clean(void)
{
    static const struct {
        enum path_dir dir;
        const char *name;
    } places[] = {{PATH_STATE, ""}, {PATH_DATA, "sessions"}, {PATH_CACHE, "kv"}};
    char path[PATH_BYTES];
    struct bn_error ignored; /* no such directory: nothing to remove */
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (path_of(places[i].dir, places[i].name, path, &ignored))
            new_file_clean(path);
}

/* ---- listing ---- */

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

static void list_names(DIR *dir, struct strbuf *out, size_t *n_sessions)
{
    char **names = NULL;
    size_t n = 0, cap = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const size_t n_bytes = strlen(entry->d_name);
        if (n_bytes <= 5 || strcmp(entry->d_name + n_bytes - 5, ".json") != 0 || out->failed)
            continue;
        if (!mem_grow(&names, &cap, n + 1, sizeof(*names)) || !(names[n] = mem_alloc(n_bytes, 1))) {
            out->failed = true; /* a list with a missing name would be wrong */
            continue;
        }
        memcpy(names[n++], entry->d_name, n_bytes - 5); /* mem_alloc has set the last byte to 0 */
    }
    if (n > 0)
        qsort(names, n, sizeof(*names), compare_names);
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(out, "%s\n", names[i]);
        mem_free(names[i]);
    }
    mem_free(names);
    *n_sessions = n;
}

bool store_list(struct strbuf *out, size_t *n_sessions, struct bn_error *err)
{
    char path[PATH_BYTES];
    *n_sessions = 0;
    if (!path_of(PATH_DATA, "sessions", path, err))
        return false;
    DIR *dir = opendir(path);
    if (!dir)
        return errno == ENOENT ||
               bn_fail(err, BN_EIO, "cannot read '%s': %s", path, strerror(errno));
    list_names(dir, out, n_sessions);
    (void)closedir(dir); /* opened for reading: nothing can be lost */
    return !out->failed || bn_fail(err, BN_ENOMEM, "out of memory for the list of saved chats");
}
