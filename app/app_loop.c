/*
 * The program's loop: signals, the worker's events, input, repainting; and how it ends.
 */
#include "app/app.h"

#include "app/chat/turn_report.h"
#include "app/terminal/signals.h"
#include "engine/base/clock.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define END_SECONDS 2.0   /* the engine looks at its cancel flag many times in this */
#define ARM_SECONDS 0.5   /* so long a second Ctrl-C is taken for a nervous first one */
#define EVENTS_AT_ONCE 64 /* then keys and signals have their turn */

bool ui_find_nowhere(struct ui *ui, struct pattern *pattern)
{
    (void)ui;
    (void)pattern;
    return false;
}

void ui_notice(struct ui *ui, enum ui_tone tone, const char *fmt, ...)
{
    char text[1000]; /* sentences; longer texts are handed to the painter directly */
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* cut if too long */
    va_end(args);
    ui->ops->notice(ui, tone, bn_str_of(text));
}

void app_leave(struct app *app, enum exit_code code)
{
    if (!app->leaving && !app->ending)
        app->code = code;
    else if (app->code == EXIT_DONE)
        app->code = code;
    app->leaving = true;
}

void app_end(struct app *app, enum exit_code code)
{
    if (app->ending || app->leaving)
        return;
    app->ending = true;
    app->ending_since = clock_seconds();
    app->code = code;
    if (!chat_is_busy(&app->chat) || app->chat.is_waiting)
        app->leaving = true;
    else
        chat_stop(&app->chat);
}

void app_change_ui(struct app *app, const struct ui_ops *ops)
{
    if (ops != app->ui.ops)
        app->next_ui = ops;
}

static void change_ui(struct app *app)
{
    const struct ui_ops *before = app->ui.ops;
    struct bn_error err;
    before->close(&app->ui);
    app->ui.ops = app->next_ui;
    if (!app->ui.ops->open(&app->ui, &err)) {
        app->ui.ops = before;
        struct bn_error no_terminal;
        if (before->open(&app->ui, &no_terminal))
            ui_notice(&app->ui, TONE_WARNING, "%s", err.text);
        else
            app_leave(app, EXIT_HUNG_UP);
    }
    app->next_ui = NULL;
}

void app_tell_notes(struct app *app, const struct bn_notes *notes)
{
    for (size_t i = 0; i < notes->n; i++)
        if (notes->items[i].kind == BN_NOTE_WARNING)
            ui_notice(&app->ui, TONE_WARNING, "%s", notes->items[i].text);
        else if (options_flag(app->options, "verbose"))
            ui_notice(&app->ui, TONE_NOTE, "%s", notes->items[i].text);
}

static void keep_in(struct app *app, const char *path)
{
    struct bn_error err;
    if (!path[0])
        return;
    if (store_write(&app->store, &app->chat.transcript.now, path, &err)) {
        if (path == app->store.session_path)
            app->chat.transcript.unsaved = false;
        return;
    }
    if (!app->store.has_warned) {
        app->store.has_warned = true;
        ui_notice(&app->ui, TONE_WARNING, "%s; the chat goes on unsaved", err.text);
    }
    if (!app->is_interactive && !app->leaving)
        app_leave(app, EXIT_FILE);
}

void app_keep(struct app *app)
{
    keep_in(app, app->store.last_path);
    keep_in(app, app->store.session_path);
}

static void on_interrupt(struct app *app)
{
    if (!app->is_interactive)
        app_end(app, EXIT_INTERRUPT);
    else if (!chat_is_busy(&app->chat))
        app->ui.ops->interrupt(&app->ui);
    else
        chat_stop(&app->chat);
}

static void on_signals(struct app *app)
{
    const unsigned flags = signals_take();
    if (flags & SIGNAL_TERMINATE)
        app_end(app, EXIT_TERMINATED);
    if (flags & SIGNAL_HANGUP)
        app_end(app, EXIT_HUNG_UP);
    if (flags & SIGNAL_INTERRUPT)
        on_interrupt(app);
    if (flags & SIGNAL_SUSPEND) {
        app->ui.ops->suspend(&app->ui);
        signals_stop_self();
    }
    if (flags & (SIGNAL_SUSPEND | SIGNAL_RESUME)) /* without job control nothing was stopped */
        app->ui.ops->resume(&app->ui);
    if (flags & SIGNAL_RESIZE)
        app->ui.ops->resize(&app->ui);
}

/* A stop that the engine does not follow may be forced by a second Ctrl-C. */
static void watch_stop(struct app *app)
{
    const struct chat *c = &app->chat;
    if (!chat_is_busy(c) || !c->turn.is_stopping) {
        app->stopping_since = 0;
        signals_disarm_interrupt();
    } else if (app->stopping_since == 0) {
        app->stopping_since = clock_seconds();
    } else if (clock_seconds() - app->stopping_since > ARM_SECONDS) {
        signals_arm_interrupt();
    }
}

static void log_loaded(struct app *app)
{
    const struct bn_model_info *info = worker_info(app->worker);
    struct strbuf line = {0};
    strbuf_addf(&line, "%s %s: loaded %s, %s, on %s, context %zu, in %.2f s", PROGRAM,
                report_version(), app->model_name, info->quantisation, info->device,
                worker_n_ctx(app->worker), info->load_seconds);
    log_file_line(&app->log, strbuf_text(&line));
    strbuf_finish(&line);
    if (info->passed_over[0])
        log_file_line(&app->log, info->passed_over);
    for (size_t i = 0; i < app->model_notes.n; i++)
        log_file_line(&app->log, app->model_notes.items[i].text);
}

static void log_answer(struct app *app)
{
    const struct turn *turn = &app->chat.turn;
    struct strbuf line = {0};
    strbuf_addf(&line, "answer: %s ", finish_name(turn->finish));
    const struct turn_room room = {app->chat.n_used, chat_n_ctx(&app->chat), SIZE_MAX};
    turn_stats_line(turn, &room, &line);
    log_file_line(&app->log, strbuf_text(&line));
    strbuf_finish(&line);
}

static void on_loaded(struct app *app)
{
    const struct bn_model_info *info = worker_info(app->worker);
    const size_t n_ctx = worker_n_ctx(app->worker);
    log_loaded(app);
    app_tell_notes(app, &app->model_notes);
    if (app->is_interactive)
        ui_notice(&app->ui, TONE_NOTE, "%s, %s, context %zu, loaded in %.1f s", info->quantisation,
                  info->device, n_ctx, info->load_seconds);
    if (info->passed_over[0] && (app->is_interactive || options_flag(app->options, "verbose")))
        ui_notice(&app->ui, TONE_NOTE, "%s", info->passed_over);
    if (app->is_demo)
        ui_notice(&app->ui, TONE_NOTE, DEMO_NOTICE, (double)info->n_params / 1e6);
    if (info->n_ctx_train > 0 && n_ctx > info->n_ctx_train)
        ui_notice(&app->ui, TONE_WARNING, CONTEXT_NOTICE, n_ctx, info->n_ctx_train);
}

static void on_events(struct app *app)
{
    struct worker_event event;
    for (size_t i = 0; i < EVENTS_AT_ONCE && worker_next(app->worker, &event); i++) {
        const enum worker_event_kind kind = event.kind;
        if (kind == WORKER_FAILED)
            log_file_line(&app->log, event.err.text);
        if (kind == WORKER_LOADED)
            on_loaded(app);
        chat_event(&app->chat, &event);
        if (kind == WORKER_DONE)
            log_answer(app);
        if (kind == WORKER_DONE || (kind == WORKER_FAILED && app->chat.turn.n_tokens > 0))
            app_keep(app);
        if (app->chat.phase == CHAT_BROKEN)
            return;
    }
}

static void wait_for_something(struct app *app)
{
    const struct ui_ops *ops = app->ui.ops;
    int timeout = ops->tick(&app->ui);
    const bool wants_input = ops->wants_input(&app->ui);
    struct pollfd fds[3] = {{.fd = app->wake_read, .events = POLLIN},
                            {.fd = wants_input ? STDIN_FILENO : -1, .events = POLLIN},
                            {.fd = app->ui.log_fd > 0 ? app->ui.log_fd : -1, .events = POLLIN}};
    if ((app->ending || app->stopping_since > 0) && (timeout < 0 || timeout > 100))
        timeout = 100; /* deadlines in seconds: this is close enough */
    if (poll(fds, 3, timeout) <= 0)
        return; /* time is up, or a signal, whose byte is in the pipe */
    if (fds[0].revents)
        signals_drain(app->wake_read);
    /* A Ctrl-C came before the keys that are read now, and its handler has run; but its byte may
     * have come after poll looked at the pipe. */
    on_signals(app);
    if (wants_input && fds[1].revents)
        ops->input(&app->ui);
}

/* The code of a signal that ends the program while it is leaving anyway. Who talks to it has asked
 * it to leave: an interrupt stops the writing and nothing else. */
static enum exit_code code_of(const struct app *app, unsigned flags)
{
    if (flags & SIGNAL_TERMINATE)
        return EXIT_TERMINATED;
    if (flags & SIGNAL_HANGUP)
        return EXIT_HUNG_UP;
    return app->is_interactive ? EXIT_DONE : EXIT_INTERRUPT;
}

/* On the way out, while the terminal is still ours: a signal ends it. */
static void keep_last_snapshot(struct app *app)
{
    const struct store *s = &app->store;
    if (app->code != EXIT_DONE || chat_is_busy(&app->chat))
        return;
    app_keep_snapshot(app, s->session_path[0] ? s->session_path : s->last_path);
    while (app->chat.phase == CHAT_IDLE && !worker_is_idle(app->worker)) {
        struct pollfd wake = {.fd = app->wake_read, .events = POLLIN};
        on_events(app);
        if (poll(&wake, 1, 100) > 0)
            signals_drain(app->wake_read);
        const unsigned flags = signals_take();
        if (flags & (SIGNAL_INTERRUPT | SIGNAL_TERMINATE | SIGNAL_HANGUP)) {
            app->code = code_of(app, flags);
            worker_cancel(app->worker);
        }
    }
    on_events(app);
}

enum exit_code app_run(struct app *app)
{
    while (!app->leaving) {
        on_signals(app);
        on_events(app);
        watch_stop(app);
        if (app->ending &&
            (!chat_is_busy(&app->chat) || clock_seconds() - app->ending_since > END_SECONDS))
            app->leaving = true;
        if (app->leaving)
            break;
        if (app->next_ui)
            change_ui(app);
        if (!app->leaving && !chat_is_busy(&app->chat) && app->chat.phase != CHAT_BROKEN)
            app->ui.ops->ready(&app->ui);
        if (!app->leaving && !app->next_ui)
            wait_for_something(app);
    }
    keep_last_snapshot(app);
    return app->code;
}
