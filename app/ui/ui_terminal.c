/*
 * State and text shared by the painters of a terminal: see ui_terminal.h.
 */
#include "app/ui/ui_terminal.h"

#include "app/chat/model_sheet.h"
#include "app/chat/turn_report.h"
#include "app/common/env.h"
#include "app/common/file/paths.h"
#include "app/common/input_text.h"
#include "app/common/report.h"
#include "app/common/term_text.h"
#include "app/options/chat_options.h"
#include "app/terminal/term_keys.h"
#include "app/terminal/tty.h"
#include "app/ui/ui_unsent.h"
#include "engine/base/size.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- status row ---- */

/* The given options of --temp and --seed, as "temp 0.2 seed 7". */
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

/* A message that is entered while the model loads waits until it is loaded (is_waiting). */
static const char *hint_of(const struct ui *ui)
{
    if (!chat_is_busy(ui->chat))
        return "";
    return ui->chat->is_waiting ? "your message waits, Esc takes it back" : "Esc stops";
}

int ui_terminal_fullness(const struct ui *ui)
{
    struct status s = {0};
    chat_status(ui->chat, &s);
    return status_fullness(&s);
}

void ui_terminal_status(const struct ui *ui, size_t width, char *out, size_t out_bytes)
{
    char settings[80];
    const struct bn_model_info *info = worker_info(ui->chat->worker);
    struct status s = {.model = ui->chat->model->name,
                       .device = info ? info->device : NULL,
                       .settings = settings,
                       .hint = hint_of(ui)};
    settings_text(ui, settings, sizeof(settings));
    chat_status(ui->chat, &s);
    status_format(&s, width, out, out_bytes);
}

/* ---- notices ---- */

static void show_text(struct ui *ui, enum ui_tone tone, const char *text)
{
    ui->ops->notice(ui, tone, bn_str_of(text));
}

static void show_resumed(struct ui *ui, const struct transcript_state *s)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "continuing a chat of %zu turn%s (/history shows them), the last: ", s->n,
                s->n == 1 ? "" : "s");
    term_text_brief(exchange_typed(s->items[s->n - 1]), 40, &text); /* at most 40 columns */
    show_text(ui, TONE_NOTE, strbuf_text(&text));
    strbuf_finish(&text);
    if (s->items[s->n - 1]->answer.finish == FINISH_NONE)
        show_text(ui, TONE_NOTE, "the last question has no answer yet; /retry answers it");
}

/* Whether the notes, which are printed after the banner, say that this is a base model. */
static bool has_base_model_note(const struct bn_notes *notes)
{
    for (size_t i = 0; i < notes->n; i++)
        if (strcmp(notes->items[i].id, "base-model") == 0)
            return true;
    return false;
}

static void show_banner(struct ui *ui)
{
    const struct chat *c = ui->chat;
    struct strbuf text = {0};
    char size[REPORT_SIZE_BYTES];
    report_size(bn_file_bytes(c->model->file), size);
    strbuf_addf(&text, "%s %s, %s, %s", PROGRAM, report_version(), c->model->name, size);
    show_text(ui, TONE_NOTE, strbuf_text(&text));
    strbuf_cut(&text, 0);
    model_sheet_repairs(&c->model->notes, &text);
    if (text.n_bytes > 0)
        ui_notice(ui, TONE_NOTE, "repaired in memory: %s", strbuf_text(&text));
    strbuf_finish(&text);
    show_text(ui, TONE_NOTE, "/help for commands, Esc stops, Ctrl-D leaves");
    if (c->model->template && !template_info(c->model->template)->is_chat &&
        !has_base_model_note(&c->model->notes))
        show_text(ui, TONE_WARNING, "base model: plain text completion, not chat");
    if (c->transcript.now.n > 0)
        show_resumed(ui, &c->transcript.now);
}

/* At a terminal, statistics are shown unless --no-stats or --quiet is given. */
static bool shows_stats(const struct ui *ui)
{
    const struct options *o = ui->options;
    return !options_flag(o, "quiet") && (!options_given(o, "stats") || options_flag(o, "stats"));
}

/* Call `add` with the first n_printed bytes of a text and with the other bytes. */
static void resume_part(struct ui *ui, enum answer_part part, struct bn_str text, size_t n_printed,
                        ui_terminal_add_fn add)
{
    n_printed = size_min(n_printed, text.n_bytes);
    add(ui, part, (struct bn_str){text.ptr, n_printed},
        (struct bn_str){text.ptr + n_printed, text.n_bytes - n_printed});
}

void ui_terminal_resume_answer(struct ui *ui, ui_terminal_add_fn add)
{
    const struct turn *turn = &ui->chat->turn;
    struct answer_position printed = ui->terminal->printed; /* turn_begin sets it to 0 */
    /* After /continue, the earlier part of the answer is not printed again: an earlier turn has
     * printed it, or it was read from a saved chat, whose answers are not printed. */
    printed.n_shown = size_max(printed.n_shown, turn->n_shown_before);
    printed.n_thought = size_max(printed.n_thought, turn->n_thought_before);
    ui->terminal->is_resuming = true; /* the earlier part of the answer follows below */
    ui->ops->turn_begin(ui);
    ui->terminal->is_resuming = false;
    ui->terminal->printed = printed;
    resume_part(ui, PART_THOUGHT, strbuf_str(&turn->thought), printed.n_thought, add);
    resume_part(ui, PART_ANSWER, strbuf_str(&turn->shown), printed.n_shown, add);
}

void ui_terminal_note_fullness(struct ui *ui)
{
    const int now = ui_terminal_fullness(ui);
    if (now < ui->terminal->fullness)
        ui->terminal->fullness = now;
}

void ui_terminal_show_fullness(struct ui *ui, const struct turn *turn, ui_show_fn show)
{
    const struct chat *c = ui->chat;
    struct strbuf text = {0};
    const int before = ui->terminal->fullness;
    ui->terminal->fullness = ui_terminal_fullness(ui);
    if (ui->terminal->fullness <= before || ui_is_hidden(ui, TONE_WARNING) ||
        turn->finish == FINISH_CONTEXT) /* turn_end_notice says it */
        return;
    strbuf_addf(&text, "the context is %zu %% full%s", 100 * c->n_used / chat_n_ctx(c),
                chat_overflow(c) == OVERFLOW_STOP
                    ? "; /forget and /clear free space"
                    : "; when it is full, the oldest turns are dropped (/context)");
    show(ui, TONE_WARNING, strbuf_str(&text));
    strbuf_finish(&text);
}

/* ---- the end of a turn ---- */

void ui_terminal_show_end(struct ui *ui, const struct turn *turn, ui_show_fn show)
{
    struct strbuf text = {0};
    const char *notice = turn_end_notice(turn);
    if (notice)
        show(ui, turn->finish == FINISH_DEGENERATE ? TONE_WARNING : TONE_NOTE, bn_str_of(notice));
    /* One column stays free, as in flow.c: terminals differ in the width of some characters. */
    const size_t columns = tty_safe_columns(tty_size(STDOUT_FILENO));
    if (turn->n_alt_tokens > 0) {
        turn_probs_table(ui->chat->model->tokenizer, turn, columns, &text);
        show(ui, TONE_NOTE, strbuf_str(&text));
        strbuf_cut(&text, 0);
    }
    if (shows_stats(ui) && turn->result.n_prompt > 0) { /* 0: the message waited for the model */
        const struct turn_space space = {ui->chat->n_used, chat_n_ctx(ui->chat), columns};
        turn_stats_line(turn, &space, &text);
        show(ui, TONE_NOTE, strbuf_str(&text));
    }
    strbuf_finish(&text);
    ui_unsent_show_late(ui, show);
}

void ui_terminal_show_failure(struct ui *ui, const struct bn_error *err)
{
    ui_unsent_show_late(ui, ui->ops->notice);
    ui_terminal_unqueue_all(ui); /* the lines may refer to the answer that failed */
    show_text(ui, TONE_ERROR, err->text);
    const char *notice = turn_fail_notice(&ui->chat->turn, err, store_main_path(ui->chat->store));
    if (notice)
        show_text(ui, TONE_NOTE, notice);
}

/* ---- options ---- */

bool ui_terminal_uses_colour(const struct ui *ui)
{
    const char *when = options_text(ui->options, "color");
    /* CLICOLOR_FORCE and NO_COLOR are conventions of many programs. */
    const char *force = env_get(ENV_CLICOLOR_FORCE);
    if (strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0;
    return (force && strcmp(force, "0") != 0) || !env_get(ENV_NO_COLOR);
}

enum flow_wrap ui_terminal_wrap(const struct ui *ui)
{
    return options_flag(ui->options, "wrap") && !options_flag(ui->options, "plain") ? FLOW_WRAP
                                                                                    : FLOW_NO_WRAP;
}

/* ---- keys and the editor ---- */

size_t ui_terminal_read_keys(struct ui *ui)
{
    size_t n_read;
    if (!key_queue_read(&ui->terminal->keys, &n_read))
        ui->terminal->is_hung_up = true;
    return n_read;
}

bool ui_terminal_filter_keys(struct ui *ui, struct ui_event *event)
{
    struct key_queue *q = &ui->terminal->keys;
    if (chat_is_busy(ui->chat)) {
        *event = (struct ui_event){.kind = UI_STOP};
        return key_queue_filter(q);
    }
    const size_t n_escapes = key_queue_escapes(q);
    if (n_escapes > 0 && key_queue_idle_seconds(q) >= KEY_ESCAPE_SECONDS && !line_uses_escape() &&
        !key_queue_in_paste(q))
        strbuf_cut(&q->bytes, q->bytes.n_bytes - n_escapes);
    return false;
}

size_t ui_terminal_complete_keys(const struct ui *ui)
{
    const struct key_queue *q = &ui->terminal->keys;
    if (key_queue_idle_seconds(q) >= KEY_ESCAPE_SECONDS)
        return q->bytes.n_bytes; /* no further byte of a sequence is expected */
    const size_t n_tail = term_keys_tail(strbuf_text(&q->bytes), q->bytes.n_bytes);
    return q->bytes.n_bytes - size_max(n_tail, key_queue_escapes(q));
}

/* Add the line to the history and return it as a UI_LINE event. */
static void line_event(struct ui *ui, struct ui_event *event)
{
    struct ui_terminal *t = ui->terminal;
    bool is_added;
    t->has_shown_exit = false;
    t->history.is_off = !options_flag(ui->options, "history");
    if (!history_add(&t->history, strbuf_str(&t->line), &is_added, &t->history_error))
        t->history.path[0] = 0; /* one warning is enough; show_history_error shows it */
    if (is_added)
        line_add_history(strbuf_text(&t->displayed));
    *event = (struct ui_event){.kind = UI_LINE, .text = strbuf_str(&t->line)};
}

/* Set t->line and t->displayed for a UI_LINE event. `displayed` may be t->displayed itself. False:
 * out of memory; the line is in the editor again. */
static bool set_line(struct ui *ui, struct bn_str displayed)
{
    struct ui_terminal *t = ui->terminal;
    strbuf_cut(&t->line, 0);
    line_expand(displayed, &t->line);
    if (displayed.ptr != t->displayed.ptr) {
        strbuf_cut(&t->displayed, 0);
        strbuf_add_str(&t->displayed, displayed);
    }
    if (!t->line.failed && !t->displayed.failed)
        return true;
    line_put_back(displayed);
    show_text(ui, TONE_ERROR, "out of memory; the line was not sent");
    return false;
}

/* Handle the finished line of the editor. True: *event is set. False: the line was queued, put back
 * into the editor (out of memory), or blank during an answer. */
static bool finish_line(struct ui *ui, ui_terminal_entered_fn entered, struct ui_event *event)
{
    struct ui_terminal *t = ui->terminal;
    const struct bn_str displayed = line_displayed_text();
    const bool busy = chat_is_busy(ui->chat);
    if (busy && input_is_blank(displayed))
        return false;
    if (busy) {
        struct strbuf text = {0};
        line_expand(displayed, &text);
        const bool now = t->runs_now(t->callback_ud, strbuf_str(&text));
        strbuf_finish(&text);
        if (!now) {
            if (!entry_queue_add(&t->queue, displayed))
                line_put_back(displayed);
            return false;
        }
    }
    if (!set_line(ui, displayed))
        return false;
    entered(ui, displayed);
    line_event(ui, event);
    return true;
}

enum ui_terminal_fed ui_terminal_feed(struct ui *ui, size_t n_keys, ui_terminal_entered_fn entered,
                                      struct ui_event *event)
{
    struct key_queue *q = &ui->terminal->keys;
    size_t n_used;
    const enum line_result result = line_feed(strbuf_text(&q->bytes), n_keys, &n_used);
    strbuf_drop(&q->bytes, n_used);
    if (result == LINE_END) {
        *event = (struct ui_event){.kind = UI_END, .code = EXIT_DONE};
        return TERMINAL_EVENT;
    }
    if (result == LINE_DONE)
        return finish_line(ui, entered, event) ? TERMINAL_EVENT : TERMINAL_FED_ALL;
    if (n_used == n_keys)
        return TERMINAL_FED_ALL;
    /* The editor uses a paste only with its end mark, so a paste is incomplete. */
    if (key_queue_idle_seconds(q) <= KEY_PASTE_SECONDS)
        return TERMINAL_WAITS;
    strbuf_add_text(&q->bytes, TERM_PASTE_END); /* the end mark was lost: end the paste here */
    return TERMINAL_FED_ALL;
}

bool ui_terminal_next_queued(struct ui *ui, ui_terminal_entered_fn entered, struct ui_event *event)
{
    struct ui_terminal *t = ui->terminal;
    if (chat_is_busy(ui->chat) || t->queue.n == 0)
        return false;
    (void)entry_queue_take_first(&t->queue, &t->displayed); /* the queue is not empty */
    if (!set_line(ui, strbuf_str(&t->displayed)))
        return false;
    entered(ui, strbuf_str(&t->displayed));
    line_event(ui, event);
    return true;
}

void ui_terminal_choices(char **words, int n_words, int longest, size_t columns, struct strbuf *out)
{
    const size_t width = size_min((size_t)longest + 2, columns); /* with two blanks after a word */
    const size_t n_columns = columns / (width > 0 ? width : 1);
    for (int i = 1; i <= n_words; i++) {
        struct strbuf word = {0};
        const char *name = path_name(words[i]);
        const bool is_path = name > words[i] + 1 && name[0]; /* no command such as /help */
        term_text_brief(bn_str_of(is_path ? name : words[i]), width, &word);
        strbuf_add_str(out, strbuf_str(&word));
        const size_t n = term_text_width(strbuf_str(&word));
        const bool ends = i == n_words || (n_columns > 0 && (size_t)i % n_columns == 0);
        for (size_t k = n; k < width && !ends; k++)
            strbuf_add_char(out, ' ');
        if (ends)
            strbuf_add_char(out, '\n');
        strbuf_finish(&word);
    }
}

static void add_entry(void *ud, const char *entry)
{
    (void)ud; /* the only editor needs no argument */
    line_add_history(entry);
}

/* ---- callbacks of the editor ---- */

static void complete(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out)
{
    const struct ui_terminal *t = ((const struct ui *)ud)->terminal;
    t->complete(t->callback_ud, before, word, out);
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

static bool unqueue_last(void *ud, struct strbuf *out)
{
    struct ui *ui = ud;
    return entry_queue_take_last(&ui->terminal->queue, out);
}

static void editor_failed(void *ud, const char *why)
{
    show_text(ud, TONE_ERROR, why);
}

void ui_terminal_begin(struct ui *ui)
{
    const struct line_host host = {.ud = ui,
                                   .complete = complete,
                                   .suspend = suspend,
                                   .resume = resume,
                                   .unqueue_last = unqueue_last,
                                   .failed = editor_failed};
    struct bn_error no_history;
    if (!line_open(PROGRAM, &host))
        return; /* another painter has called this function before */
    show_banner(ui);
    if (options_flag(ui->options, "history") &&
        !history_load(&ui->terminal->history, add_entry, NULL, &no_history)) {
        ui->terminal->history.path[0] = 0; /* one warning is enough */
        show_text(ui, TONE_WARNING, no_history.text);
    }
}

void ui_terminal_end(enum ui_close how)
{
    if (how == UI_CLOSE_CHANGE)
        line_stop();
    else
        line_close();
}

void ui_terminal_unqueue_all(struct ui *ui)
{
    struct entry_queue *q = &ui->terminal->queue;
    const struct exchange *last = transcript_last(&ui->chat->transcript);
    /* Before the first token, a question that is stopped or fails returns to the editor itself,
     * but a question of /retry or /continue stays with its earlier answer. */
    const bool keeps_answer = chat_is_busy(ui->chat) && last && last->answer.finish != FINISH_NONE;
    if (q->n == 1 && line_is_empty() && (ui->chat->turn.n_tokens > 0 || keeps_answer))
        line_put_back(strbuf_str(&q->items[0]));
    else if (chat_is_busy(ui->chat))
        ui_unsent_recall_late(ui->terminal, q);
    else
        ui_unsent_recall(ui, q);
    entry_queue_finish(q);
}

/* Show why the history file cannot be written. In a read-only home, last.json in the same directory
 * cannot be written either. Then the warning about last.json is enough, or the one about the named
 * chat, which is shown in its place. So wait until the program has tried to write the chat. */
static void show_history_error(struct ui *ui)
{
    struct ui_terminal *t = ui->terminal;
    const struct store *s = ui->chat->store;
    if (t->history_error.code == BN_OK ||
        (s->last.path[0] && ui->chat->transcript.now.n == 0)) /* it was not written yet */
        return;
    const bool is_last_written = store_has(&s->last, transcript_saved(&ui->chat->transcript));
    if (!s->has_warned_last && (!s->has_warned_named || is_last_written))
        ui_notice(ui, TONE_WARNING, "%s; new input is not added to the history file",
                  t->history_error.text);
    t->history_error = (struct bn_error){0};
}

void ui_terminal_entry_done(struct ui *ui, enum entry_result entry)
{
    struct ui_terminal *t = ui->terminal;
    show_history_error(ui);
    /* A message that was not sent returns to the editor. An unknown command does so too, unless the
     * user has typed other text since. A command that failed does not return: Up recalls it. */
    const bool is_typing = t->keys.bytes.n_bytes > 0 || t->queue.n > 0 || !line_is_empty();
    if (entry == ENTRY_UNSENT) {
        if (ui_unsent_put_back(ui, strbuf_str(&t->displayed)))
            ui_note_returned(ui);
        ui_unsent_recall(ui, &t->queue);
        entry_queue_finish(&t->queue);
    } else if (entry == ENTRY_UNKNOWN && !is_typing) {
        line_put_back(strbuf_str(&t->displayed));
    }
}

bool ui_terminal_edit(struct ui *ui, struct bn_str text)
{
    const struct ui_terminal *t = ui->terminal;
    /* If `text` is the last line, insert it with its placeholders for long pastes. */
    const bool is_last = bn_str_equal(strbuf_str(&t->line), text);
    return ui_unsent_put_back(ui, is_last ? strbuf_str(&t->displayed) : text);
}

void ui_terminal_skip_earlier(struct ui *ui,
                              void (*skip)(struct ui *, enum answer_part, struct bn_str))
{
    const struct turn *turn = &ui->chat->turn;
    if (ui->terminal->is_resuming)
        return;
    if (options_flag(ui->options, "thoughts"))
        skip(ui, PART_THOUGHT, (struct bn_str){turn->thought.ptr, turn->n_thought_before});
    skip(ui, PART_ANSWER, (struct bn_str){turn->shown.ptr, turn->n_shown_before});
}

void ui_terminal_interrupt(struct ui *ui)
{
    const bool has_lines = ui->terminal->queue.n > 0;
    strbuf_cut(&ui->terminal->keys.bytes, 0);
    ui_terminal_unqueue_all(ui);
    if (has_lines || line_clear() || ui->terminal->has_shown_exit)
        return;
    ui->terminal->has_shown_exit = true;
    show_text(ui, TONE_PLAIN, "Ctrl-D or /quit leaves");
}

bool ui_terminal_wants_input(const struct ui *ui)
{
    /* Type-ahead and Esc are always possible. A terminal that is gone is always readable, so
     * polling it would keep a core busy. */
    return !ui->terminal->is_hung_up;
}

void ui_terminal_token(struct ui *ui, const struct turn *turn)
{
    (void)ui; /* ops->tick updates the status row */
    (void)turn;
}

void ui_terminal_finish(struct ui_terminal *t)
{
    strbuf_finish(&t->keys.bytes);
    strbuf_finish(&t->line);
    strbuf_finish(&t->displayed);
    entry_queue_finish(&t->queue);
    entry_queue_finish(&t->unsent);
    history_finish(&t->history);
}
