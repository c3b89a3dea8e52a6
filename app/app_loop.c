/*
 * The event loop: signals, events of the worker, events of the painter, repainting, and the end of
 * the program.
 */
#include "app/app.h"

#include "app/chat/chat_log.h"
#include "app/chat/model_sheet.h"
#include "app/terminal/signals.h"
#include "engine/base/clock.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The longest wait for a turn to stop at the end of the program. Usually it stops much sooner,
 * because the engine often reads its cancel flag. */
#define END_SECONDS 2.0
#define ARM_SECONDS 0.5   /* a second Ctrl-C within this time belongs to the same stop */
#define EVENTS_AT_ONCE 64 /* worker events, before the loop handles keys and signals again */

void app_end_now(struct app *app, enum exit_code code)
{
    if (!app->ends_now && !app->ends_after_turn)
        app->code = code;
    else if (app->code == EXIT_DONE)
        app->code = code;
    app->ends_now = true;
}

void app_end_after_turn(struct app *app, enum exit_code code)
{
    if (app->ends_after_turn || app->ends_now)
        return;
    app->ends_after_turn = true;
    app->ends_after_turn_since = clock_seconds();
    app->code = code;
    if (!chat_is_busy(&app->chat) || app->chat.is_waiting) /* a waiting turn has no answer */
        app->ends_now = true;
    else if (app->is_interactive) /* the user continues the chat later */
        chat_stop_at_end(&app->chat);
    else
        chat_stop(&app->chat);
}

/* Close the painter and open app->next_painter. If that fails, open the old one again. For /set
 * color both are the same painter, and the new value is shown. */
static void switch_painter(struct app *app)
{
    const struct ui_ops *before = app->ui.ops;
    struct bn_error err;
    before->close(&app->ui, UI_CLOSE_CHANGE); /* first: one painter is open at a time */
    app->ui.ops = app->next_painter;
    if (!app->ui.ops->open(&app->ui, &err)) {
        app->ui.ops = before;
        struct bn_error no_terminal;
        if (before->open(&app->ui, &no_terminal)) {
            ui_notice(&app->ui, TONE_WARNING, "%s", err.text);
        } else { /* the terminal that worked before is gone: nothing can show a failed write */
            app->store.has_warned_last = app->store.has_warned_named = true;
            app_end_now(app, EXIT_HUNG_UP);
        }
    } else if (app->ui.ops == before) { /* opened again for /set color */
        ui_notice(&app->ui, TONE_PLAIN, "color = %s", options_text(app->options, "color"));
    }
    app->next_painter = NULL;
}

/* Show the warnings among the notes, and with --verbose all notes. */
static void show_notes(struct app *app, const struct bn_notes *notes)
{
    for (size_t i = 0; i < notes->n; i++)
        if (notes->items[i].kind == BN_NOTE_WARNING)
            ui_notice(&app->ui, TONE_WARNING, "%s", notes->items[i].text);
        else if (options_flag(app->options, "verbose"))
            ui_notice(&app->ui, TONE_NOTE, "%s", notes->items[i].text);
}

static void on_interrupt(struct app *app)
{
    if (!app->is_interactive)
        app_end_after_turn(app, EXIT_INTERRUPT);
    else if (!chat_is_busy(&app->chat))
        app->ui.ops->interrupt(&app->ui);
    else
        app_stop_answer(app);
}

/* The signals that concern the terminal only. */
static void on_terminal_signals(struct app *app, unsigned flags)
{
    if (flags & SIGNAL_SUSPEND) {
        app->ui.ops->suspend(&app->ui);
        signals_stop_self();
    }
    if (flags & (SIGNAL_SUSPEND | SIGNAL_RESUME))
        app->ui.ops->resume(&app->ui);
    if (flags & SIGNAL_RESIZE)
        app->ui.ops->resize(&app->ui);
}

/* Handle all signals that have arrived. Returns whether there were any. */
static bool on_signals(struct app *app)
{
    bool found = false;
    /* Fetch again after on_terminal_signals: it may have stopped the process. A signal that ended
     * the stop, such as SIGTERM, sets the exit code here, before the painter's next event says that
     * the terminal is gone. */
    for (unsigned flags; (flags = signals_fetch()) != 0;) {
        found = true;
        if (flags & SIGNAL_TERMINATE)
            app_end_after_turn(app, EXIT_TERMINATED);
        if (flags & SIGNAL_HANGUP)
            app_end_after_turn(app, EXIT_HUNG_UP);
        if (flags & SIGNAL_INTERRUPT)
            on_interrupt(app);
        on_terminal_signals(app, flags);
    }
    return found;
}

/* If a requested stop takes longer than ARM_SECONDS, the next Ctrl-C ends the program at once. */
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

/* Warn about a failed write. The chat does not need its log, so it continues. */
static void watch_log(struct app *app)
{
    const int error = log_file_new_error(&app->log);
    if (error == 0)
        return;
    ui_notice(&app->ui, TONE_WARNING, LOG_NOTICE, options_text(app->options, "log"),
              strerror(error));
}

/* Queue the sense check (see sense_check.h), once. It must not delay a first token. With a
 * user, it runs while the program waits for input, and a message cancels it for a while. Without a
 * user, the prompts follow one another without a pause, so it runs after the first answer. There is
 * no check with --quiet, which hides its warning. */
static void queue_check_once(struct app *app, enum worker_check how)
{
    struct bn_error ignored; /* without memory there is no check */
    if (app->is_check_queued || app->ends_after_turn || options_flag(app->options, "quiet") ||
        !options_flag(app->options, "check"))
        return;
    app->is_check_queued = true;
    (void)worker_check(app->worker, how, &ignored);
}

/* Show the notes about the weights, and add them to those about the file for /info. The banner has
 * already named the repairs of the vocabulary and the template. */
static void show_weight_notes(struct app *app)
{
    struct strbuf names = {0};
    model_sheet_repairs(&app->model_notes, &names);
    if (names.n_bytes > 0 && app->is_interactive)
        ui_notice(&app->ui, TONE_NOTE, "repaired in memory: %s", strbuf_text(&names));
    strbuf_finish(&names);
    show_notes(app, &app->model_notes);
    for (size_t i = 0; i < app->model_notes.n; i++) {
        const struct bn_note *note = &app->model_notes.items[i];
        bn_notes_add(&app->model.notes, note->kind, note->id, "%s", note->text);
    }
}

/* Log the turn that has just ended. */
static void log_answer(struct app *app)
{
    /* SIZE_MAX: a log line has no limit of columns. */
    const struct turn_space space = {app->chat.n_used, chat_n_ctx(&app->chat), SIZE_MAX};
    chat_log_answer(&app->log, &app->chat.turn, &space);
}

static void report_loaded(struct app *app)
{
    const struct bn_model_info *info = worker_info(app->worker);
    const size_t n_ctx = worker_n_ctx(app->worker);
    struct bn_error system_err;
    chat_log_loaded(&app->log, app->model.name, info, n_ctx, &app->model_notes);
    /* Not earlier: of a model that cannot be loaded, the user should see the error only. */
    show_notes(app, &app->model.notes);
    show_weight_notes(app);
    const char *const limit = model_sheet_ctx_limit(info, n_ctx);
    char trained[100] = "";
    if (limit[0] != '\0')
        (void)snprintf(trained, sizeof trained, " (%strained with %zu)", limit, info->n_ctx_train);
    if (app->is_interactive)
        ui_notice(&app->ui, TONE_NOTE, "%s, %s, context %zu%s, loaded in %.1f s",
                  info->quantisation, info->device, n_ctx, trained, info->load_seconds);
    /* Only "--device auto" skips a device. The user did not ask for that device, so the line is
     * shown only with --verbose; /info always has it. */
    if (info->skip_reason[0] && options_flag(app->options, "verbose"))
        ui_notice(&app->ui, TONE_NOTE, "%s", info->skip_reason);
    if (app->model.is_demo)
        ui_notice(&app->ui, TONE_NOTE, DEMO_NOTICE "%s", (double)info->n_params / 1e6,
                  app->is_interactive ? DEMO_HINT : "");
    /* If a message waits, its turn fails with the same error soon (`fit` in chat.c). */
    if (app->is_interactive && !app->chat.is_waiting &&
        !chat_check_system(&app->chat, app->chat.transcript.now.system, &system_err))
        ui_notice(&app->ui, TONE_WARNING, "%s; /system off removes it", system_err.text);
    if (info->n_ctx_train > 0 && n_ctx > info->n_ctx_train)
        ui_notice(&app->ui, TONE_WARNING, CONTEXT_NOTICE, n_ctx, info->n_ctx_train);
}

/* Write the files of the chat. A failure ends the program unless a user is there to see it. */
static void write_files(struct app *app)
{
    if (!chat_save(&app->chat) && !app->is_interactive && !app->ends_now)
        app_end_now(app, EXIT_FILE);
}

/* The model could not be loaded. Close the painter first, because the message must stay on the
 * screen after the program has ended. */
static void report_load_failure(struct app *app, const struct bn_error *err)
{
    if (options_flag(app->options, "verbose")) /* report_loaded shows them otherwise */
        show_notes(app, &app->model.notes);
    app->ui.ops->close(&app->ui, UI_CLOSE_END);
    const enum exit_code code = report_error(PROGRAM, STAGE_LOAD, err);
    /* EXIT_CONTEXT tells a script that its prompt is too long; a failure to load never means it. */
    app_end_now(app, code == EXIT_CONTEXT ? EXIT_MODEL : code);
}

static void on_worker_events(struct app *app)
{
    struct worker_event event;
    for (size_t i = 0; i < EVENTS_AT_ONCE && worker_next(app->worker, &event); i++) {
        const enum worker_event_kind kind = event.kind;
        const struct bn_error err = event.err; /* chat_event frees the event */
        const bool was_waiting = app->chat.is_waiting;
        if (kind == WORKER_FAILED)
            log_file_line(&app->log, event.err.text);
        if (kind == WORKER_LOADED)
            report_loaded(app); /* its notices come before the turn that chat_event may start */
        if (kind == WORKER_CHECKED)
            chat_log_check(&app->log, &event.sense, event.seconds, &event.err);
        chat_event(&app->chat, &event);
        if (kind == WORKER_DONE)
            log_answer(app);
        if (kind == WORKER_DONE && !app->is_interactive)
            queue_check_once(app, WORKER_CHECK_RUNS);
        if (kind == WORKER_DONE || (kind == WORKER_FAILED && app->chat.phase != CHAT_BROKEN))
            write_files(app);
        /* chat_event has started the turn that waited. If that failed, a new question was removed
         * from the conversation and must leave the files, too. An error here is not final: the next
         * write or chat_close_files tries again. */
        if (kind == WORKER_LOADED && was_waiting)
            (void)chat_save(&app->chat);
        if (app->chat.phase == CHAT_BROKEN) {
            report_load_failure(app, &err);
            return;
        }
    }
    watch_log(app);
}

static void on_ui_events(struct app *app)
{
    struct ui_event event;
    while (!app->ends_now && !app->next_painter && app->ui.ops->next_event(&app->ui, &event)) {
        /* The program is about to end: start no new turn. The painters return UI_HANG_UP at every
         * call, and app_run must wait for the end of the answer meanwhile. */
        if (app->ends_after_turn && (event.text.n_bytes > 0 || event.kind == UI_HANG_UP))
            return;
        app_event(app, &event);
    }
}

/* Wait until a descriptor is readable, a signal arrives or a repaint is due. Handle signals and
 * keys; the loop in app_run handles the rest. If a user types and the chat is idle, queue the sense
 * check before it waits. */
static void wait_for_event(struct app *app)
{
    const struct ui_ops *ops = app->ui.ops;
    if (app->is_interactive && app->chat.phase == CHAT_IDLE)
        queue_check_once(app, WORKER_CHECK_YIELDS);
    /* tick reads stderr_fd, too: bytes there only end the poll. */
    int timeout = ops->tick(&app->ui);
    const bool wants_input = ops->wants_input(&app->ui);
    struct pollfd fds[3] = {
        {.fd = app->wake_read, .events = POLLIN},
        {.fd = wants_input ? STDIN_FILENO : -1, .events = POLLIN},
        {.fd = app->ui.stderr_fd > 0 ? app->ui.stderr_fd : -1, .events = POLLIN}};
    if ((app->ends_after_turn || app->stopping_since > 0) && (timeout < 0 || timeout > 100))
        timeout = 100; /* ms: precise enough for END_SECONDS and ARM_SECONDS */
    if (poll(fds, 3, timeout) <= 0)
        return; /* a timeout, or a signal; the signal also wrote a byte to the pipe */
    if (fds[0].revents)
        signals_drain(app->wake_read);
    /* Handle signals before keys, so that a Ctrl-C acts before keys pressed later. on_signals reads
     * flags and not the pipe: a signal may have written its byte after poll() tested the pipe.
     * After a signal, poll again before reading: while the process was stopped, its shell may have
     * read the input, and a process in the background must not read. */
    if (!on_signals(app) && wants_input && fds[1].revents)
        ops->input(&app->ui);
}

/* Send the message of a terminal chat that was given on the command line, once. */
static void send_first_prompt(struct app *app)
{
    const struct bn_str prompt = app->first_prompt;
    if (prompt.n_bytes == 0)
        return;
    app->first_prompt = (struct bn_str){0};
    app->ui.ops->show_message(&app->ui, prompt);
    (void)app_send_message(app, prompt); /* shows a failure */
}

static void run_if_idle(struct app *app)
{
    if (!chat_is_busy(&app->chat))
        send_first_prompt(app);
    if (!app->ends_now && !chat_is_busy(&app->chat))
        app->ui.ops->ready(&app->ui);
}

/* The exit code after a signal during finish_jobs. With a user an interrupt only stops the jobs,
 * because the user has already ended the program. */
static enum exit_code signal_exit_code(const struct app *app, unsigned flags)
{
    const enum exit_code code = signals_exit_code(flags);
    return code == EXIT_INTERRUPT && app->is_interactive ? EXIT_DONE : code;
}

/* The last jobs of the worker, before the painter closes: with --snapshot write the snapshot, and
 * finish a sense check that runs without a user (WORKER_CHECK_RUNS). A signal that ends the program
 * stops both. A measurement of /stats peak ends by itself. If the program ends because of an error,
 * or while a turn still runs, nothing is done. The end of a script is no error, even if
 * --keep-going has passed over a failure. */
static void finish_jobs(struct app *app)
{
    const struct store *s = &app->store;
    if ((app->code != EXIT_DONE && !app->is_script_done) || chat_is_busy(&app->chat))
        return;
    chat_write_snapshot(&app->chat, store_main_path(s));
    while (app->chat.phase == CHAT_IDLE && !worker_is_idle(app->worker)) {
        struct pollfd wake = {.fd = app->wake_read, .events = POLLIN};
        on_worker_events(app);
        if (poll(&wake, 1, 100) > 0) /* 100 ms: a cancelled check ends without an event */
            signals_drain(app->wake_read);
        const unsigned flags = signals_fetch();
        on_terminal_signals(app, flags);
        if (flags & (SIGNAL_INTERRUPT | SIGNAL_TERMINATE | SIGNAL_HANGUP)) {
            app->code = signal_exit_code(app, flags);
            worker_cancel(app->worker);
        }
    }
    on_worker_events(app);
}

enum exit_code app_run(struct app *app)
{
    while (!app->ends_now) {
        (void)on_signals(app);
        on_worker_events(app);
        on_ui_events(app);
        watch_stop(app);
        if (app->ends_after_turn && (!chat_is_busy(&app->chat) ||
                                     clock_seconds() - app->ends_after_turn_since > END_SECONDS))
            app->ends_now = true;
        if (app->ends_now)
            break;
        if (app->next_painter)
            switch_painter(app);
        if (!app->ends_now)
            run_if_idle(app);
        on_ui_events(app); /* keys that waited for an idle chat can become events now */
        if (!app->ends_now && !app->next_painter)
            wait_for_event(app);
    }
    finish_jobs(app);
    /* At a terminal, a last.json that cannot be written is only a warning: the user has not asked
     * for it, as for a chat with a name. */
    bool is_named_chat_written;
    const bool are_saved = chat_close_files(&app->chat, &is_named_chat_written);
    if (!(app->is_interactive ? is_named_chat_written : are_saved))
        app_end_now(app, EXIT_FILE); /* the loop has ended: this only sets the exit code */
    return app->code;
}
