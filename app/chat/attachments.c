/*
 * Text files that will be sent before the next message: see attachments.h.
 */
#define _GNU_SOURCE /* realpath */
#include "app/chat/attachments.h"

#include "app/common/file/paths.h"
#include "app/common/input_text.h"
#include "engine/base/memory.h"
#include "engine/base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Counting the tokens of a longer text takes noticeable time. With the usual four bytes per token
 * such a text has more than a million tokens, too many for a context. So an estimate from its
 * beginning is enough. */
#define COUNTED_BYTES ((size_t)4 << 20)

static void attachment_finish(struct attachment *a)
{
    mem_free(a->path);
    mem_free(a->real);
    strbuf_finish(&a->text);
    *a = (struct attachment){0};
}

void attachments_finish(struct attachment_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        attachment_finish(&l->items[i]);
    mem_free(l->items);
    *l = (struct attachment_list){0};
}

static char *copy_text(const char *text)
{
    const size_t n = strlen(text) + 1;
    char *copy = mem_alloc(n, 1);
    if (copy)
        memcpy(copy, text, n);
    return copy;
}

/* Write the canonical path to *out, which must be NULL. */
static bool find_real(const char *path, char **out, struct bn_error *err)
{
    struct stat st;
    if (strcmp(path, "-") == 0) /* input_attach would read standard input, which is the chat's */
        return bn_fail(err, BN_EIO, "'-' is standard input; ./- is a file of this name");
    char *real = realpath(path, NULL);
    if (!real || stat(real, &st) != 0) {
        (void)bn_fail(err, BN_EIO, "cannot open '%s': %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        /* input_attach reports a directory. */
        (void)bn_fail(err, BN_EIO, "'%s' is not a regular file", path);
    } else if (strchr(real, '\n')) { /* saved chats separate paths by newlines */
        (void)bn_fail(err, BN_EIO, "the path of '%s' contains a newline", path);
    } else {
        *out = copy_text(real);
        if (!*out)
            (void)bn_fail(err, BN_ENOMEM, "out of memory for '%s'", path);
    }
    free(real); /* allocated by realpath */
    return *out != NULL;
}

/* Count the tokens. For a text above COUNTED_BYTES, extrapolate from its first COUNTED_BYTES. */
static bool count_tokens(const struct tokenizer *t, struct bn_str text, size_t *n_tokens,
                         struct bn_error *err)
{
    const size_t n_whole = text.n_bytes;
    struct token_list ids = {0};
    if (text.n_bytes > COUNTED_BYTES)
        text.n_bytes = COUNTED_BYTES;
    while (text.n_bytes < n_whole && text.n_bytes > 0 &&
           utf8_is_continuation(text.ptr[text.n_bytes]))
        text.n_bytes--; /* end between two characters */
    const struct segment s = {.kind = SEGMENT_MESSAGE, .text = text, .message = SEGMENT_NO_MESSAGE};
    const bool ok = tokenizer_encode(t, &s, 1, TOKENIZER_BOS_NEVER, &ids, err);
    *n_tokens = text.n_bytes == n_whole
                    ? ids.n
                    : (size_t)((double)ids.n / (double)text.n_bytes * (double)n_whole);
    token_list_finish(&ids);
    return ok;
}

static bool read_attachment(const char *path, const struct tokenizer *t, struct attachment *out,
                            struct bn_error *err)
{
    if (!input_attach(path, &out->text, &out->facts, err))
        return false;
    strbuf_add_char(&out->text, '\n');
    out->path = copy_text(path);
    if (!out->path || out->text.failed)
        return bn_fail(err, BN_ENOMEM, "out of memory for '%s'", path);
    return count_tokens(t, strbuf_str(&out->text), &out->n_tokens, err);
}

size_t attachments_tokens(const struct attachment_list *l, size_t n_items)
{
    size_t n = 0;
    for (size_t i = 0; i < n_items; i++)
        n += l->items[i].n_tokens;
    return n;
}

static struct attachment *find(const struct attachment_list *l, const char *real)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->items[i].real, real) == 0)
            return &l->items[i];
    return NULL;
}

bool attachments_has(const struct attachment_list *l, const char *real)
{
    return find(l, real) != NULL;
}

bool attachments_check(const struct attachment *a, size_t n_tokens_before,
                       const struct attachment_room *room, struct bn_error *err)
{
    const size_t n_free = room->n_tokens > n_tokens_before ? room->n_tokens - n_tokens_before : 0;
    if (a->n_tokens <= n_free)
        return true;
    return bn_fail(err, BN_ECONTEXT,
                   "'%s' does not fit: it has %zu tok, and %zu of the %zu tok of the context are "
                   "free for it%s",
                   a->path, a->n_tokens, n_free, room->n_ctx,
                   n_tokens_before > 0 ? " beside the other files" : "");
}

bool attachments_add(struct attachment_list *l, const struct tokenizer *t, const char *path,
                     const struct attachment_room *room, enum attachment_added *added,
                     struct bn_error *err)
{
    struct attachment a = {0};
    if (!find_real(path, &a.real, err))
        return false;
    struct attachment *present = find(l, a.real);
    if (present) {
        present->is_returned = false; /* the user wants it now */
        *added = ATTACHMENT_PRESENT;
        attachment_finish(&a);
        return true;
    }
    bool ok = read_attachment(path, t, &a, err) &&
              attachments_check(&a, attachments_tokens(l, l->n), room, err);
    if (ok && !mem_grow(&l->items, &l->cap, l->n + 1, sizeof(*l->items)))
        ok = bn_fail(err, BN_ENOMEM, "out of memory for '%s'", path);
    if (!ok) {
        attachment_finish(&a);
        return false;
    }
    l->items[l->n++] = a;
    *added = ATTACHMENT_ADDED;
    return true;
}

bool attachments_add_paths(struct attachment_list *l, const struct tokenizer *t,
                           struct bn_str message, const struct attachment_room *room,
                           struct strbuf *missing, struct bn_error *err)
{
    struct strbuf path = {0};
    enum input_path_kind kind;
    enum attachment_added added;
    bool ok = true;
    for (size_t at = 0; ok && input_next_at_path(message, &at, &kind, &path);
         strbuf_cut(&path, 0)) {
        if (path.failed) /* the path may be cut */
            ok = bn_fail(err, BN_ENOMEM, "out of memory for the paths in the message");
        else if (kind != INPUT_PATH_MISSING)
            ok = attachments_add(l, t, strbuf_text(&path), room, &added, err);
        else if (missing->n_bytes == 0)
            strbuf_add_str(missing, strbuf_str(&path));
    }
    if (ok && (path.failed || missing->failed))
        ok = bn_fail(err, BN_ENOMEM, "out of memory for the paths in the message");
    strbuf_finish(&path);
    return ok;
}

void attachments_remove(struct attachment_list *l, size_t index)
{
    attachment_finish(&l->items[index]);
    l->n--;
    memmove(l->items + index, l->items + index + 1, (l->n - index) * sizeof(*l->items));
}
