/*
 * A growing text, always followed by a 0 byte.
 *
 * Initialise with zeros, free with strbuf_finish. If memory runs out, `failed` is set, the text so
 * far stays, and later additions are ignored, so one check of `failed` at the end is enough.
 *
 * strbuf_n_failed counts how often this module ran out of memory. A turn or a command fails if this
 * count has grown while it ran, so the user sees an error if a text is incomplete.
 */
#ifndef APP_STRBUF_H
#define APP_STRBUF_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct strbuf {
    char *ptr; /* (n_bytes), then a 0; NULL before the first addition */
    size_t n_bytes;
    size_t cap;  /* bytes */
    bool failed; /* memory ran out: bytes are missing at the end */
};

void strbuf_add(struct strbuf *b, const void *bytes, size_t n_bytes);
void strbuf_add_str(struct strbuf *b, struct bn_str s);
void strbuf_add_text(struct strbuf *b, const char *text);
void strbuf_add_char(struct strbuf *b, char c);
void strbuf_addf(struct strbuf *b, const char *fmt, ...) BN_PRINTF(2, 3);
/* Keep the first n_keep bytes. With 0, `failed` is cleared too: a new text begins. */
void strbuf_cut(struct strbuf *b, size_t n_keep);
void strbuf_drop(struct strbuf *b, size_t n_drop); /* remove the first n_drop <= n_bytes */
void strbuf_finish(struct strbuf *b); /* afterwards *b is all zero and can be used again */

/* How often memory has run out in the process, for all texts. Any thread. */
size_t strbuf_n_failed(void);

/* Both point into the buffer and are valid until it changes. */
const char *strbuf_text(const struct strbuf *b); /* "" while empty */
struct bn_str strbuf_str(const struct strbuf *b);
/* Return the text and empty the buffer; free the text with mem_free. NULL: memory ran out, now or
 * before. */
char *strbuf_take(struct strbuf *b);

#endif
