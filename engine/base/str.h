/*
 * A string that points into memory owned by another object. It has no terminator and may contain
 * any bytes.
 */
#ifndef ENGINE_BASE_STR_H
#define ENGINE_BASE_STR_H

#include "engine/base/utf8.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct bn_str {
    const char *ptr; /* (n_bytes); may be NULL when n_bytes is 0 */
    size_t n_bytes;
};

/* All bytes of a terminated text, which is not copied. NULL gives the empty string. */
static inline struct bn_str bn_str_of(const char *text)
{
    return (struct bn_str){text, text ? strlen(text) : 0};
}

static inline bool bn_str_equal(struct bn_str a, struct bn_str b)
{
    return a.n_bytes == b.n_bytes && (a.n_bytes == 0 || memcmp(a.ptr, b.ptr, a.n_bytes) == 0);
}

static inline bool bn_str_is(struct bn_str a, const char *text)
{
    return bn_str_equal(a, bn_str_of(text));
}

static inline bool bn_str_starts(struct bn_str a, struct bn_str prefix)
{
    return a.n_bytes >= prefix.n_bytes &&
           (prefix.n_bytes == 0 || memcmp(a.ptr, prefix.ptr, prefix.n_bytes) == 0);
}

/* How many bytes of s are c. */
static inline size_t bn_str_count(struct bn_str s, char c)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n_bytes; i++)
        n += s.ptr[i] == c;
    return n;
}

/* Set *line to the line of `text` that begins at *at, without its newline, and *at to the offset
 * after that newline. Returns false at the end of the text. A newline at the end of the text begins
 * no other line. */
static inline bool bn_str_next_line(struct bn_str text, size_t *at, struct bn_str *line)
{
    if (*at >= text.n_bytes)
        return false;
    const char *const begin = text.ptr + *at, *const end = memchr(begin, '\n', text.n_bytes - *at);
    *line = (struct bn_str){begin, end ? (size_t)(end - begin) : text.n_bytes - *at};
    *at += line->n_bytes + (end ? 1 : 0);
    return true;
}

/* The bytes of the byte order mark at the beginning of a UTF-8 text, which some editors write and
 * which is no part of the text: 3, or 0 without a mark. */
static inline size_t bn_str_bom_bytes(struct bn_str text)
{
    return bn_str_starts(text, bn_str_of("\xEF\xBB\xBF")) ? 3 : 0;
}

/* Whether `word` is in a list of words separated by commas, without spaces. Neither may be NULL. */
static inline bool str_list_has(const char *list, const char *word)
{
    const size_t n_bytes = strlen(word);
    for (;;) {
        const size_t n = strcspn(list, ",");
        if (n == n_bytes && memcmp(list, word, n) == 0)
            return true;
        if (!list[n])
            return false;
        list += n + 1;
    }
}

/* For "%.*s" in a message: the bytes of `s` to print, at most `most`, which must fit an int. If `s`
 * is valid UTF-8, a cut is between two characters: each has at most three continuation bytes. */
static inline int bn_str_shown(struct bn_str s, size_t most)
{
    size_t n = s.n_bytes < most ? s.n_bytes : most;
    if (n < s.n_bytes)
        for (int i = 0; i < 3 && n > 0 && utf8_is_continuation(s.ptr[n]); i++)
            n--;
    return (int)n;
}

#endif
