/*
 * Common to the painters of a terminal: see terminal_chat.h.
 */
#include "app/ui/terminal_chat.h"

#include "app/chat/turn_report.h"
#include "app/common/paths.h"
#include "app/common/term_text.h"
#include "app/options/chat_options.h"
#include "app/terminal/term_keys.h"
#include "app/terminal/tty.h"
#include "engine/base/size.h"

#include <stdio.h>
#include <unistd.h>

/* ---- status row ---- */

static void settings_text(const struct ui *ui, char *out, size_t n_bytes)
{
    static const char *const shown[] = {"temp", "seed"};
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        char value[60];
        if (!options_given(ui->options, shown[i]))
            continue;
        options_format(ui->options, shown[i], value, sizeof(value));
        const int k = snprintf(out + n, n_bytes - n, "%s%s %s", n > 0 ? " " : "", shown[i], value);
        n += k < 0 ? 0 : size_min((size_t)k, n_bytes - n - 1);
    }
}

/* A message that was entered while the model loads is sent as soon as it can be. */
static const char *hint_of(const struct ui *ui, enum terminal_busy busy)
{
    if (!chat_is_busy(ui->chat))
        return "";
    if (busy == TERMINAL_REFUSED)
        return "busy, Esc stops";
    return ui->chat->is_waiting ? "your message waits, Esc takes it back" : "Esc stops";
}

int terminal_status(const struct ui *ui, enum terminal_busy busy, size_t width, char *out,
                    size_t out_bytes)
{
    char settings[80];
    const struct bn_model_info *info = worker_info(ui->chat->worker);
    struct strbuf typed = {0};
    if (chat_is_busy(ui->chat) && !line_is_open())
        key_queue_typed(&ui->terminal->keys, &typed); /* it is shown nowhere else */
    struct status s = {.model = ui->chat->model->name,
                       .device = info ? info->device : NULL,
                       .settings = settings,
                       .hint = hint_of(ui, busy),
                       .typed = strbuf_str(&typed)};
    settings_text(ui, settings, sizeof(settings));
    chat_status(ui->chat, &s);
    status_format(&s, width, out, out_bytes);
    strbuf_finish(&typed);
    return status_pressure(&s);
}

/* ---- words ---- */

static void say(struct ui *ui, enum ui_tone tone, const char *text)
{
    ui->ops->notice(ui, tone, bn_str_of(text));
}

static void say_taken_up(struct ui *ui, const struct transcript_state *s)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "%zu turn%s loaded (/history shows them), the last: ", s->n,
                s->n == 1 ? "" : "s");
    term_text_brief(s->items[s->n - 1]->user, 40, &text);
    say(ui, TONE_NOTE, strbuf_text(&text));
    strbuf_finish(&text);
}

static void say_banner(struct ui *ui)
{
    const struct chat *c = ui->chat;
    struct strbuf text = {0};
    const double n_bytes = (double)bn_file_bytes(c->model->file);
    strbuf_addf(&text, "%s %s, %s, %.*f %s", PROGRAM, report_version(), c->model->name,
                n_bytes < 1e9 ? 1 : 2, n_bytes < 1e9 ? n_bytes / 1e6 : n_bytes / 1e9,
                n_bytes < 1e9 ? "MB" : "GB");
    say(ui, TONE_NOTE, strbuf_text(&text));
    strbuf_finish(&text);
    say(ui, TONE_NOTE, "/help for commands, Esc stops, Ctrl-D leaves");
    if (c->model->template && !template_info(c->model->template)->is_chat)
        say(ui, TONE_WARNING, "base model: plain text completion, not chat");
    if (c->transcript.now.n > 0)
        say_taken_up(ui, &c->transcript.now);
}

static bool wants_stats(const struct ui *ui)
{
    const struct options *o = ui->options;
    return !options_flag(o, "quiet") && (!options_given(o, "stats") || options_flag(o, "stats"));
}

struct answer_mark terminal_printed(const struct ui *ui)
{
    struct answer_mark mark = ui->terminal->printed;
    mark.n_shown = size_max(mark.n_shown, ui->chat->turn.n_shown_before);
    return mark;
}

void terminal_say_end(struct ui *ui, const struct turn *turn, terminal_say_fn say_it)
{
    struct strbuf text = {0};
    const char *notice = turn_end_notice(turn);
    if (notice)
        say_it(ui, turn->finish == FINISH_DEGENERATE ? TONE_WARNING : TONE_NOTE, bn_str_of(notice));
    /* One column is spared, as it is where rows are broken between words. */
    const size_t columns = size_max(tty_size(STDOUT_FILENO).columns, 2) - 1;
    if (turn->n_alts > 0) {
        turn_probs_table(ui->chat->model->tokenizer, turn, columns, &text);
        say_it(ui, TONE_NOTE, strbuf_str(&text));
        strbuf_cut(&text, 0);
    }
    if (wants_stats(ui)) {
        const struct turn_space space = {ui->chat->n_used, chat_n_ctx(ui->chat), columns};
        turn_stats_line(turn, &space, &text);
        say_it(ui, TONE_NOTE, strbuf_str(&text));
    }
    strbuf_finish(&text);
}

void terminal_fail(struct ui *ui, const struct bn_error *err)
{
    say(ui, TONE_ERROR, err->text);
    const char *notice = turn_fail_notice(err, ui->chat->store->last_path);
    if (notice)
        say(ui, TONE_NOTE, notice);
}

/* ---- options ---- */

bool terminal_wants_looks(const struct ui *ui)
{
    const char *when = options_text(ui->options, "color");
    const char *force = env_get(ENV_CLICOLOR_FORCE);
    if (strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0;
    return (force && strcmp(force, "0") != 0) || !env_get(ENV_NO_COLOR);
}

enum flow_wrap terminal_wrap(const struct ui *ui)
{
    return options_flag(ui->options, "wrap") && !options_flag(ui->options, "plain") ? FLOW_WRAP
                                                                                    : FLOW_NO_WRAP;
}

bool terminal_is_silent(const struct ui *ui, enum ui_tone tone)
{
    return (tone == TONE_NOTE || tone == TONE_WARNING) && options_flag(ui->options, "quiet");
}

/* ---- keys and the editor ---- */

size_t terminal_read_keys(struct ui *ui)
{
    size_t n_read;
    if (!key_queue_read(&ui->terminal->keys, &n_read))
        ui->terminal->is_hung_up = true;
    return n_read;
}

enum line_result terminal_feed(struct ui *ui, size_t n_keys, size_t *n_used)
{
    struct key_queue *q = &ui->terminal->keys;
    const enum line_result result = line_feed(strbuf_text(&q->bytes), n_keys, n_used);
    strbuf_drop(&q->bytes, *n_used);
    if (result == LINE_EDITING && *n_used < n_keys && key_queue_waited(q) > KEY_PASTE_SECONDS)
        strbuf_add_text(&q->bytes, TERM_PASTE_END); /* the rest of this paste was lost */
    return result;
}

static void add_entry(void *ud, const char *entry)
{
    (void)ud; /* there is one editor */
    line_add_history(entry);
}

/* ---- what the editor needs ---- */

static void complete(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out)
{
    const struct terminal_chat *t = ((const struct ui *)ud)->terminal;
    t->complete(t->complete_ud, before, word, out);
}

static void suspend(void *ud)
{
    struct ui *ui = ud;
    ui->ops->suspend(ui);
}

static void resume(void *ud)
{
    struct ui *ui = ud;
    ui->ops->resume(ui);
}

static void editor_failed(void *ud, const char *why)
{
    say(ud, TONE_ERROR, why);
}

void terminal_begin(struct ui *ui)
{
    const struct line_host host = {.ud = ui,
                                   .complete = complete,
                                   .suspend = suspend,
                                   .resume = resume,
                                   .failed = editor_failed};
    struct bn_error no_history;
    if (!line_open(PROGRAM, &host))
        return;
    say_banner(ui);
    if (!history_load(&ui->terminal->history, add_entry, NULL, &no_history))
        say(ui, TONE_WARNING, no_history.text);
}

void terminal_finish(enum ui_close how)
{
    if (how == UI_CLOSE_CHANGE)
        line_leave();
    else
        line_close();
}

void terminal_line_event(struct ui *ui, struct ui_event *event)
{
    struct terminal_chat *t = ui->terminal;
    struct bn_error err;
    bool kept;
    strbuf_cut(&t->line, 0);
    line_text(&t->line);
    if (!history_add(&t->history, strbuf_str(&t->line), &kept, &err)) {
        t->history.path[0] = 0; /* one warning is enough */
        ui_notice(ui, TONE_WARNING, "%s; what you type is no longer kept", err.text);
    }
    if (kept)
        line_add_history(strbuf_text(&t->line));
    *event = (struct ui_event){.kind = UI_LINE, .text = strbuf_str(&t->line)};
}

void terminal_entry_done(struct ui *ui, enum entry entry)
{
    /* A message that was not sent goes back into the editor, and so does a mistyped command, unless
     * the user is typing already. A command that was refused does not: Up recalls it. */
    if (entry == ENTRY_UNSENT || (entry == ENTRY_UNKNOWN && ui->terminal->keys.bytes.n_bytes == 0))
        line_restore();
}

void terminal_edit(struct ui *ui, struct bn_str text)
{
    struct strbuf last = {0};
    (void)ui; /* there is one editor */
    line_text(&last);
    if (last.n_bytes > 0 && bn_str_equal(strbuf_str(&last), text))
        line_restore(); /* with its long pastes still short */
    else
        line_set(text);
    strbuf_finish(&last);
}

void terminal_chat_finish(struct terminal_chat *t)
{
    strbuf_finish(&t->keys.bytes);
    strbuf_finish(&t->line);
    history_finish(&t->history);
}
