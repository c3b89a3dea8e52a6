/*
 * The keys of the full-screen painter. Some scroll the view, the others go to the editor. The
 * editor stays open during an answer, so that type-ahead can be edited; only Enter is refused.
 */
#include "app/ui/ui_full_state.h"

#include "app/common/term_text.h"
#include "app/terminal/term_keys.h"
#include "engine/base/size.h"

#include <stdint.h>
#include <string.h>

static void redisplay(void *ud)
{
    struct full_ui *u = ud;
    u->due = DUE_NOW; /* the next frame gets the text from line_view */
}

/* Arrange the choices in columns, separated by two blanks. */
static void show_matches(void *ud, char **matches, int n_matches, int longest)
{
    struct full_ui *u = ud;
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

void full_attach_editor(struct full_ui *u)
{
    const struct line_display display = {u, redisplay, show_matches};
    line_set_display(u ? &display : NULL);
}

void full_open_line(void)
{
    if (!line_is_open())
        line_begin(TERMINAL_PROMPT);
}

/* Handle a key of the view. True: it is an event. */
static bool do_key(struct ui *ui, enum term_key key, struct ui_event *event)
{
    struct full_ui *u = ui->state;
    const size_t page = u->n_shown > 1 ? u->n_shown - 1 : 1;
    switch (key) {
    case TERM_KEY_F2:
        *event = (struct ui_event){.kind = UI_CHANGE, .painter = "inline"};
        return true;
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
    return false;
}

enum feed_result {
    FEED_MORE,  /* all keys were used: continue with the next ones */
    FEED_WAITS, /* the editor waits for the end of a paste */
    FEED_EVENT,
};

/* Pass the first n keys to the editor. */
static enum feed_result feed(struct ui *ui, size_t n, struct ui_event *event)
{
    struct full_ui *u = ui->state;
    const size_t n_before = ui->terminal->keys.bytes.n_bytes;
    size_t n_used;
    full_open_line();
    strbuf_cut(&u->choices, 0);
    line_set_enter(chat_is_busy(ui->chat) ? LINE_ENTER_REFUSED : LINE_ENTER_SENDS);
    const enum line_result result = terminal_feed_editor(ui, n, &n_used);
    u->due = DUE_NOW;
    if (line_enter_was_refused())
        ui->terminal->enter_was_refused = true;
    if (result == LINE_END) {
        *event = (struct ui_event){.kind = UI_END, .code = EXIT_DONE};
        return FEED_EVENT;
    }
    if (result == LINE_DONE) {
        if (line_displayed_text().n_bytes > 0)
            full_add_user_text(ui, line_displayed_text());
        terminal_line_event(ui, event);
        return FEED_EVENT;
    }
    const bool was_ended = ui->terminal->keys.bytes.n_bytes > n_before - n_used;
    return n_used == n || was_ended ? FEED_MORE : FEED_WAITS;
}

bool full_next_event(struct ui *ui, struct ui_event *event)
{
    struct key_queue *q = &ui->terminal->keys;
    if (ui->terminal->is_hung_up) {
        *event = (struct ui_event){.kind = UI_HANG_UP};
        return true;
    }
    while (q->bytes.n_bytes > 0) {
        if (chat_is_busy(ui->chat) && key_queue_filter(q, KEYS_EDIT).stops) {
            *event = (struct ui_event){.kind = UI_STOP};
            return true;
        }
        const size_t n_pending = key_queue_idle_seconds(q) < KEY_ESCAPE_SECONDS
                                     ? term_keys_tail(strbuf_text(&q->bytes), q->bytes.n_bytes)
                                     : 0;
        const size_t n = q->bytes.n_bytes - n_pending;
        const struct term_key_hit hit = term_keys_find(strbuf_text(&q->bytes), n);
        enum feed_result fed = FEED_MORE;
        if (hit.at == 0 && hit.key != TERM_KEY_NONE) {
            strbuf_drop(&q->bytes, hit.n_bytes);
            if (do_key(ui, hit.key, event))
                return true;
        } else if (n > 0 && full_find_key(ui->state, q->bytes.ptr[0])) {
            strbuf_drop(&q->bytes, 1);
        } else {
            fed = hit.at == 0 ? FEED_WAITS : feed(ui, hit.at, event);
        }
        if (fed != FEED_MORE)
            return fed == FEED_EVENT;
    }
    return false;
}

void full_input(struct ui *ui)
{
    const struct strbuf *b = &ui->terminal->keys.bytes;
    const size_t n = terminal_read_keys(ui);
    if (n > 0 && memchr(b->ptr + b->n_bytes - n, KEY_REDRAW, n))
        curses_invalidate(); /* Ctrl-L; Readline redraws its text itself */
}
