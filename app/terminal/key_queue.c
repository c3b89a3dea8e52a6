/*
 * The queue of keys and its filters: see key_queue.h.
 */
#include "app/terminal/key_queue.h"

#include "app/common/term_text.h"
#include "app/terminal/term_keys.h"
#include "app/terminal/tty.h"
#include "engine/base/clock.h"
#include "engine/base/utf8.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Append the complete characters and store the rest in `partial`: when Readline draws a line, it
 * reads past the end of an incomplete character. Characters that are unsafe to display are replaced
 * here, because Readline may draw them. */
static void add_whole(struct key_queue *q, struct bn_str bytes)
{
    const size_t n_partial = utf8_partial_bytes(bytes.ptr, bytes.n_bytes);
    struct term_char c;
    if (q->bytes.n_bytes == 0)
        strbuf_cut(&q->bytes, 0); /* clears `failed`, so that later keys are not lost, too */
    bytes.n_bytes -= n_partial;
    for (size_t at = 0, before = 0; term_text_next(bytes, &at, &c); before = at) {
        if ((unsigned char)bytes.ptr[before] < 0x80)
            strbuf_add_char(&q->bytes, bytes.ptr[before]); /* a key, also a control character */
        else
            term_text_put(&q->bytes, c.code);
    }
    memcpy(q->partial, bytes.ptr + bytes.n_bytes, n_partial);
    q->n_partial = n_partial;
}

bool key_queue_in_paste(const struct key_queue *q)
{
    const char *at = q->bytes.ptr, *end = at + q->bytes.n_bytes;
    while (at && (at = term_paste_find(at, (size_t)(end - at), TERM_PASTE_BEGIN)) != NULL) {
        at = term_paste_find(at, (size_t)(end - at), TERM_PASTE_END);
        if (!at)
            return true;
    }
    return false;
}

/* If at least two bytes were read together and an LF is the last, replace it by CR, and CR LF by
 * one CR, except in a paste and after Esc (Alt-Ctrl-J). Programs that send lines end them with LF,
 * but the editor expects the CR of the Enter key. An LF that was read alone is Ctrl-J. */
static void end_sent_line(struct key_queue *q, size_t n_read)
{
    struct strbuf *b = &q->bytes;
    const size_t n = b->n_bytes;
    if (n_read < 2 || n < 2 || b->ptr[n - 1] != '\n' || b->ptr[n - 2] == KEY_ESCAPE ||
        key_queue_in_paste(q))
        return;
    if (b->ptr[n - 2] == '\r')
        strbuf_cut(b, n - 1);
    else
        b->ptr[n - 1] = '\r';
}

bool key_queue_read(struct key_queue *q, size_t *n_added)
{
    char block[sizeof(q->partial) + 65536]; /* the incomplete character and up to 64 KiB more */
    char *bytes = block + q->n_partial;
    const size_t n_before = q->bytes.n_bytes;
    memcpy(block, q->partial, q->n_partial);
    const ssize_t n = read(STDIN_FILENO, bytes, sizeof(block) - sizeof(q->partial));
    *n_added = 0;
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    for (size_t i = tty_take_early((size_t)n); i > 0; i--)
        if (bytes[i - 1] == '\n')
            bytes[i - 1] = '\r';
    add_whole(q, (struct bn_str){block, q->n_partial + (size_t)n});
    if (bytes[n - 1] == '\n')
        end_sent_line(q, (size_t)n);
    *n_added = q->bytes.n_bytes - n_before;
    q->read_at = clock_seconds();
    return true;
}

double key_queue_idle_seconds(const struct key_queue *q)
{
    return clock_seconds() - q->read_at;
}

size_t key_queue_escapes(const struct key_queue *q)
{
    const struct strbuf *b = &q->bytes;
    size_t n = 0;
    while (n < b->n_bytes && b->ptr[b->n_bytes - 1 - n] == KEY_ESCAPE)
        n++;
    return n;
}

bool key_queue_filter(struct key_queue *q)
{
    struct strbuf *b = &q->bytes;
    const bool waited = key_queue_idle_seconds(q) >= KEY_ESCAPE_SECONDS;
    const bool in_paste = key_queue_in_paste(q);
    const size_t n_escapes = waited && !in_paste ? key_queue_escapes(q) : 0;
    size_t n_kept = 0;
    strbuf_cut(b, b->n_bytes - n_escapes);
    for (size_t i = 0; i < b->n_bytes;) {
        const bool is_paste = term_paste_begins(b->ptr, b->n_bytes, i);
        const size_t end = is_paste ? term_paste_end(b->ptr, b->n_bytes, i) : i + 1;
        if (is_paste || b->ptr[i] != KEY_EOF) {
            memmove(b->ptr + n_kept, b->ptr + i, end - i);
            n_kept += end - i;
        }
        i = end;
    }
    strbuf_cut(b, n_kept);
    return n_escapes > 0;
}
