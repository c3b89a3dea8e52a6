/*
 * The inline painter's keys: to the editor while it is open; while an answer is made they wait for
 * it, but for Esc, Enter and F2.
 */
#include "app/ui/ui_inline_state.h"

#include "app/terminal/term_keys.h"

#include <stdio.h>

static void feed_editor(struct ui *ui)
{
    struct inline_ui *u = ui->state;
    size_t n_used;
    const enum line_result result = terminal_feed(ui, ui->app->keys.bytes.n_bytes, &n_used);
    (void)fflush(stdout); /* Readline's own drawing; write_out notices a terminal that is gone */
    if (result == LINE_DONE) {
        terminal_enter(ui);
    } else if (result == LINE_END) {
        strbuf_add_char(&u->out, '\n'); /* the shell's prompt is not to stand behind ours */
        app_leave(ui->app, EXIT_DONE);
    }
}

/* While something runs: Enter is refused, Ctrl-L obeyed, the rest waits for the prompt. */
static void filter_keys(struct ui *ui)
{
    struct inline_ui *u = ui->state;
    const struct key_wish wish = key_queue_filter(&ui->app->keys, KEYS_WAIT);
    if (wish.stops)
        chat_stop(&ui->app->chat);
    if (wish.enters) {
        u->said_busy = true;
        u->row_painted = 0; /* say so at once */
    }
    if (wish.redraws)
        inline_paint_anew(ui);
}

/* F2 changes painters; what was typed after it is for the next one. */
void inline_use_keys(struct ui *ui)
{
    struct strbuf *keys = &ui->app->keys.bytes;
    if (keys->n_bytes == 0 || ui->app->next_ui)
        return;
    const struct term_key_hit hit = term_keys_find(keys->ptr, keys->n_bytes);
    if (hit.key == TERM_KEY_F2) {
        struct strbuf rest = {0};
        strbuf_add(&rest, keys->ptr, hit.at);
        strbuf_add(&rest, keys->ptr + hit.at + hit.n_bytes, keys->n_bytes - hit.at - hit.n_bytes);
        strbuf_finish(keys);
        *keys = rest;
        app_change_ui(ui->app, &ui_full_ops);
        return;
    }
    if (line_is_open())
        feed_editor(ui);
    else if (chat_is_busy(&ui->app->chat))
        filter_keys(ui);
}

void inline_input(struct ui *ui)
{
    struct inline_ui *u = ui->state;
    if (terminal_read_keys(ui) == 0)
        return;
    inline_use_keys(ui);
    if (ui->app->keys.bytes.n_bytes > 0)
        u->row_painted = 0; /* the row shows what is typed ahead, at once */
}
