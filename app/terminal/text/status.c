/*
 * The status row: see status.h.
 */
#include "app/terminal/text/status.h"

#include "engine/base/error.h"
#include "engine/base/size.h"
#include "engine/base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Seconds between two rows, also of the progress of loading. During an answer the time is shorter
 * after much text, and longer after little. */
#define ROW_SECONDS 0.5
#define ROW_SECONDS_FAST 0.1
#define ROW_SECONDS_SLOW 1.0

struct row {
    char *out;
    size_t n, width; /* characters used, and the limit */
    bool full;       /* an item did not fit: leave out all later items */
};

/* Replace each character beyond ASCII and each control character by a question mark, so that every
 * byte is one column. Returns the new length. */
static size_t make_ascii(char *text, size_t n_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (utf8_is_continuation(byte))
            continue;
        text[n++] = byte >= 0x20 && byte < 0x7F ? (char)byte : '?';
    }
    return n;
}

/* Append an item and, unless it is the first one, a separator before it. Nothing if it is empty. */
static void item(struct row *row, const char *fmt, ...) BN_PRINTF(2, 3);
static void item(struct row *row, const char *fmt, ...)
{
    char text[200]; /* a longer item is cut */
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    const size_t n_sep = row->n > 0 ? strlen(STATUS_SEPARATOR) : 0;
    const size_t n_text = make_ascii(text, n < 0 ? 0 : size_min((size_t)n, sizeof(text) - 1));
    if (row->full || n_text == 0)
        return;
    if (n_sep + n_text > row->width - row->n) {
        row->full = true;
        if (row->n > 0)
            return;
        memcpy(row->out, text, row->width); /* the first item is cut and not left out */
        row->n = row->width;
    } else {
        memcpy(row->out + row->n, STATUS_SEPARATOR, n_sep);
        memcpy(row->out + row->n + n_sep, text, n_text);
        row->n += n_sep + n_text;
    }
    row->out[row->n] = 0;
}

static size_t percent(size_t n, size_t total)
{
    return total > 0 ? (size_t)(100.0 * (double)size_min(n, total) / (double)total) : 0;
}

static void state_item(struct row *row, const struct status *s)
{
    switch (s->state) {
    case STATUS_LOADING:
        if (s->n_total > 0)
            item(row, "loading %zu%%", percent(s->n_done, s->n_total));
        else
            item(row, "loading");
        break;
    case STATUS_READING:
        if (s->n_total == 0)
            item(row, "reading");
        else if (s->seconds_left > 0)
            item(row, "reading %zu/%zu %zu%% %.0f s", s->n_done, s->n_total,
                 percent(s->n_done, s->n_total), s->seconds_left);
        else
            item(row, "reading %zu/%zu %zu%%", s->n_done, s->n_total,
                 percent(s->n_done, s->n_total));
        break;
    case STATUS_GENERATING:
        item(row, "generating %zu", s->n_done);
        break;
    case STATUS_READY:
        item(row, "ready");
        break;
    case STATUS_STOPPING:
        item(row, "stopping");
        break;
    }
}

void status_format(const struct status *s, size_t width, char *out, size_t out_bytes)
{
    struct row row = {.out = out, .width = size_min(width, out_bytes - 1)};
    out[0] = 0;
    state_item(&row, s);
    if (s->rate > 0)
        item(&row, "%.1f tok/s", s->rate);
    if (s->n_ctx > 0)
        item(&row, "ctx %zu/%zu %zu%%", s->n_used, s->n_ctx, percent(s->n_used, s->n_ctx));
    if (s->hint && s->hint[0])
        item(&row, "%s", s->hint);
    if (s->model)
        item(&row, "%s", s->model);
    if (s->device)
        item(&row, "%s", s->device);
    if (s->settings && s->settings[0])
        item(&row, "%s", s->settings);
    if (s->unsaved)
        item(&row, "unsaved");
}

int status_wait(const struct status_clock *c, enum status_state state, double now)
{
    double every = ROW_SECONDS;
    if (state == STATUS_GENERATING)
        every = c->n_text >= STATUS_TEXT_BYTES ? ROW_SECONDS_FAST : ROW_SECONDS_SLOW;
    const double left = every - (now - c->written);
    return left > 0 && c->written > 0 && state == c->state ? (int)(left * 1000) + 1 : 0;
}

void status_written(struct status_clock *c, enum status_state state, double now)
{
    *c = (struct status_clock){.written = now, .state = state};
}

int status_fullness(const struct status *s)
{
    const size_t used = percent(s->n_used, s->n_ctx);
    return used >= 95 ? 2 : used >= 80 ? 1 : 0;
}
