/*
 * Reads saved chats: see store.h and docs/session-format.md. store_write.c writes them.
 */
#include "app/chat/conversation/store_format.h"

#include "app/chat/conversation/chat_prompt.h"
#include "app/common/input_text.h"
#include "app/common/json_out.h"
#include "app/common/term_text.h"
#include "engine/base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define MAX_MESSAGES ((size_t)1 << 20) /* far more than a real conversation has */

/* ---- the chat ---- */

struct chat_reader {
    const struct store *s;
    const char *path;
    struct transcript *out;
    struct store_reading *reading;
    bool same_vocabulary;
    /* Lines of the journal after its first one: read without an error so far, and the most that may
     * be applied. */
    size_t n_lines, max_lines;
};

static bool fail_message(const struct chat_reader *r, size_t index, const char *problem,
                         struct bn_error *err)
{
    return bn_fail(err, BN_EFORMAT, "'%s': message %zu %s", r->path, index, problem);
}

/* `words` are separated by blanks, so a word with a blank is not among them. */
static bool has_word(const char *words, const char *word)
{
    const size_t n = strlen(word);
    if (strchr(word, ' '))
        return false;
    for (const char *at = words; n > 0 && (at = strstr(at, word)) != NULL; at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0))
            return true;
    return false;
}

/* Whether `hash`, which may be NULL, is that of the vocabulary of the chat. */
static bool is_own_vocabulary(const struct chat_reader *r, const char *hash)
{
    char own[STORE_HASH_BYTES];
    if (!r->s->tokenizer || !hash)
        return false;
    store_vocabulary(r->s, own);
    return strcmp(hash, own) == 0;
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
    if (ok && json_object_size(extra) > 0)
        ok = json_out_exact(extra, out);
    json_decref(extra);
    return ok && !out->failed;
}

/* Read a list of ids into a new array. False: an id is not in the vocabulary, or *no_memory. */
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

/* The text of the ids. A stopped answer may end with an incomplete character. The text in the file
 * has U+FFFD for it, but the text of the ids has the original bytes. */
static bool text_of_ids(const struct tokenizer *t, const int32_t *ids, size_t n_ids,
                        struct strbuf *out)
{
    struct detok *d;
    struct bn_error ignored; /* the caller reports that memory ran out */
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

/* Whether an id ends an answer or begins a turn: turn_marks_add has made both kinds end tokens. The
 * model would read such an answer as several turns, although its text does not show them. */
static bool has_turn_mark(const struct tokenizer *t, const int32_t *ids, size_t n_ids)
{
    for (size_t i = 0; i < n_ids; i++)
        if (tokenizer_is_eog(t, ids[i]))
            return true;
    return false;
}

/* Use the ids if they decode to the text of the answer. a->text then points to `text`, the answer
 * as it was generated, and the caller frees a->ids. *no_memory: out of memory, so the result is
 * unknown. */
static bool restore_ids(const struct chat_reader *r, const json_t *message, struct answer *a,
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
        r->reading->n_with_turn_marks++;
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

static bool fail_memory(const struct chat_reader *r, struct bn_error *err)
{
    return bn_fail(err, BN_ENOMEM, "out of memory for '%s'", r->path);
}

static bool read_answer(const struct chat_reader *r, size_t index, const json_t *message,
                        struct bn_str text, struct bn_error *err)
{
    const struct exchange *last = transcript_last(r->out);
    const json_t *const ids = json_object_get(message, "ids");
    const bool has_ids = ids && !(json_is_array(ids) && json_array_size(ids) == 0);
    const char *finish = json_string_value(json_object_get(message, "finish"));
    /* A file written by hand may lack "finish"; then it is "stop" (docs/session-format.md). */
    struct answer a = {.text = text,
                       .finish = finish_reason_of(finish ? finish : "stop"),
                       .starts_in_thought =
                           json_is_true(json_object_get(message, "starts_in_thought"))};
    struct strbuf generated = {0}, extra = {0};
    if (!last || last->answer.finish != FINISH_NONE)
        return fail_message(r, index, "is an answer without a question", err);
    if (a.finish == FINISH_NONE)
        return fail_message(r, index, "has an unknown \"finish\"", err);
    r->reading->n_answers++;
    bool no_memory;
    if (!restore_ids(r, message, &a, &generated, &no_memory) && text.n_bytes > 0 && has_ids)
        r->reading->n_retokenised++;
    bool ok =
        !no_memory && collect_extra(message, "role content finish ids starts_in_thought", &extra);
    a.extra = strbuf_str(&extra);
    ok = ok && transcript_answer(r->out, &a);
    mem_free((void *)(uintptr_t)a.ids); /* read_ids allocated it; the cast drops const */
    strbuf_finish(&generated);
    strbuf_finish(&extra);
    return ok || fail_memory(r, err);
}

/* Store the unknown members of an object with the part of the conversation that it describes. */
static bool read_extra(const struct chat_reader *r, enum extra_owner place, const json_t *o,
                       const char *known, struct bn_error *err)
{
    struct strbuf extra = {0};
    bool ok = collect_extra(o, known, &extra);
    if (ok && extra.n_bytes > 0)
        ok = transcript_set_extra(r->out, place, strbuf_str(&extra));
    strbuf_finish(&extra);
    return ok || fail_memory(r, err);
}

/* Read the text that the user typed, and the paths of the attached files. Both are ignored if there
 * is no typed text, or if `content` does not end with it because the file was edited by hand. A
 * path that is empty or has a newline or a NUL is ignored too. */
static bool read_typed(const struct chat_reader *r, const json_t *message, struct bn_str content,
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

static bool read_message(const struct chat_reader *r, size_t index, const json_t *message,
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

static bool check_skipped(const struct chat_reader *r, const json_t *json, struct bn_error *err)
{
    const json_t *skipped = json_object_get(json, "skipped");
    return !skipped || (json_is_integer(skipped) && json_integer_value(skipped) >= 0) ||
           bn_fail(err, BN_EFORMAT, "'%s': \"skipped\" is not a number of turns", r->path);
}

static bool check_header(const struct chat_reader *r, const json_t *json, struct bn_error *err)
{
    const char *format = json_string_value(json_object_get(json, "format"));
    const json_t *version = json_object_get(json, "version");
    const json_t *messages = json_object_get(json, "messages");
    if (!format || strcmp(format, STORE_FORMAT) != 0)
        return bn_fail(err, BN_EFORMAT, "'%s' is not a saved chat: no \"format\": \"%s\"", r->path,
                       STORE_FORMAT);
    if (!json_is_integer(version) || json_integer_value(version) != STORE_VERSION)
        return bn_fail(err, BN_EFORMAT,
                       "'%s' is a saved chat of another version; this program reads version %d",
                       r->path, STORE_VERSION);
    if (!json_is_array(messages))
        return bn_fail(err, BN_EFORMAT, "'%s' has no list of \"messages\"", r->path);
    if (json_array_size(messages) > MAX_MESSAGES)
        return bn_fail(err, BN_EFORMAT, "'%s' has more than %zu messages", r->path, MAX_MESSAGES);
    return check_skipped(r, json, err);
}

/* Call check_skipped before. Use "skipped" only if it is less than the number of turns, because a
 * prompt has at least the last turn. A larger number, as after an edit by hand, counts as 0: the
 * next prompt_fit leaves out turns again if necessary. */
static void read_skipped(const struct chat_reader *r, const json_t *json)
{
    const json_int_t skipped = json_integer_value(json_object_get(json, "skipped"));
    const bool is_valid = (uint64_t)skipped < r->out->now.n;
    transcript_set_skipped(r->out, is_valid ? (size_t)skipped : 0);
}

/* A path that is too long or has a NUL is ignored. */
static void read_saved_as(const struct chat_reader *r, const json_t *json)
{
    const json_t *path = json_object_get(json, "saved_as");
    const char *text = json_string_value(path);
    const size_t n = json_string_length(path);
    if (text && n < PATH_BYTES && !memchr(text, 0, n))
        memcpy(r->reading->saved_as, text, n + 1);
}

static bool read_chat(struct chat_reader *r, const json_t *json, struct bn_error *err)
{
    if (!check_header(r, json, err))
        return false;
    const char *stored = json_string_value(json_object_get(json, "vocabulary"));
    r->same_vocabulary = is_own_vocabulary(r, stored);
    r->reading->other_vocabulary = stored && !r->same_vocabulary;
    r->reading->no_vocabulary = !stored;
    const char *model = json_string_value(json_object_get(json, "model"));
    (void)snprintf(r->reading->model, sizeof(r->reading->model), "%s", model ? model : "");
    const json_t *messages = json_object_get(json, "messages");
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (!read_message(r, i, json_array_get(messages, i), err))
            return false;
    read_skipped(r, json);
    read_saved_as(r, json);
    return read_extra(r, EXTRA_OF_FILE, json,
                      "format version model vocabulary skipped messages saved_as", err);
}

/* ---- the journal ---- */

/* Apply a line: keep the first turns, then append the messages. */
static bool replay_record(struct chat_reader *r, const json_t *record, struct bn_error *err)
{
    const json_t *keep = json_object_get(record, "keep");
    const json_t *messages = json_object_get(record, "messages");
    struct transcript *t = r->out;
    if (!json_is_integer(keep) || json_integer_value(keep) < 0 ||
        (uint64_t)json_integer_value(keep) > t->now.n || !json_is_array(messages))
        return bn_fail(err, BN_EFORMAT, "'%s': a line of the journal is damaged", r->path);
    if (!check_skipped(r, record, err))
        return false;
    while (t->now.n > (size_t)json_integer_value(keep))
        transcript_remove_last(t);
    /* i + 1, because a line of the journal must have no system message, and read_message refuses it
     * at any index but 0. */
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (!read_message(r, i + 1, json_array_get(messages, i), err))
            return false;
    read_skipped(r, record);
    return true;
}

/* The next complete line as a JSON object; NULL at the end, or with *bad set at a line that is not
 * a JSON object. A last line without a newline is ignored: its writer was killed, or failed. */
static json_t *next_line(struct bn_str text, size_t *at, bool *bad)
{
    const char *end = *at < text.n_bytes ? memchr(text.ptr + *at, '\n', text.n_bytes - *at) : NULL;
    if (!end)
        return NULL;
    const size_t n = (size_t)(end - text.ptr) - *at;
    json_t *json = json_loadb(text.ptr + *at, n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    *at += n + 1;
    *bad = !json_is_object(json);
    if (*bad) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static bool has_text(const json_t *o, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(o, key));
    return value && strcmp(value, text) == 0;
}

/* Apply the lines from offset `at` on, at most r->max_lines. Returns whether these are all lines
 * and all are valid. A line with "compacted" is never applied. */
static bool apply_lines(struct chat_reader *r, struct bn_str text, size_t at)
{
    struct bn_error ignored; /* replay reports a line that cannot be applied as JOURNAL_DAMAGED */
    bool bad = false;
    for (json_t *line; (line = next_line(text, &at, &bad)) != NULL;) {
        const bool ok = json_object_get(line, "compacted") ||
                        (r->n_lines < r->max_lines && replay_record(r, line, &ignored));
        json_decref(line);
        if (!ok)
            return false;
        r->n_lines++;
    }
    return !bad;
}

/* Whether a line says that the file already has the turns of the journal (mark_journal in
 * store_write.c). The journal belongs to another state of the file. */
static bool is_compacted(const struct chat_reader *r, struct bn_str text, size_t at)
{
    bool bad = false, found = false;
    for (json_t *line; (line = next_line(text, &at, &bad)) != NULL;) {
        found = found || has_text(line, "compacted", r->reading->base);
        json_decref(line);
    }
    return found;
}

/* Apply the journal to the conversation that was read from the file. */
static void replay(struct chat_reader *r, struct bn_str text)
{
    size_t at = 0;
    bool bad = false;
    json_t *header = next_line(text, &at, &bad);
    if (!header) { /* killed before the first line was written, or not a journal */
        r->reading->journal = bad ? JOURNAL_OTHER_STATE : JOURNAL_NOT_NEEDED;
        return;
    }
    const bool is_journal = has_text(header, "format", STORE_JOURNAL_FORMAT) &&
                            json_integer_value(json_object_get(header, "version")) == STORE_VERSION;
    const bool applies = is_journal && has_text(header, "base", r->reading->base);
    r->same_vocabulary =
        is_own_vocabulary(r, json_string_value(json_object_get(header, "vocabulary")));
    json_decref(header);
    const bool ok = is_journal && (applies ? apply_lines(r, text, at) : is_compacted(r, text, at));
    if (applies)
        r->reading->journal = ok ? JOURNAL_READ : JOURNAL_DAMAGED;
    else
        r->reading->journal = ok ? JOURNAL_NOT_NEEDED : JOURNAL_OTHER_STATE;
}

/* ---- file and journal ---- */

struct file_pair {
    char *bytes, *journal; /* journal: NULL if there is none */
    size_t n_bytes, n_journal;
};

/* A journal that exists but cannot be read is an error: if it counted as missing, the next write
 * would destroy its turns. */
static bool read_pair(const char *path, struct file_pair *p, struct bn_error *err)
{
    char journal[STORE_JOURNAL_PATH_BYTES], target[PATH_BYTES];
    *p = (struct file_pair){0};
    if (!path_read_all(path, INPUT_MAX_BYTES, &p->bytes, &p->n_bytes, err))
        return false;
    path_follow(path, target);
    store_journal_path(target, journal);
    if (!path_is_regular(journal) ||
        path_read_all(journal, INPUT_MAX_BYTES, &p->journal, &p->n_journal, err))
        return true;
    p->journal = NULL;
    if (!path_is_regular(journal)) /* another chat has removed it in the meantime */
        return true;
    mem_free(p->bytes);
    return bn_fail_prefix(err, "the journal of the saved chat");
}

/* Another chat may replace the file and remove the journal between the two readings. Then the file
 * has another inode: read both again. The tenth reading is used in any case. */
static bool read_stable(const char *path, struct file_pair *p, struct bn_error *err)
{
    struct stat before, after;
    for (int tries = 0;; tries++) {
        const bool has_stat = stat(path, &before) == 0;
        if (!read_pair(path, p, err))
            return false;
        if (!has_stat || stat(path, &after) != 0 || after.st_ino == before.st_ino || tries == 9)
            return true;
        mem_free(p->bytes);
        mem_free(p->journal);
    }
}

/* The conversation of the file and of the lines of the journal that may be applied. */
static bool read_parts(struct chat_reader *r, const json_t *json, const struct file_pair *p,
                       struct bn_error *err)
{
    transcript_finish(r->out);
    *r->reading = (struct store_reading){0};
    store_hash_bytes(p->bytes, p->n_bytes, r->reading->base);
    r->n_lines = 0;
    if (!read_chat(r, json, err))
        return false;
    if (p->journal)
        replay(r, (struct bn_str){p->journal, p->n_journal});
    return true;
}

bool store_read(const struct store *s, const char *path, struct transcript *out,
                struct store_reading *reading, struct bn_error *err)
{
    struct chat_reader r = {
        .s = s, .path = path, .out = out, .reading = reading, .max_lines = SIZE_MAX};
    json_error_t where;
    struct file_pair p;
    *reading = (struct store_reading){0};
    if (!read_stable(path, &p, err))
        return false;
    json_t *json = json_loadb(p.bytes, p.n_bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &where);
    if (!json)
        json_correct_error(&where);
    bool ok = json ? read_parts(&r, json, &p, err)
                   : bn_fail(err, BN_EFORMAT, "'%s' is not JSON: line %d, column %d: %s", path,
                             where.line, where.column, where.text);
    if (ok && reading->journal == JOURNAL_DAMAGED) {
        /* Again without the damaged line, of which a part may have been applied. */
        r.max_lines = r.n_lines;
        ok = read_parts(&r, json, &p, err);
    }
    out->unsaved = false;
    json_decref(json);
    mem_free(p.bytes);
    mem_free(p.journal);
    if (!ok)
        transcript_finish(out);
    return ok;
}
