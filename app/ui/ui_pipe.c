/*
 * Output of the painter for pipes and scripts: see ui_pipe.h.
 *
 * With PIPE_TEXT, the answer is cleaned and its lines are broken between words if stdout is a
 * terminal. Otherwise its bytes are written unchanged. JSON needs valid UTF-8, so json_out_text
 * replaces invalid bytes.
 */
#include "app/ui/ui_pipe_state.h"

#include "app/chat/turn_json.h"
#include "app/chat/turn_report.h"
#include "app/common/term_text.h"
#include "app/options/chat_options.h"
#include "app/terminal/signals.h"
#include "app/terminal/text/status.h"
#include "app/terminal/tty.h"
#include "app/ui/ui_terminal.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define ROW_SECONDS 0.1  /* between updates of the progress row on stderr */
#define PROBS_COLUMNS 80 /* of the /probs table, so that a script has the same output everywhere */

static struct pipe_ui *self(const struct ui *ui)
{
    return ui->state;
}

bool ui_pipe_plan(struct ui *ui, const struct pipe_plan *plan, struct bn_error *err)
{
    struct pipe_ui *p = mem_alloc(1, sizeof(*p));
    if (!p)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    p->plan = *plan;
    ui->state = p;
    return true;
}

static bool pipe_open(struct ui *ui, struct bn_error *err)
{
    struct pipe_ui *p = self(ui);
    (void)err;
    p->opened = clock_seconds();
    p->out_is_tty = isatty(STDOUT_FILENO);
    p->err_is_tty = isatty(STDERR_FILENO);
    p->row_allowed =
        p->err_is_tty && !options_flag(ui->options, "quiet") && !options_flag(ui->options, "plain");
    p->at_end = p->plan.kind == PIPE_INFO || p->plan.kind == PIPE_EXPLAIN ||
                (p->plan.kind == PIPE_ONCE && p->plan.stdin_use == PIPE_STDIN_UNUSED);
    return true;
}

/* ---- stderr ---- */

/* Begin a new row after the prompt, whose line the user has not ended. next_event shows the prompt
 * again, below what is written now. */
static void leave_prompt(struct pipe_ui *p)
{
    if (p->has_shown_prompt)
        fputc('\n', stderr);
    p->has_shown_prompt = false;
}

static void pipe_close(struct ui *ui, enum ui_close how)
{
    struct pipe_ui *p = self(ui);
    (void)how; /* no other painter follows */
    if (!p)
        return;
    report_progress_erase();
    leave_prompt(p); /* the next text on the screen is the prompt of the shell */
    flow_finish(&p->answer);
    flow_finish(&p->thought);
    strbuf_finish(&p->line);
    strbuf_finish(&p->plan.files);
    strbuf_finish(&p->plan.only_file);
    strbuf_finish(&p->plan.prompt);
    strbuf_finish(&p->in);
    strbuf_finish(&p->buffered);
    mem_free(p);
    ui->state = NULL;
}

static void pipe_notice(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    static const char *const labels[] = {
        [TONE_PLAIN] = "",           [TONE_TABLE] = "",
        [TONE_EXACT] = "",           [TONE_USER] = "",
        [TONE_NOTE] = PROGRAM ": ",  [TONE_WARNING] = PROGRAM ": warning: ",
        [TONE_ERROR] = PROGRAM ": ",
    };
    struct pipe_ui *p = self(ui);
    if (ui_is_hidden(ui, tone))
        return;
    report_progress_erase();
    leave_prompt(p);
    const bool wraps = tone != TONE_EXACT && ui_terminal_wrap(ui) == FLOW_WRAP;
    report_notice(labels[tone], text, TERM_KEEP_LINES, wraps ? REPORT_WRAP : REPORT_NO_WRAP);
}

static int pipe_tick(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    struct status s = {0};
    char row[100]; /* a longer status is cut */
    const bool is_waiting_for_stdin =
        p->plan.kind == PIPE_ONCE && !p->has_sent_prompt && !p->at_end;
    /* next_once has a time limit for the first byte, so the loop must run again: after 100 ms. */
    const int wait = is_waiting_for_stdin && p->plan.stdin_use == PIPE_STDIN_IF_ANY ? 100 : -1;
    /* The row would end up behind a thought on stderr, or behind the answer at a terminal. */
    if (!p->row_allowed || !chat_is_busy(ui->chat) || p->in_thought ||
        (p->out_is_tty && ui->chat->phase == CHAT_GENERATING))
        return wait;
    const double now = clock_seconds();
    if (now - p->row_painted < ROW_SECONDS)
        return (int)(ROW_SECONDS * 1000);
    p->row_painted = now;
    chat_status(ui->chat, &s);
    if (p->plan.kind != PIPE_INTERACTIVE)
        s.unsaved = false; /* nobody is there to type /save */
    status_format(&s, size_min(tty_size(STDERR_FILENO).columns - 1, sizeof(row) - 1), row,
                  sizeof(row));
    report_progress("%s", row);
    return (int)(ROW_SECONDS * 1000);
}

/* ---- stdout ---- */

/* A signal that ends the program may have interrupted the write because nobody reads the output.
 * Then the program ends with the code of the signal, without a message. */
static enum exit_code write_failure_code(void)
{
    const int error = errno;
    const enum exit_code code = error == EINTR ? signals_exit_code(signals_raised()) : EXIT_DONE;
    return code != EXIT_DONE ? code
                             : report_fail(PROGRAM, EXIT_FILE,
                                           "cannot write to standard output: %s", strerror(error));
}

static void fail_write(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    if (p->aborts)
        return; /* reported already */
    p->code = write_failure_code();
    p->aborts = true;
    report_drop_output();
}

/* Write text to stdout unchanged. After a failure nothing more is written. */
static void put(struct ui *ui, struct bn_str text)
{
    if (self(ui)->aborts)
        return;
    report_progress_erase();
    if (fwrite(text.ptr, 1, text.n_bytes, stdout) != text.n_bytes || fflush(stdout) != 0)
        fail_write(ui);
}

void pipe_put_json(struct ui *ui, json_t *object)
{
    struct bn_error err = {0};
    if (self(ui)->aborts) {
        json_decref(object);
        return;
    }
    report_progress_erase();
    if (json_out_write(object, stdout, JSON_OUT_LINE, &err) && fflush(stdout) == 0)
        return;
    if (err.code == BN_ENOMEM)
        pipe_end(self(ui), report_error(PROGRAM, STAGE_RUN, &err));
    else
        fail_write(ui);
}

/* With --jsonl, write the event "start" with the number of the turn, from 1, unless it was written
 * already. */
static void put_start(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    if (p->plan.output != PIPE_JSONL || p->has_begun)
        return;
    p->has_begun = true;
    pipe_put_json(
        ui, json_pack("{s:s, s:I}", "event", "start", "turn", (json_int_t)p->n_turns_written + 1));
}

/* Write the last object of a turn: with --jsonl it is the event "end". */
static void put_end(struct ui *ui, json_t *object)
{
    struct pipe_ui *p = self(ui);
    put_start(ui);
    if (p->plan.output == PIPE_JSONL)
        json_out_put(&object, "event", json_string("end"));
    p->has_begun = false;
    p->n_turns_written++;
    pipe_put_json(ui, object);
}

/* Write the empty line between two answers. */
static void put_separator(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    if (!p->is_separated && p->n_turns_written > 0 && p->plan.kind != PIPE_INTERACTIVE)
        put(ui, bn_str_of("\n"));
    p->is_separated = true;
}

/* For ui_terminal_skip_earlier. */
static void skip_part(struct ui *ui, enum answer_part part, struct bn_str text)
{
    struct pipe_ui *p = self(ui);
    flow_skip(part == PART_THOUGHT ? &p->thought : &p->answer, text);
}

static void pipe_turn_begin(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    strbuf_cut(&p->buffered, 0);
    p->in_thought = false;
    flow_init(&p->answer, tty_size(STDOUT_FILENO).columns, ui_terminal_wrap(ui), FLOW_ANSWER, NULL);
    flow_init(&p->thought, tty_size(STDERR_FILENO).columns, ui_terminal_wrap(ui), FLOW_THOUGHT,
              NULL);
    ui_terminal_skip_earlier(ui, skip_part);
    if (p->plan.output == PIPE_JSONL) {
        if (ui->chat->phase != CHAT_LOADING) /* else at the first token: loading may fail */
            put_start(ui);
    } else if (p->plan.output == PIPE_TEXT) {
        put_separator(ui);
    }
}

void pipe_put_text(struct ui *ui, struct bn_str text)
{
    struct pipe_ui *p = self(ui);
    struct strbuf clean = {0};
    if (!p->out_is_tty) {
        put(ui, text);
        return;
    }
    term_text_clean(text, TERM_KEEP_LINES, &clean);
    put(ui, strbuf_str(&clean));
    strbuf_finish(&clean);
}

static void put_thought(struct ui *ui, struct bn_str text)
{
    struct pipe_ui *p = self(ui);
    if (options_flag(ui->options, "quiet") || !options_flag(ui->options, "thoughts"))
        return;
    report_progress_erase();
    p->in_thought = true;
    if (!p->err_is_tty) {
        report_text(stderr, text, TERM_KEEP_LINES);
        return;
    }
    struct strbuf rows = {0};
    p->thought.columns = tty_size(STDERR_FILENO).columns; /* as in put_answer */
    flow_add(&p->thought, text, &rows);
    fputs(strbuf_text(&rows), stderr);
    strbuf_finish(&rows);
}

/* Other text on standard error begins a line of its own, also if the answer ends in its thought. */
static void end_thought(struct pipe_ui *p)
{
    if (!p->in_thought)
        return;
    struct strbuf rest = {0};
    flow_flush(&p->thought, &rest);
    flow_begin_row(&p->thought);
    fprintf(stderr, "%s\n", strbuf_text(&rest));
    strbuf_finish(&rest);
    p->in_thought = false;
}

/* Write a part of the answer. */
static void put_answer(struct ui *ui, struct bn_str text)
{
    struct pipe_ui *p = self(ui);
    if (!p->out_is_tty) {
        put(ui, text);
        return;
    }
    struct strbuf rows = {0};
    p->answer.columns = tty_size(STDOUT_FILENO).columns; /* the user may have changed the width */
    flow_add(&p->answer, text, &rows);
    put(ui, strbuf_str(&rows));
    strbuf_finish(&rows);
}

/* Write the rest of an answer and its end at once, so that the reader of a pipe sees all of it. */
static void end_answer(struct ui *ui, struct bn_str text)
{
    struct pipe_ui *p = self(ui);
    struct strbuf rest = {0};
    if (p->out_is_tty)
        flow_add(&p->answer, text, &rest);
    else
        strbuf_add_str(&rest, text);
    flow_flush(&p->answer, &rest); /* nothing unless stdout is a terminal */
    strbuf_add_char(&rest, '\n');
    put(ui, strbuf_str(&rest));
    strbuf_finish(&rest);
}

static void pipe_answer(struct ui *ui, enum answer_part part, struct bn_str text)
{
    struct pipe_ui *p = self(ui);
    if (p->plan.output == PIPE_JSONL) {
        put_start(ui);
        pipe_put_json(ui,
                      json_pack("{s:s, s:o}", "event", "token",
                                part == PART_THOUGHT ? "thought" : "text", json_out_text(text)));
    } else if (p->plan.output == PIPE_JSON) {
        return; /* pipe_turn_end writes the whole answer */
    } else if (part == PART_THOUGHT) {
        put_thought(ui, text);
    } else {
        end_thought(p);
        if (options_flag(ui->options, "stream"))
            put_answer(ui, text);
        else
            strbuf_add_str(&p->buffered, text);
    }
}

static void pipe_token(struct ui *ui, const struct turn *turn)
{
    (void)ui; /* pipe_tick updates the progress row */
    (void)turn;
}

static const char *model_name(const struct ui *ui)
{
    const struct bn_model_info *info = worker_info(ui->chat->worker);
    return info ? info->name : "";
}

/* Without --stats or --no-stats, statistics are printed only with PIPE_INTERACTIVE. */
static void print_stats(struct ui *ui, const struct turn *turn)
{
    const struct options *o = ui->options;
    const bool wanted = options_given(o, "stats") ? options_flag(o, "stats")
                                                  : self(ui)->plan.kind == PIPE_INTERACTIVE;
    struct strbuf line = {0};
    if (!wanted || options_flag(o, "quiet"))
        return;
    report_progress_erase();
    const struct turn_space space = {ui->chat->n_used, chat_n_ctx(ui->chat), SIZE_MAX};
    turn_stats_line(turn, &space, &line);
    fprintf(stderr, "%s\n", strbuf_text(&line));
    strbuf_finish(&line);
}

/* The table of the command /probs, which only PIPE_SCRIPT and PIPE_INTERACTIVE can run. In JSON the
 * alternatives are part of the object, as with --logprobs. */
static void print_probs(struct ui *ui, const struct turn *turn)
{
    const struct pipe_plan *plan = &self(ui)->plan;
    struct strbuf table = {0};
    if (plan->output != PIPE_TEXT || turn->n_alts == 0 ||
        (plan->kind != PIPE_SCRIPT && plan->kind != PIPE_INTERACTIVE))
        return;
    turn_probs_table(ui->chat->model->tokenizer, turn, PROBS_COLUMNS, &table);
    if (table.n_bytes > 0) {
        strbuf_cut(&table, table.n_bytes - 1); /* without the last newline */
        pipe_notice(ui, TONE_EXACT, strbuf_str(&table));
    }
    strbuf_finish(&table);
}

static void pipe_turn_end(struct ui *ui, const struct turn *turn)
{
    struct pipe_ui *p = self(ui);
    end_thought(p);
    if (p->plan.output != PIPE_TEXT) {
        put_end(ui, turn_json(ui->chat->model->tokenizer, model_name(ui), turn));
    } else {
        p->is_separated = false;
        p->n_turns_written++;
        end_answer(ui, strbuf_str(&p->buffered)); /* empty, unless --no-stream */
    }
    report_progress_erase();
    print_probs(ui, turn);
    /* A script that needs the finish of each answer has --json. But it does not expect an answer
     * that is of no use, or a /continue that adds nothing. */
    const bool is_unexpected = turn->finish == FINISH_DEGENERATE || turn_added_nothing(turn);
    if (is_unexpected || p->plan.kind == PIPE_INTERACTIVE) {
        const char *notice = turn_end_notice(turn);
        if (notice)
            ui_notice(ui, TONE_WARNING, "%s", notice);
    }
    print_stats(ui, turn);
}

void pipe_put_failed(struct ui *ui, const struct bn_error *err)
{
    put_end(ui, json_pack("{s:o}", "error", json_out_text(bn_str_of(err->text))));
}

/* End the part of a failed answer that is on standard output, if there is one. */
static void put_end_of_failed(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    const struct turn *turn = &ui->chat->turn; /* an earlier one, unless this turn has begun */
    if (!p->is_separated || turn->shown.n_bytes <= turn->n_shown_before ||
        !options_flag(ui->options, "stream"))
        return;
    end_answer(ui, (struct bn_str){0});
    p->is_separated = false;
    p->n_turns_written++;
}

static void pipe_turn_failed(struct ui *ui, const struct bn_error *err)
{
    struct pipe_ui *p = self(ui);
    const char *notice = turn_fail_notice(&ui->chat->turn, err, store_main_path(ui->chat->store));
    end_thought(p);
    report_progress_erase();
    struct bn_error shown = *err;
    if (p->plan.output != PIPE_TEXT)
        pipe_put_failed(ui, err);
    else
        put_end_of_failed(ui);
    if (p->plan.kind == PIPE_LINES && p->n_lines > 0) /* with --keep-going, others have answers */
        (void)bn_fail_prefix(&shown, "line %zu", p->line_number);
    pipe_failed(ui, report_error(PROGRAM, STAGE_RUN, &shown));
    if (p->plan.kind == PIPE_INTERACTIVE && notice)
        ui_notice(ui, TONE_NOTE, "%s", notice);
}

static void pipe_interrupt(struct ui *ui)
{
    if (self(ui)->plan.kind != PIPE_INTERACTIVE)
        return;
    self(ui)->has_shown_prompt = false;
    fprintf(stderr, "\nCtrl-D or /quit leaves\n");
}

static void pipe_ignore_text(struct ui *ui, struct bn_str text)
{
    (void)ui; /* messages of the user are not displayed */
    (void)text;
}

static bool pipe_edit(struct ui *ui, struct bn_str text)
{
    (void)ui; /* there is no editor */
    (void)text;
    return false;
}

/* For members of ui_ops without an effect here. */
static void pipe_do_nothing(struct ui *ui)
{
    (void)ui; /* no editor, no terminal mode to change, no stored terminal size */
}

const struct ui_ops ui_pipe_ops = {
    .name = "pipe",
    .open = pipe_open,
    .close = pipe_close,
    .ready = pipe_do_nothing,
    .wants_input = pipe_wants_input,
    .input = pipe_input,
    .next_event = pipe_next_event,
    .entry_done = pipe_entry_done,
    .tick = pipe_tick,
    .resize = pipe_do_nothing,
    .interrupt = pipe_interrupt,
    .unqueue_all = pipe_do_nothing,
    .suspend = pipe_do_nothing,
    .resume = pipe_do_nothing,
    .notice = pipe_notice,
    .show_message = pipe_ignore_text,
    .find = ui_find_nowhere,
    .edit = pipe_edit,
    .turn_begin = pipe_turn_begin,
    .answer = pipe_answer,
    .token = pipe_token,
    .turn_end = pipe_turn_end,
    .turn_failed = pipe_turn_failed,
};
