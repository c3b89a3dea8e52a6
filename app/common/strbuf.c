/*
 * Growing text: see strbuf.h. The capacity always includes one byte for the final 0.
 */
#include "app/common/strbuf.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_size_t n_failed; /* failures of all texts of the process */

static void fail(struct strbuf *b)
{
    b->failed = true;
    atomic_fetch_add(&n_failed, 1);
}

size_t strbuf_n_failed(void)
{
    return atomic_load(&n_failed);
}

void strbuf_add(struct strbuf *b, const void *bytes, size_t n_bytes)
{
    size_t need;
    if (b->failed)
        return;
    if (!size_add(&need, b->n_bytes, n_bytes) || !size_add(&need, need, 1) ||
        !mem_grow(&b->ptr, &b->cap, need, 1)) {
        fail(b);
        return;
    }
    if (n_bytes > 0)
        memcpy(b->ptr + b->n_bytes, bytes, n_bytes);
    b->n_bytes += n_bytes;
    b->ptr[b->n_bytes] = 0;
}

void strbuf_add_str(struct strbuf *b, struct bn_str s)
{
    strbuf_add(b, s.ptr, s.n_bytes);
}

void strbuf_add_text(struct strbuf *b, const char *text)
{
    strbuf_add(b, text, strlen(text));
}

void strbuf_add_char(struct strbuf *b, char c)
{
    strbuf_add(b, &c, 1);
}

void strbuf_addf(struct strbuf *b, const char *fmt, ...)
{
    char small[256]; /* enough for most lines; longer ones are formatted again */
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int n = vsnprintf(small, sizeof small, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof small) {
        strbuf_add(b, small, (size_t)n);
    } else if (n >= 0) {
        char *large = mem_alloc((size_t)n + 1, 1);
        if (large) {
            (void)vsnprintf(large, (size_t)n + 1, fmt, again);
            strbuf_add(b, large, (size_t)n);
        } else {
            fail(b);
        }
        mem_free(large);
    } else {
        fail(b); /* the text has more than INT_MAX bytes */
    }
    va_end(again);
}

void strbuf_cut(struct strbuf *b, size_t n_keep)
{
    b->failed = b->failed && n_keep > 0;
    if (n_keep < b->n_bytes) {
        b->n_bytes = n_keep;
        b->ptr[n_keep] = 0;
    }
}

void strbuf_drop(struct strbuf *b, size_t n_drop)
{
    if (n_drop == 0)
        return;
    memmove(b->ptr, b->ptr + n_drop, b->n_bytes - n_drop + 1);
    b->n_bytes -= n_drop;
}

void strbuf_finish(struct strbuf *b)
{
    mem_free(b->ptr);
    *b = (struct strbuf){0};
}

const char *strbuf_text(const struct strbuf *b)
{
    return b->ptr ? b->ptr : "";
}

struct bn_str strbuf_str(const struct strbuf *b)
{
    return (struct bn_str){strbuf_text(b), b->n_bytes};
}

char *strbuf_take(struct strbuf *b)
{
    strbuf_add(b, "", 0); /* an empty text is allocated too */
    char *text = b->failed ? NULL : b->ptr;
    if (b->failed)
        mem_free(b->ptr);
    *b = (struct strbuf){0};
    return text;
}
