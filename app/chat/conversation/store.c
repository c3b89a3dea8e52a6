/*
 * Saved chats as files, version 1: see store.h and docs/session-format.md.
 */
#include "app/chat/conversation/store.h"

#include "app/chat/conversation/chat_prompt.h"
#include "app/chat/conversation/extra_keys.h"
#include "app/common/input_text.h"
#include "app/common/json_out.h"
#include "app/common/new_file.h"
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
        return bn_fail(err, BN_EARG, "'%.40s' is not a possible name for a session", name);
    (void)snprintf(below, sizeof(below), "sessions/%s.json", name); /* at most 200 + 14 bytes */
    return path_of(PATH_DATA, below, out, err);
}

/* ---- writing ---- */

static json_t *message_json(const char *role, struct bn_str text, struct bn_str extra)
{
    json_t *o = json_object();
    if (o && json_out_add(o, "role", json_string(role)) &&
        json_out_add(o, "content", json_out_text(text)) && extra_keys_put(o, extra))
        return o;
    json_decref(o);
    return NULL;
}

static json_t *answer_json(const struct answer *a)
{
    json_t *o = message_json("assistant", a->text, a->extra), *ids = json_array();
    for (size_t i = 0; ids && i < a->n_ids; i++)
        (void)json_array_append_new(ids, json_integer(a->ids[i])); /* if an append fails, the ids do
                                                                      not match the text and are not
                                                                      used */
    if (o && json_out_add(o, "finish", json_string(finish_name(a->finish))) &&
        json_out_add(o, "ids", ids))
        return o;
    json_decref(o);
    return NULL;
}

static json_t *messages_json(const struct transcript_state *state)
{
    json_t *list = json_array();
    bool ok = list != NULL;
    if (ok && state->system.n_bytes > 0)
        ok = json_array_append_new(list,
                                   message_json("system", state->system, state->system_extra)) == 0;
    for (size_t i = 0; ok && i < state->n; i++) {
        const struct exchange *e = state->items[i];
        ok = json_array_append_new(list, message_json("user", e->user, e->user_extra)) == 0;
        if (ok && e->answer.finish != FINISH_NONE)
            ok = json_array_append_new(list, answer_json(&e->answer)) == 0;
    }
    if (ok)
        return list;
    json_decref(list);
    return NULL;
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
    json_t *o = json_object();
    if (o && json_out_add(o, "format", json_string(FORMAT_NAME)) &&
        json_out_add(o, "version", json_integer(FORMAT_VERSION)) &&
        json_out_add(o, "model", json_out_text(bn_str_of(s->model_name))) &&
        json_out_add(o, "vocabulary", json_string(hash)) &&
        json_out_add(o, "skipped", json_integer((json_int_t)state->n_skipped)) &&
        json_out_add(o, "messages", messages_json(state)) && extra_keys_put(o, state->file_extra))
        return o;
    json_decref(o);
    return NULL;
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

static bool bad_message(const struct session_reader *r, size_t index, const char *what,
                        struct bn_error *err)
{
    return bn_fail(err, BN_EFORMAT, "'%s': message %zu %s", r->path, index, what);
}

static bool read_ids(const json_t *list, size_t n_vocab, int32_t **out, size_t *n_ids)
{
    const size_t n = json_is_array(list) ? json_array_size(list) : 0;
    int32_t *ids = mem_alloc(n, sizeof(*ids));
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
    return ids != NULL && n > 0;
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

/* Use the ids if their text is that of the answer. Restores the answer as it was generated. */
static bool restore_ids(const struct session_reader *r, const json_t *message, struct answer *a,
                        struct strbuf *said)
{
    int32_t *ids = NULL;
    struct strbuf repaired = {0};
    bool fits =
        r->same_vocabulary && read_ids(json_object_get(message, "ids"),
                                       tokenizer_info(r->s->tokenizer)->n_vocab, &ids, &a->n_ids);
    if (fits && text_of_ids(r->s->tokenizer, ids, a->n_ids, said)) {
        (void)term_text_repair(strbuf_str(said), &repaired); /* the position of the first broken
                                                                byte is not needed */
        fits = bn_str_equal(strbuf_str(&repaired), a->text);
    } else {
        fits = false;
    }
    strbuf_finish(&repaired);
    if (fits) {
        a->ids = ids;
        a->text = strbuf_str(said);
    } else {
        mem_free(ids);
        a->n_ids = 0;
    }
    return fits;
}

static bool no_memory(const struct session_reader *r, struct bn_error *err)
{
    return bn_fail(err, BN_ENOMEM, "out of memory for '%s'", r->path);
}

static bool read_answer(const struct session_reader *r, size_t index, const json_t *message,
                        struct bn_str text, struct bn_error *err)
{
    const struct exchange *last = transcript_last(r->out);
    const char *finish = json_string_value(json_object_get(message, "finish"));
    struct answer a = {.text = text, .finish = finish_of(finish ? finish : "stop")};
    struct strbuf said = {0}, extra = {0};
    if (!last || last->answer.finish != FINISH_NONE)
        return bad_message(r, index, "is an answer without a question", err);
    if (a.finish == FINISH_NONE)
        return bad_message(r, index, "has an unknown \"finish\"", err);
    r->reading->n_answers++;
    if (!restore_ids(r, message, &a, &said))
        r->reading->n_retokenised++;
    bool ok = extra_keys_take(message, "role content finish ids", &extra);
    a.extra = strbuf_str(&extra);
    ok = ok && transcript_answer(r->out, &a);
    mem_free((void *)(uintptr_t)a.ids); /* allocated by read_ids */
    strbuf_finish(&said);
    strbuf_finish(&extra);
    return ok || no_memory(r, err);
}

/* Unknown members of an object are kept with the part of the conversation that it describes. */
static bool keep_extra(const struct session_reader *r, enum transcript_place place, const json_t *o,
                       const char *known, struct bn_error *err)
{
    struct strbuf extra = {0};
    bool ok = extra_keys_take(o, known, &extra);
    if (ok && extra.n_bytes > 0)
        ok = transcript_keep_extra(r->out, place, strbuf_str(&extra));
    strbuf_finish(&extra);
    return ok || no_memory(r, err);
}

static bool read_message(const struct session_reader *r, size_t index, const json_t *message,
                         struct bn_error *err)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    const json_t *content = json_object_get(message, "content");
    if (!role || !json_is_string(content))
        return bad_message(r, index, "needs texts \"role\" and \"content\"", err);
    const struct bn_str text = {json_string_value(content), json_string_length(content)};
    if (strcmp(role, "assistant") == 0)
        return read_answer(r, index, message, text, err);
    const bool is_user = strcmp(role, "user") == 0;
    if (!is_user && (strcmp(role, "system") != 0 || index > 0))
        return bad_message(r, index,
                           "has a role that is not user or assistant (system stands first)", err);
    if (!(is_user ? transcript_ask(r->out, text) : transcript_set_system(r->out, text)))
        return no_memory(r, err);
    return keep_extra(r, is_user ? PLACE_OF_USER : PLACE_OF_SYSTEM, message, "role content", err);
}

static bool check_head(const struct session_reader *r, const json_t *json, struct bn_error *err)
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
    if (!check_head(r, json, err))
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
    if (!keep_extra(r, PLACE_OF_FILE, json, "format version model vocabulary skipped messages",
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
        if (n_bytes <= 5 || strcmp(entry->d_name + n_bytes - 5, ".json") != 0 ||
            !mem_grow(&names, &cap, n + 1, sizeof(*names)) || !(names[n] = mem_alloc(n_bytes, 1)))
            continue;
        memcpy(names[n++], entry->d_name, n_bytes - 5); /* copies the terminating zero, too */
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
    return true;
}
