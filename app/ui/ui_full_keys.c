/*
 * The full-screen painter's keys: its own move the view, the rest go to the editor, which stays
 * open while an answer is made so that type-ahead can be edited; only Enter waits.
 */
#include "app/ui/ui_full_state.h"

#include "app/common/term_text.h"
#include "app/terminal/term_keys.h"
#include "engine/base/size.h"

#include <stdint.h>
#include <string.h>

static struct full_ui *painter; /* the one that is open: the editor's calls carry no argument */

static void no_redisplay(void)
{
    painter->due = DUE_NOW; /* the frame shows what line_view gives */
}

/* Choices in columns, each with two blanks behind it. */
static void show_matches(char **matches, int n_matches, int longest)
{
    struct full_ui *u = painter;
    const size_t width = size_min((size_t)longest + 2, u->size.columns);
    const size_t n_columns = u->size.columns / (width > 0 ? width : 1);
    strbuf_cut(&u->choices, 0);
    for (int i = 1; i <= n_matches; i++) {
        struct strbuf word = {0};
        const char *slash = strrchr(matches[i], '/');
        const bool is_path = slash && slash > matches[i] && slash[1];
        term_text_brief(bn_str_of(is_path ? slash + 1 : matches[i]), width, &word);
        strbuf_add_str(&u->choices, strbuf_str(&word));
        const size_t n = term_text_width(strbuf_str(&word));
        const bool ends = i == n_matches || (n_columns > 0 && (size_t)i % n_columns == 0);
        for (size_t k = n; k < width && !ends; k++)
            strbuf_add_char(&u->choices, ' ');
        if (ends)
            strbuf_add_char(&u->choices, '\n');
        strbuf_finish(&word);
    }
    u->due = DUE_NOW;
}

void full_edit_with(struct full_ui *u)
{
    static const struct line_display display = {no_redisplay, show_matches};
    painter = u;
    line_set_display(u ? &display : NULL);
}

void full_open_line(struct ui *ui)
{
    if (!line_is_open() && !ui->app->leaving && ui->app->chat.phase != CHAT_BROKEN)
        line_begin(TERMINAL_PROMPT);
}

static void do_key(struct ui *ui, enum term_key key)
{
    struct full_ui *u = ui->state;
    const size_t page = u->n_shown > 1 ? u->n_shown - 1 : 1;
    switch (key) {
    case TERM_KEY_F2:
        app_change_ui(ui->app, &ui_inline_ops);
        break;
    case TERM_KEY_PAGE_UP:
        full_scroll(u, FULL_UP, page);
        break;
    case TERM_KEY_PAGE_DOWN:
        full_scroll(u, FULL_DOWN, page);
        break;
    case TERM_KEY_FIRST:
        full_scroll(u, FULL_UP, SIZE_MAX);
        break;
    case TERM_KEY_LAST:
        full_scroll(u, FULL_DOWN, SIZE_MAX);
        break;
    case TERM_KEY_NONE:
        break;
    }
}

/* The first n keys to the editor; false: it waits for the end of a paste, or nobody wants keys. */
static bool feed(struct ui *ui, size_t n)
{
    struct full_ui *u = ui->state;
    const size_t n_before = ui->app->keys.bytes.n_bytes;
    size_t n_used;
    full_open_line(ui);
    if (!line_is_open())
        return false;
    strbuf_cut(&u->choices, 0);
    line_set_enter(chat_is_busy(&ui->app->chat) ? LINE_ENTER_WAITS : LINE_ENTER_SENDS);
    const enum line_result result = terminal_feed(ui, n, &n_used);
    u->due = DUE_NOW;
    if (line_was_refused())
        u->said_busy = true;
    if (result == LINE_END) {
        app_leave(ui->app, EXIT_DONE);
        return false;
    }
    if (result == LINE_DONE) {
        if (line_shown().n_bytes > 0)
            full_add_said(ui, line_shown());
        terminal_enter(ui);
        full_open_line(ui);
        return true;
    }
    const bool was_ended = ui->app->keys.bytes.n_bytes > n_before - n_used;
    return n_used == n || was_ended;
}

void full_use_keys(struct ui *ui)
{
    struct key_queue *q = &ui->app->keys;
    while (q->bytes.n_bytes > 0 && !ui->app->next_ui && !ui->app->leaving) {
        if (chat_is_busy(&ui->app->chat) && key_queue_filter(q, KEYS_EDIT).stops)
            chat_stop(&ui->app->chat);
        const size_t n_held = key_queue_waited(q) < KEY_ESCAPE_SECONDS
                                  ? term_keys_tail(strbuf_text(&q->bytes), q->bytes.n_bytes)
                                  : 0;
        const size_t n = q->bytes.n_bytes - n_held;
        const struct term_key_hit hit = term_keys_find(strbuf_text(&q->bytes), n);
        if (hit.at == 0 && hit.key != TERM_KEY_NONE) {
            strbuf_drop(&q->bytes, hit.n_bytes);
            do_key(ui, hit.key);
        } else if (n > 0 && full_find_key(ui->state, q->bytes.ptr[0])) {
            strbuf_drop(&q->bytes, 1);
        } else if (hit.at == 0 || !feed(ui, hit.at)) {
            break;
        }
    }
}

void full_input(struct ui *ui)
{
    struct full_ui *u = ui->state;
    const struct strbuf *b = &ui->app->keys.bytes;
    const size_t n = terminal_read_keys(ui);
    if (n > 0 && memchr(b->ptr + b->n_bytes - n, KEY_REDRAW, n))
        full_screen_paint_anew(u->screen); /* Ctrl-L; Readline has its part in it */
    full_use_keys(ui);
}
