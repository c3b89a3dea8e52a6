/*
 * Cleaning text and attaching files: see input_text.h.
 */
#include "app/common/input_text.h"

#include "app/common/paths.h"
#include "app/common/term_text.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <sys/stat.h>

bool input_clean(const char *name, struct bn_str in, struct strbuf *out, size_t *bad_at,
                 struct bn_error *err)
{
    const char *nul = in.n_bytes > 0 ? memchr(in.ptr, 0, in.n_bytes) : NULL;
    if (nul)
        return bn_fail(err, BN_EARG, "%s is binary: a NUL byte at offset %zu", name,
                       (size_t)(nul - in.ptr));
    struct strbuf lines = {0};
    for (size_t at = 0; at < in.n_bytes;) {
        const char *cr = memchr(in.ptr + at, '\r', in.n_bytes - at);
        const size_t end = cr ? (size_t)(cr - in.ptr) : in.n_bytes;
        strbuf_add(&lines, in.ptr + at, end - at);
        if (cr && (end + 1 >= in.n_bytes || in.ptr[end + 1] != '\n'))
            strbuf_add_char(&lines, '\r');
        at = end + 1;
    }
    *bad_at = term_text_repair(strbuf_str(&lines), out);
    const bool ok = !lines.failed && !out->failed;
    strbuf_finish(&lines);
    return ok || bn_fail(err, BN_ENOMEM, "out of memory for %s (%zu bytes)", name, in.n_bytes);
}

static size_t longest_fence(struct bn_str text)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < text.n_bytes; i++) {
        run = text.ptr[i] == '`' ? run + 1 : 0;
        longest = size_max(longest, run);
    }
    return longest;
}

static void add_fence(struct strbuf *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        strbuf_add_char(out, '`');
    strbuf_add_char(out, '\n');
}

bool input_attach(const char *path, struct strbuf *out, struct bn_error *err)
{
    char *bytes;
    size_t n_bytes, bad_at;
    struct strbuf text = {0};
    if (!path_read_all(path, INPUT_MAX_BYTES, &bytes, &n_bytes, err))
        return false;
    const bool ok = input_clean(path, (struct bn_str){bytes, n_bytes}, &text, &bad_at, err);
    if (ok) {
        const size_t n_fence = size_max(3, longest_fence(strbuf_str(&text)) + 1);
        const char *slash = strrchr(path, '/');
        strbuf_addf(out, "File %s:\n", slash && slash[1] ? slash + 1 : path);
        add_fence(out, n_fence);
        strbuf_add_str(out, strbuf_str(&text));
        if (text.n_bytes > 0 && text.ptr[text.n_bytes - 1] != '\n')
            strbuf_add_char(out, '\n');
        add_fence(out, n_fence);
    }
    strbuf_finish(&text);
    mem_free(bytes);
    return ok;
}

bool input_text_or_file(const char *arg, struct strbuf *out, struct bn_error *err)
{
    char *bytes = NULL;
    size_t bad_at;
    struct bn_str text = bn_str_of(arg);
    if (arg[0] == '@' && !path_read_all(arg + 1, INPUT_MAX_BYTES, &bytes, &text.n_bytes, err))
        return false;
    if (bytes)
        text.ptr = bytes;
    const bool ok = input_clean(arg, text, out, &bad_at, err);
    mem_free(bytes);
    return ok;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Cut punctuation from the end of `path` until it is the path of a file. */
static bool find_path(struct strbuf *path)
{
    while (path->n_bytes > 0 && !is_file(strbuf_text(path))) {
        if (!strchr(".,;:!?)]}'\"", path->ptr[path->n_bytes - 1]))
            return false;
        strbuf_cut(path, path->n_bytes - 1);
    }
    return path->n_bytes > 0;
}

/* It has a slash or an inner dot. A mention such as @anna has neither. */
static bool looks_like_path(struct bn_str word)
{
    return memchr(word.ptr, '/', word.n_bytes) ||
           (word.n_bytes > 1 && memchr(word.ptr, '.', word.n_bytes - 1));
}

bool input_expand_paths(struct bn_str message, struct strbuf *out, struct input_paths *found,
                        struct bn_error *err)
{
    found->n_attached = 0;
    for (size_t at = 0; at < message.n_bytes; at++) {
        if (message.ptr[at] != '@' || (at > 0 && !is_blank(message.ptr[at - 1])))
            continue;
        size_t end = at + 1;
        while (end < message.n_bytes && !is_blank(message.ptr[end]))
            end++;
        const struct bn_str word = {message.ptr + at + 1, end - at - 1};
        struct strbuf path = {0};
        strbuf_add_str(&path, word);
        bool ok = true;
        if (find_path(&path)) {
            ok = input_attach(path.ptr, out, err);
            strbuf_add_char(out, '\n');
            found->n_attached++;
        } else if (found->missing.n_bytes == 0 && looks_like_path(word)) {
            strbuf_add_str(&found->missing, word);
        }
        strbuf_finish(&path);
        if (!ok)
            return false;
    }
    strbuf_add_str(out, message);
    return !out->failed || bn_fail(err, BN_ENOMEM, "out of memory for the message");
}
