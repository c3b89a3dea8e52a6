/*
 * The keys of the inline painter. They go to the editor while it is open. During an answer they
 * wait in the queue, except for Esc, Enter, Ctrl-L and F2.
 */
#include "app/ui/ui_inline_state.h"

#include "app/terminal/term_keys.h"

#include <stdio.h>

static bool feed_editor(struct ui *ui, struct ui_event *event)
{
    struct inline_ui *u = ui->state;
    size_t n_used;
    const enum line_result result =
        terminal_feed_editor(ui, ui->terminal->keys.bytes.n_bytes, &n_used);
    (void)fflush(stdout); /* Readline's output; inline_write_out detects that the terminal is
                             gone */
    if (result == LINE_EDITING)
        return false;
    if (result == LINE_DONE) {
        terminal_line_event(ui, event);
    } else {
        strbuf_add_char(&u->out, '\n'); /* so that the shell's prompt begins a new row */
        *event = (struct ui_event){.kind = UI_END, .code = EXIT_DONE};
    }
    return true;
}

/* During an answer, Enter is refused, Ctrl-L repaints, Esc stops, and other keys wait. */
static bool filter_keys(struct ui *ui, struct ui_event *event)
{
    struct inline_ui *u = ui->state;
    const struct key_requests requests = key_queue_filter(&ui->terminal->keys, KEYS_WAIT);
    if (requests.enters) {
        u->enter_was_refused = true;
        u->row_painted = 0; /* show the refusal at once */
    }
    if (requests.redraws)
        inline_repaint(ui);
    *event = (struct ui_event){.kind = UI_STOP};
    return requests.stops;
}

/* F2 switches to the other painter, which gets the remaining keys. */
static bool remove_f2(struct strbuf *keys, struct ui_event *event)
{
    const struct term_key_hit hit = term_keys_find(keys->ptr, keys->n_bytes);
    struct strbuf rest = {0};
    if (hit.key != TERM_KEY_F2)
        return false;
    strbuf_add(&rest, keys->ptr, hit.at);
    strbuf_add(&rest, keys->ptr + hit.at + hit.n_bytes, keys->n_bytes - hit.at - hit.n_bytes);
    strbuf_finish(keys);
    *keys = rest;
    *event = (struct ui_event){.kind = UI_CHANGE, .painter = "full"};
    return true;
}

static bool use_keys(struct ui *ui, struct ui_event *event)
{
    struct strbuf *keys = &ui->terminal->keys.bytes;
    if (keys->n_bytes == 0)
        return false;
    if (remove_f2(keys, event))
        return true;
    if (line_is_open())
        return feed_editor(ui, event);
    return chat_is_busy(ui->chat) && filter_keys(ui, event);
}

bool inline_next_event(struct ui *ui, struct ui_event *event)
{
    struct inline_ui *u = ui->state;
    if (ui->terminal->is_hung_up) {
        *event = (struct ui_event){.kind = UI_HANG_UP};
        return true;
    }
    const bool has_event = use_keys(ui, event);
    if (u->has_new_keys && ui->terminal->keys.bytes.n_bytes > 0)
        u->row_painted = 0; /* show waiting keys at once */
    u->has_new_keys = false;
    return has_event;
}

void inline_input(struct ui *ui)
{
    struct inline_ui *u = ui->state;
    u->has_new_keys = terminal_read_keys(ui) > 0;
}
