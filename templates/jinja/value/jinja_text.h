/*
 * Strings with origins: make, cut, search and build them. `at`, `b0` and `b1` are byte offsets,
 * `index` is a position in code points. All strings are valid UTF-8, except the inputs of
 * text_valid, text_find, text_skip_space and jstr_repair, which may be any bytes.
 */
#ifndef TEMPLATES_JINJA_TEXT_H
#define TEMPLATES_JINJA_TEXT_H

#include "templates/jinja/value/jinja_vm.h"

#include <unistr.h>

#define ORIGIN_TEMPLATE 0u
/* ORIGIN_ANSWER: the content of an assistant message. ORIGIN_MESSAGE: text of arguments and the
 * other text of messages, except known roles. */
enum origin_kind { ORIGIN_MESSAGE = 1, ORIGIN_ANSWER = 2 };

/* The lowest two bits are the kind, the others the index of the message plus one. `message`: index
 * of the message that the text is from, SIZE_MAX for text of an argument of the template. The limit
 * of memory keeps the number of messages far below 2^30, so the index fits. */
static inline uint32_t origin_of(enum origin_kind kind, size_t message)
{
    return (uint32_t)((message + 1) << 2) | (uint32_t)kind;
}

/* ---- UTF-8 ---- */

/* The code point at `at`. Returns the number of its bytes; `at` is less than n_bytes. */
static inline size_t text_next(struct bn_str s, size_t at, uint32_t *cp)
{
    return (size_t)u8_mbtouc_unsafe(cp, (const uint8_t *)s.ptr + at, s.n_bytes - at);
}
size_t text_back(struct bn_str s, size_t at); /* start of the character before `at`; at > 0 */
bool text_valid(struct bn_str s);
size_t text_count(struct bn_str s); /* code points */

/* ---- strings ---- */

/* Shares the bytes of `text`, which must live as long as the arena. */
bool jstr_new(struct jvm *vm, struct bn_str text, uint32_t origin, struct jval *out);
/* Copies the bytes. */
bool jstr_copy(struct jvm *vm, struct bn_str text, uint32_t origin, struct jval *out);
/* A copy with the origin ORIGIN_TEMPLATE, in which each byte that is not part of valid UTF-8 is
 * U+FFFD. */
bool jstr_repair(struct jvm *vm, struct bn_str text, struct jval *out);
/* Static `text` with the origin ORIGIN_TEMPLATE. J_MISSING: failed, the error is written. */
struct jval jstr_lit(struct jvm *vm, const char *text);
size_t jstr_chars(struct jstr *s);                     /* number of code points; counted once */
uint32_t jstr_origin(const struct jstr *s, size_t at); /* of the byte at `at` */
/* Offset of the code point with this index; n_bytes if there are fewer code points. */
size_t jstr_offset(struct jstr *s, size_t index);
/* Shares the bytes [b0, b1) of s; keeps their origins and is_markup. */
bool jstr_slice(struct jvm *vm, const struct jstr *s, size_t b0, size_t b1, struct jval *out);
bool jstr_equal(const struct jstr *a, const struct jstr *b); /* bytes only, not origins */
/* Negative, 0 or positive. The order by code points, which equals the order by bytes. */
int jstr_compare(const struct jstr *a, const struct jstr *b);
bool jstr_is(const struct jstr *s, const char *text);
struct bn_str jstr_text(const struct jstr *s);
/* Offset of the first or (rfind) last occurrence of `needle` inside [b0, b1), or SIZE_MAX. b1 is at
 * most n_bytes. An empty needle is found at b0 or (rfind) b1. */
size_t text_find(struct bn_str hay, struct bn_str needle, size_t b0, size_t b1);
size_t text_rfind(struct bn_str hay, struct bn_str needle, size_t b0, size_t b1);
/* The offset of the first character from `at` on that is not white space, or n_bytes. */
size_t text_skip_space(struct bn_str s, size_t at);
/* The offset where the white space before `end` begins; `end` if there is none. */
size_t text_trim_space(struct bn_str s, size_t end);

/* ---- builder ---- */

/* Initialise with {.vm = vm}. The bytes are in the arena. */
struct jbuf {
    struct jvm *vm;
    char *ptr;
    size_t n, cap;
    struct jrun *runs; /* (n_runs) */
    size_t n_runs, cap_runs;
};

/* Append to the builder. After a failure (out of memory or a limit) do not use it any more. */
bool jbuf_add(struct jbuf *b, const char *p, size_t n, uint32_t origin);
bool jbuf_text(struct jbuf *b, const char *text); /* with the origin ORIGIN_TEMPLATE */
/* The code point cp, which is not a surrogate, once or n times. */
bool jbuf_cp(struct jbuf *b, uint32_t cp, uint32_t origin);
bool jbuf_repeat(struct jbuf *b, uint32_t cp, size_t n, uint32_t origin);
/* The string, or its bytes [b0, b1), with their origins. */
bool jbuf_str(struct jbuf *b, const struct jstr *s);
bool jbuf_slice(struct jbuf *b, const struct jstr *s, size_t b0, size_t b1);
/* *out takes over the bytes: do not add more. It is not markup. */
bool jbuf_done(struct jbuf *b, struct jval *out);

#endif
