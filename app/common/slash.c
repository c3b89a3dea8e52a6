/*
 * Commands, messages and fences: see slash.h.
 */
#define _GNU_SOURCE /* memmem */
#include "app/common/slash.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct bn_str trim(struct bn_str s)
{
    while (s.n_bytes > 0 && is_blank(s.ptr[0])) {
        s.ptr++;
        s.n_bytes--;
    }
    while (s.n_bytes > 0 && is_blank(s.ptr[s.n_bytes - 1]))
        s.n_bytes--;
    return s;
}

/* The text between fences, without the newline after the first and before the last fence; s if it
 * is not between fences, or if the first fence is closed before the end, as in pasted code. */
static struct bn_str without_fences(struct bn_str s)
{
    const size_t n_fence = strlen(SLASH_FENCE);
    const struct bn_str t = trim(s);
    if (t.n_bytes < 2 * n_fence || memcmp(t.ptr, SLASH_FENCE, n_fence) != 0 ||
        memcmp(t.ptr + t.n_bytes - n_fence, SLASH_FENCE, n_fence) != 0)
        return s;
    struct bn_str inner = {t.ptr + n_fence, t.n_bytes - 2 * n_fence};
    if (memmem(inner.ptr, inner.n_bytes, SLASH_FENCE, n_fence))
        return s;
    if (inner.n_bytes > 0 && inner.ptr[0] == '\n') {
        inner.ptr++;
        inner.n_bytes--;
    }
    if (inner.n_bytes > 0 && inner.ptr[inner.n_bytes - 1] == '\n')
        inner.n_bytes--;
    return inner;
}

struct slash slash_parse(struct bn_str entry)
{
    struct slash s = {.kind = SLASH_MESSAGE, .text = without_fences(entry)};
    if (trim(s.text).n_bytes == 0)
        return (struct slash){.kind = SLASH_NOTHING};
    if (entry.ptr[0] != '/')
        return s;
    if (entry.n_bytes > 1 && entry.ptr[1] == '/') {
        s.text = (struct bn_str){entry.ptr + 1, entry.n_bytes - 1}; /* without one slash */
        return s;
    }
    const struct bn_str line = trim(entry);
    size_t n_word = 1; /* bytes of the first word, up to a blank or a second slash */
    while (n_word < line.n_bytes && !is_blank(line.ptr[n_word]) && line.ptr[n_word] != '/')
        n_word++;
    if (n_word < line.n_bytes && line.ptr[n_word] == '/')
        return s;
    s.name = (struct bn_str){line.ptr + 1, n_word - 1};
    if (memchr(line.ptr, '\n', line.n_bytes))
        return s;
    return (struct slash){.kind = SLASH_COMMAND,
                          .name = s.name,
                          .text = trim((struct bn_str){line.ptr + n_word, line.n_bytes - n_word})};
}

bool slash_fence(const char *text, const char **close)
{
    const size_t n_fence = strlen(SLASH_FENCE);
    if (strncmp(text, SLASH_FENCE, n_fence) != 0)
        return false;
    *close = strstr(text + n_fence, SLASH_FENCE);
    return true;
}
