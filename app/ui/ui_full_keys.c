/*
 * The keys of the full-screen painter. F2 changes the painter, some keys scroll the view, n, N and
 * Esc belong to /find while matches are shown, and the others are passed to the editor. During an
 * answer, Esc stops the answer instead. The editor stays open during an answer; lines that are
 * entered then wait in the queue, except commands that may run at once.
 */
#include "app/ui/ui_full_state.h"

#include "app/terminal/term_keys.h"

#include <stdint.h>
#include <string.h>

static void redisplay(void *ud)
{
    struct full_ui *u = ud;
    u->due = DUE_NOW; /* the next frame gets the text from line_view */
}

static void show_matches(void *ud, char **words, int n_words, int longest)
{
    struct full_ui *u = ud;
    strbuf_cut(&u->choices, 0);
    ui_terminal_choices(words, n_words, longest, u->size.columns, &u->choices);
    u->due = DUE_NOW;
}

static void clear(void *ud)
{
    struct full_ui *u = ud;
    curses_invalidate();
    u->due = DUE_NOW;
}

static void hide(void *ud)
{
    (void)ud; /* line_host.suspend leaves the whole screen */
}

void full_attach_editor(struct full_ui *u)
{
    const struct line_display display = {false, u, redisplay, show_matches, clear, hide};
    line_set_display(u ? &display : NULL);
}

void full_open_line(void)
{
    if (!line_is_open())
        line_begin(TERMINAL_PROMPT);
}

/* A ui_terminal_entered_fn. */
static void show_entered(struct ui *ui, struct bn_str displayed)
{
    struct full_ui *u = ui->state;
    u->due = DUE_NOW; /* the line may have left the queue */
    if (displayed.n_bytes > 0)
        full_add_user_text(ui, displayed);
}

/* Handle a key of enum term_key. True: *event is set. */
static bool do_key(struct ui *ui, enum term_key key, struct ui_event *event)
{
    struct full_ui *u = ui->state;
    const size_t page = u->n_shown > 1 ? u->n_shown - 1 : 1; /* one row stays visible */
    switch (key) {
    case TERM_KEY_F2:
        *event = (struct ui_event){.kind = UI_CHANGE_PAINTER, .painter = "inline"};
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

/* Pass the first n bytes of the key queue to the editor. */
static enum ui_terminal_fed feed(struct ui *ui, size_t n, struct ui_event *event)
{
    struct full_ui *u = ui->state;
    full_open_line();
    strbuf_cut(&u->choices, 0);
    u->due = DUE_NOW;
    return ui_terminal_feed(ui, n, show_entered, event);
}

/* After a search, n may be the first letter of a message and not a key of the search. If text
 * follows, put the letter before it. False: a control character or a command follows, or out of
 * memory. */
static bool put_back(struct strbuf *keys, char letter)
{
    const unsigned char next = (unsigned char)keys->ptr[0];
    if (next < ' ' || next == 127 || next == '/')
        return false;
    strbuf_add_char(keys, letter);
    if (keys->failed)
        return false;
    memmove(keys->ptr + 1, keys->ptr, keys->n_bytes - 1);
    keys->ptr[0] = letter;
    return true;
}

/* Handle the next key of the view or of a search, or pass the keys before it to the editor. The
 * first n bytes of the key queue are complete keys. */
static enum ui_terminal_fed use_keys(struct ui *ui, size_t n, struct ui_event *event)
{
    struct strbuf *keys = &ui->terminal->keys.bytes;
    const struct term_key_hit hit = term_keys_find(strbuf_text(keys), n, TERM_KEY_NONE);
    if (hit.at == 0 && hit.key != TERM_KEY_NONE) {
        strbuf_drop(keys, hit.n_bytes);
        return do_key(ui, hit.key, event) ? TERMINAL_EVENT : TERMINAL_FED_ALL;
    }
    /* A key such as Up begins with an Esc too. It is one key, which a search does not know. */
    const bool is_sequence = n > 1 && keys->ptr[0] == 0x1B && keys->ptr[1] != 0x1B;
    const char letter = full_find_letter(ui->state); /* before another key ends the search */
    if (n > 0 && full_find_key(ui->state, is_sequence ? 0 : keys->ptr[0])) {
        strbuf_drop(keys, 1);
        return TERMINAL_FED_ALL;
    }
    if (hit.at == 0)
        return TERMINAL_WAITS; /* only if n is 0 */
    const size_t n_put = letter && put_back(keys, letter) ? 1 : 0;
    return feed(ui, hit.at + n_put, event);
}

bool full_next_event(struct ui *ui, struct ui_event *event)
{
    const struct strbuf *keys = &ui->terminal->keys.bytes;
    if (ui->terminal->is_hung_up) {
        *event = (struct ui_event){.kind = UI_HANG_UP};
        return true;
    }
    if (ui_terminal_next_queued(ui, show_entered, event))
        return true;
    while (keys->n_bytes > 0) {
        /* While no turn runs, Esc ends a search, so ui_terminal_filter_keys must not remove it. */
        const bool ends_search = !chat_is_busy(ui->chat) && full_is_finding(ui->state);
        if (!ends_search && ui_terminal_filter_keys(ui, event))
            return true;
        const enum ui_terminal_fed fed = use_keys(ui, ui_terminal_complete_keys(ui), event);
        if (fed != TERMINAL_FED_ALL)
            return fed == TERMINAL_EVENT;
    }
    return false;
}

void full_input(struct ui *ui)
{
    (void)ui_terminal_read_keys(ui); /* the number is not needed */
}
