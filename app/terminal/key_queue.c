/*
 * The queue of keys and its filters: see key_queue.h.
 */
#include "app/terminal/key_queue.h"

#include "app/common/term_text.h"
#include "app/terminal/term_keys.h"
#include "engine/base/clock.h"
#include "engine/base/utf8.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Append only complete characters: when Readline draws a line, it reads past the end of a broken
 * one. Characters that are unsafe to display are replaced here, because Readline may draw them. */
static size_t add_whole(struct key_queue *q, struct bn_str bytes)
{
    const size_t n_before = q->bytes.n_bytes, n_partial = utf8_open_bytes(bytes.ptr, bytes.n_bytes);
    struct term_char c;
    bytes.n_bytes -= n_partial;
    for (size_t at = 0, before = 0; term_text_next(bytes, &at, &c); before = at) {
        if ((unsigned char)bytes.ptr[before] < 0x80)
            strbuf_add_char(&q->bytes, bytes.ptr[before]); /* a key, also a control character */
        else
            term_text_put(&q->bytes, c.code);
    }
    memcpy(q->partial, bytes.ptr + bytes.n_bytes, n_partial);
    q->n_partial = n_partial;
    return q->bytes.n_bytes - n_before;
}

bool key_queue_read(struct key_queue *q, size_t *n_added)
{
    char block[sizeof(q->partial) + 65536];
    memcpy(block, q->partial, q->n_partial);
    const ssize_t n = read(STDIN_FILENO, block + q->n_partial, sizeof(block) - sizeof(q->partial));
    *n_added = 0;
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    *n_added = add_whole(q, (struct bn_str){block, q->n_partial + (size_t)n});
    q->read_at = clock_seconds();
    return true;
}

double key_queue_idle_seconds(const struct key_queue *q)
{
    return clock_seconds() - q->read_at;
}

/* The end of the escape sequence that begins at `at`. */
static size_t sequence_end(const struct strbuf *b, size_t at)
{
    size_t end = at + 1;
    if (end < b->n_bytes && (b->ptr[end] == '[' || b->ptr[end] == 'O'))
        for (end++; end < b->n_bytes && (unsigned char)b->ptr[end] < 0x40;)
            end++;
    return end < b->n_bytes ? end + 1 : end;
}

static void erase_last_char(struct strbuf *out)
{
    size_t n = out->n_bytes;
    while (n > 0 && ((unsigned char)out->ptr[n - 1] & 0xC0) == 0x80)
        n--;
    strbuf_cut(out, n > 0 ? n - 1 : 0);
}

void key_queue_typed(const struct key_queue *q, struct strbuf *out)
{
    const struct strbuf *b = &q->bytes;
    for (size_t i = 0; i < b->n_bytes;) {
        const char key = b->ptr[i];
        if (term_paste_begins(b->ptr, b->n_bytes, i)) {
            strbuf_add_text(out, "[pasted]");
            i = term_paste_end(b->ptr, b->n_bytes, i);
            continue;
        }
        if (key == '\033') {
            i = sequence_end(b, i);
            continue;
        }
        if (key == KEY_DELETE || key == KEY_BACKSPACE)
            erase_last_char(out);
        else if (key == KEY_KILL)
            strbuf_cut(out, 0);
        else if (key == '\n')
            strbuf_add_char(out, ' ');
        else if ((unsigned char)key >= 0x20)
            strbuf_add_char(out, key);
        i++;
    }
}

struct key_requests key_queue_filter(struct key_queue *q, enum key_rule rule)
{
    struct key_requests requests = {0};
    struct strbuf *b = &q->bytes;
    /* A last Esc is the Esc key only after a pause; before, it may begin the sequence of a key. */
    const bool paused = key_queue_idle_seconds(q) >= KEY_ESCAPE_SECONDS;
    size_t n_kept = 0;
    bool after_esc = false; /* the next key is typed with Alt, or part of a sequence */
    for (size_t i = 0; i < b->n_bytes;) {
        const bool is_paste = term_paste_begins(b->ptr, b->n_bytes, i);
        const size_t end = is_paste ? term_paste_end(b->ptr, b->n_bytes, i) : i + 1;
        const char key = b->ptr[i];
        const bool is_key = end == i + 1;
        const bool stops = is_key && key == '\033' && end == b->n_bytes && paused;
        const bool can_request = is_key && !after_esc && rule == KEYS_WAIT;
        const bool enters = can_request && key == '\r';
        const bool redraws = can_request && key == KEY_REDRAW;
        requests.stops |= stops;
        requests.enters |= enters;
        requests.redraws |= redraws;
        after_esc = is_key && key == '\033';
        if (!stops && !enters && !redraws && !(is_key && key == KEY_EOF)) {
            memmove(b->ptr + n_kept, b->ptr + i, end - i);
            n_kept += end - i;
        }
        i = end;
    }
    strbuf_cut(b, n_kept);
    return requests;
}
