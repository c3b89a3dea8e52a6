/*
 * Cleaning text, attaching files, and reading typed paths: see input_text.h.
 */
#include "app/common/input_text.h"

#include "app/common/file/paths.h"
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
    struct strbuf valid = {0};
    *bad_at = term_text_repair(in, &valid);
    const struct bn_str text = strbuf_str(&valid);
    for (size_t at = bn_str_bom_bytes(text);
         at < text.n_bytes;) { /* leave out each CR before an LF */
        const char *cr = memchr(text.ptr + at, '\r', text.n_bytes - at);
        const size_t end = cr ? (size_t)(cr - text.ptr) : text.n_bytes;
        strbuf_add(out, text.ptr + at, end - at);
        if (cr && (end + 1 >= text.n_bytes || text.ptr[end + 1] != '\n'))
            strbuf_add_char(out, '\r');
        at = end + 1;
    }
    const bool ok = !valid.failed && !out->failed;
    strbuf_finish(&valid);
    return ok || bn_fail(err, BN_ENOMEM, "out of memory for %s (%zu bytes)", name, in.n_bytes);
}

/* The number of backticks in the longest run of backticks. */
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

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

bool input_is_blank(struct bn_str text)
{
    for (size_t i = 0; i < text.n_bytes; i++)
        if (!is_blank(text.ptr[i]) && text.ptr[i] != '\r')
            return false;
    return true;
}

struct input_facts input_facts_of(size_t n_bytes, struct bn_str clean)
{
    return (struct input_facts){.n_bytes = n_bytes,
                                .lack = n_bytes == 0            ? "is empty"
                                        : input_is_blank(clean) ? "has no text"
                                                                : NULL};
}

static bool fail_utf8(const char *path, size_t bad_at, struct bn_error *err)
{
    return bn_fail(err, BN_EARG, "'%s' is not valid UTF-8 at offset %zu; iconv can convert it",
                   path, bad_at);
}

bool input_file(const char *path, struct strbuf *out, struct input_facts *facts,
                struct bn_error *err)
{
    struct stat st;
    char *bytes;
    size_t n_bytes, bad_at;
    const size_t n_before = out->n_bytes;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return bn_fail(err, BN_EIO, "'%s' is a directory; only files can be attached", path);
    if (!path_read_all(path, INPUT_MAX_BYTES, &bytes, &n_bytes, err))
        return false;
    bool ok = input_clean(path, (struct bn_str){bytes, n_bytes}, out, &bad_at, err);
    mem_free(bytes);
    if (ok && bad_at != SIZE_MAX)
        ok = fail_utf8(path, bad_at, err);
    const struct bn_str added = {strbuf_text(out) + n_before, out->n_bytes - n_before};
    *facts = input_facts_of(n_bytes, added);
    return ok;
}

void input_fence(const char *path, struct bn_str text, struct strbuf *out)
{
    /* Markdown: at least 3, and more than in the text, which thus cannot end the fence. */
    const size_t n_fence = size_max(3, longest_fence(text) + 1);
    strbuf_addf(out, "File %s:\n", path_name(path));
    add_fence(out, n_fence);
    strbuf_add_str(out, text);
    if (text.n_bytes > 0 && text.ptr[text.n_bytes - 1] != '\n')
        strbuf_add_char(out, '\n');
    add_fence(out, n_fence);
}

bool input_attach(const char *path, struct strbuf *out, struct input_facts *facts,
                  struct bn_error *err)
{
    struct strbuf text = {0};
    bool ok = input_file(path, &text, facts, err);
    if (ok) {
        input_fence(path, strbuf_str(&text), out);
        ok = !out->failed || bn_fail(err, BN_ENOMEM, "out of memory for '%s'", path);
    }
    strbuf_finish(&text);
    return ok;
}

bool input_text_or_file(const char *arg, struct strbuf *out, size_t *bad_at, struct bn_error *err)
{
    char *bytes = NULL;
    struct bn_str text = bn_str_of(arg);
    if (arg[0] == '@' && !path_read_all(arg + 1, INPUT_MAX_BYTES, &bytes, &text.n_bytes, err))
        return false;
    if (bytes)
        text.ptr = bytes;
    bool ok = input_clean(arg, text, out, bad_at, err);
    if (ok && bytes && *bad_at != SIZE_MAX)
        ok = fail_utf8(arg + 1, *bad_at, err);
    mem_free(bytes);
    return ok;
}

void input_add_block(struct strbuf *in, const char *block, size_t n_bytes)
{
    const char *end = n_bytes > 0 ? memchr(block, '\n', n_bytes) : NULL;
    const size_t n_line = end ? (size_t)(end - block) : n_bytes;
    const size_t n_most = INPUT_MAX_BYTES + 2; /* one byte too many, and "\r" at the end */
    const size_t n_kept = size_min(n_line, n_most - size_min(in->n_bytes, n_most));
    strbuf_add(in, block, n_kept);
    strbuf_add(in, block + n_line, n_bytes - n_line);
}

/* The offset of the quote that closes the one at `at`, or SIZE_MAX. Between double quotes, a
 * backslash quotes the next character. */
static size_t closing_quote(struct bn_str s, size_t at)
{
    for (size_t i = at + 1; i < s.n_bytes; i++) {
        if (s.ptr[i] == s.ptr[at])
            return i;
        if (s.ptr[i] == '\\' && s.ptr[at] == '"')
            i++;
    }
    return SIZE_MAX;
}

static bool is_quote(char c)
{
    return c == '\'' || c == '"';
}

/* Append the text between the quotes at `from` and `to`. Between double quotes, a backslash before
 * a double quote or a backslash is removed; every other backslash stays. */
static void add_quoted(struct bn_str s, size_t from, size_t to, struct strbuf *out)
{
    for (size_t i = from + 1; i < to; i++) {
        if (s.ptr[i] == '\\' && s.ptr[from] == '"' && i + 1 < to &&
            (s.ptr[i + 1] == '"' || s.ptr[i + 1] == '\\'))
            i++;
        strbuf_add_char(out, s.ptr[i]);
    }
}

/* Append the home directory for the "~" of a "~/" at *at, and move *at behind this "~". Without
 * them, or without HOME, do nothing. */
static void add_home(struct bn_str s, size_t *at, struct strbuf *out)
{
    const char *home = path_home((struct bn_str){s.ptr + *at, s.n_bytes - *at});
    if (!home)
        return;
    strbuf_add_text(out, home);
    ++*at;
}

/* Append the text at *at without its quotes, and move *at to the next blank outside quotes. */
static void add_unquoted(struct bn_str s, size_t *at, struct strbuf *out)
{
    size_t i = *at;
    for (; i < s.n_bytes && !is_blank(s.ptr[i]); i++) {
        const size_t close = is_quote(s.ptr[i]) ? closing_quote(s, i) : SIZE_MAX;
        if (close != SIZE_MAX) {
            add_quoted(s, i, close, out);
            i = close;
        } else {
            if (s.ptr[i] == '\\' && i + 1 < s.n_bytes)
                i++;
            strbuf_add_char(out, s.ptr[i]);
        }
    }
    *at = i;
}

/* Append the word at *at without its quotes, and move *at behind it. */
static void read_word(struct bn_str s, size_t *at, struct strbuf *out)
{
    add_home(s, at, out);
    add_unquoted(s, at, out);
}

void input_one_path(struct bn_str text, struct strbuf *out)
{
    size_t at = 0;
    while (at < text.n_bytes && is_blank(text.ptr[at]))
        at++;
    add_home(text, &at, out);
    while (at < text.n_bytes) {
        add_unquoted(text, &at, out);
        const size_t first = at;
        while (at < text.n_bytes && is_blank(text.ptr[at]))
            at++;
        if (at < text.n_bytes) /* the blanks are inside the path, not behind it */
            strbuf_add(out, text.ptr + first, at - first);
    }
}

bool input_next_path(struct bn_str list, size_t *at, struct strbuf *out)
{
    while (*at < list.n_bytes && is_blank(list.ptr[*at]))
        ++*at;
    if (*at == list.n_bytes)
        return false;
    read_word(list, at, out);
    return true;
}

/* ---- @path ---- */

static bool path_kind(const char *path, enum input_path_kind *kind)
{
    struct stat st;
    if (stat(path, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
        return false;
    *kind = S_ISDIR(st.st_mode) ? INPUT_PATH_DIRECTORY : INPUT_PATH_FILE;
    return true;
}

/* Cut punctuation from the end of `path` until it is the path of a file or directory. False: there
 * is no such path, and `path` does not change. */
static bool find_path(struct strbuf *path, enum input_path_kind *kind)
{
    struct strbuf shorter = {0};
    strbuf_add_str(&shorter, strbuf_str(path));
    bool found = false;
    while (shorter.n_bytes > 0 && !(found = path_kind(strbuf_text(&shorter), kind)) &&
           strchr(".,;:!?)]}'\"", shorter.ptr[shorter.n_bytes - 1]))
        strbuf_cut(&shorter, shorter.n_bytes - 1);
    if (found)
        strbuf_cut(path, shorter.n_bytes);
    strbuf_finish(&shorter);
    return found;
}

/* Whether the word has a slash, or a dot before its end. A mention such as @anna has neither. */
static bool looks_like_path(struct bn_str word)
{
    return memchr(word.ptr, '/', word.n_bytes) ||
           (word.n_bytes > 1 && memchr(word.ptr, '.', word.n_bytes - 1));
}

/* Whether a word as written has a quote or a backslash. An apostrophe after its first character, as
 * in @anna's, does not count. */
static bool has_quotes(const struct strbuf *word)
{
    return strbuf_text(word)[0] == '\'' || strpbrk(strbuf_text(word), "\"\\");
}

/* Examine the word after an "@" and move *at behind the word. Append its path to `out` if it exists
 * or looks like one. False: neither. */
static bool read_at(struct bn_str message, size_t *at, enum input_path_kind *kind,
                    struct strbuf *out)
{
    const size_t begin = *at, n_before = out->n_bytes;
    struct strbuf path = {0}, exact = {0};
    read_word(message, at, &path);
    const size_t path_end = *at;
    bool found = find_path(&path, kind), is_exact = false;
    if (!found) { /* quotes and backslashes may be part of the name: try the word as written */
        for (*at = begin; *at < message.n_bytes && !is_blank(message.ptr[*at]); ++*at)
            strbuf_add_char(&exact, message.ptr[*at]);
        found = find_path(&exact, kind);
        is_exact = found || !has_quotes(&exact);
    }
    const struct bn_str word = strbuf_str(is_exact ? &exact : &path);
    if (!found)
        *kind = INPUT_PATH_MISSING;
    if (found || looks_like_path(word)) {
        strbuf_add_str(out, word);
        if (!is_exact)
            *at = path_end; /* a quoted word may have blanks */
    }
    out->failed = out->failed || path.failed || exact.failed;
    strbuf_finish(&path);
    strbuf_finish(&exact);
    return out->n_bytes > n_before;
}

/* The mark that closes an opening bracket or a quotation mark, or 0. */
static char closing_mark(char c)
{
    static const char pairs[] = "()[]{}''\"\"";
    for (const char *pair = pairs; *pair; pair += 2)
        if (*pair == c)
            return pair[1];
    return 0;
}

/* As read_at, for an "@" behind the mark that `closing` closes. A missing path ends at this mark.
 * Between quotation marks only a regular file counts, because source code has texts there such as
 * "@scope/name", which may also be a directory. */
static bool read_enclosed_at(struct bn_str message, char closing, size_t *at,
                             enum input_path_kind *kind, struct strbuf *out)
{
    const size_t begin = *at, n_before = out->n_bytes;
    if (read_at(message, at, kind, out)) {
        if (*kind == INPUT_PATH_FILE || (*kind == INPUT_PATH_DIRECTORY && !is_quote(closing)))
            return true;
        strbuf_cut(out, n_before);
    }
    size_t end = begin;
    while (end < message.n_bytes && !is_blank(message.ptr[end]) && message.ptr[end] != closing)
        end++;
    *at = end;
    *kind = INPUT_PATH_MISSING;
    const struct bn_str word = {message.ptr + begin, end - begin};
    if (is_quote(closing) || !looks_like_path(word))
        return false;
    strbuf_add_str(out, word);
    return true;
}

bool input_next_at_path(struct bn_str message, size_t *at, enum input_path_kind *kind,
                        struct strbuf *out)
{
    while (*at < message.n_bytes) {
        const char before = *at > 0 ? message.ptr[*at - 1] : ' ';
        const char closing = closing_mark(before);
        const bool is_mark = message.ptr[(*at)++] == '@';
        if (is_mark && is_blank(before) && read_at(message, at, kind, out))
            return true;
        if (is_mark && closing && read_enclosed_at(message, closing, at, kind, out))
            return true;
    }
    return false;
}
