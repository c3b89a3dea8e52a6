/*
 * Handles input of the user: a slash command, or a message with its attachments. Also handles the
 * other events of a painter.
 */
#include "app/app.h"
#include "app/commands/commands.h"
#include "app/common/input_text.h"
#include "app/common/slash.h"

#include <string.h>

/* Attach the files of the @paths in `typed`. Then append the texts of all attached files and
 * `typed` to `out`. After an error `out` and the list may have a part of them. */
static bool compose(struct app *app, struct bn_str typed, struct strbuf *out, struct bn_error *err)
{
    struct attachment_list *attached = &app->chat.attached;
    struct strbuf missing = {0};
    bool ok = true;
    if (typed.n_bytes > 0 && memchr(typed.ptr, '@', typed.n_bytes)) {
        const struct attachment_room room = chat_room(&app->chat);
        ok = attachments_add_paths(attached, app->model.tokenizer, typed, &room, &missing, err);
    }
    if (ok && missing.n_bytes > 0)
        ui_notice(&app->ui, TONE_WARNING, "@%.200s is not a file; it is sent as text",
                  strbuf_text(&missing));
    for (size_t i = 0; i < attached->n; i++) {
        strbuf_add_str(out, strbuf_str(&attached->items[i].text));
        if (ok && attached->items[i].facts.lack)
            ui_notice(&app->ui, TONE_WARNING, "'%.200s' %s", attached->items[i].path,
                      attached->items[i].facts.lack);
    }
    strbuf_add_str(out, typed);
    if (ok && out->failed)
        ok = bn_fail(err, BN_ENOMEM, "out of memory for the message");
    if (ok && attached->n > 0)
        ui_notice(&app->ui, TONE_NOTE, "%zu file%s attached; the message has %zu bytes",
                  attached->n, attached->n == 1 ? "" : "s", out->n_bytes);
    strbuf_finish(&missing);
    return ok;
}

/* Send `text`, which ends with the `typed` text. The first n_files attachments are from --file
 * or /file. Only these are in q.files: the @paths of the others are in the typed text. */
static bool send_composed(struct app *app, struct bn_str text, struct bn_str typed, size_t n_files)
{
    struct attachment_list *attached = &app->chat.attached;
    struct strbuf files = {0};
    struct bn_error err;
    for (size_t i = 0; i < n_files; i++)
        strbuf_addf(&files, "%s\n", attached->items[i].real);
    const struct question q = {.text = text,
                               .typed = attached->n > 0 ? typed : (struct bn_str){0},
                               .files = strbuf_str(&files)};
    const bool ok = files.failed ? bn_fail(&err, BN_ENOMEM, "out of memory for the message")
                                 : chat_send(&app->chat, &q, &err);
    if (!ok)
        app->ui.ops->turn_failed(&app->ui, &err);
    if (!ok && err.code == BN_ECONTEXT && n_files > 0)
        ui_notice(&app->ui, TONE_NOTE, "/file off removes the attached file%s: %zu tok",
                  n_files == 1 ? "" : "s", attachments_tokens(attached, n_files));
    strbuf_finish(&files);
    return ok;
}

bool app_send_message(struct app *app, struct bn_str text)
{
    struct attachment_list *attached = &app->chat.attached;
    const size_t n_files = attached->n;
    struct strbuf clean = {0}, message = {0};
    struct bn_error err;
    size_t bad_at = SIZE_MAX;
    app->has_refused_end = false;
    bool ok = input_clean("the message", text, &clean, &bad_at, &err) &&
              compose(app, strbuf_str(&clean), &message, &err);
    if (bad_at != SIZE_MAX)
        ui_notice(&app->ui, TONE_WARNING, INPUT_UTF8_NOTICE, "the message", bad_at);
    if (!ok) {
        /* The flags are about an earlier message. turn_failed must not give its advice. */
        app->chat.turn.is_too_long = app->chat.turn.is_system_too_long = false;
        app->ui.ops->turn_failed(&app->ui, &err);
    }
    ok = ok && send_composed(app, strbuf_str(&message), strbuf_str(&clean), n_files);
    /* If nothing was sent, remove only the files of @paths. The text with the @paths usually
     * returns to the editor: sending it again attaches them, unless the user deletes an @path. */
    while (attached->n > (ok ? 0 : n_files))
        attachments_remove(attached, attached->n - 1);
    strbuf_finish(&clean);
    strbuf_finish(&message);
    return ok;
}

static struct command_host host_of(struct app *app)
{
    return (struct command_host){
        .options = app->options,
        .chat = &app->chat,
        .ui = &app->ui,
        .history_path = options_flag(app->options, "history") ? app->terminal.history.path : "",
        .is_interactive = app->is_interactive};
}

/* Let the event loop open the painter with this name. If it is open already, it is closed first. */
static void request_painter(struct app *app, const char *name)
{
    for (size_t i = 0; app->painters[i]; i++)
        if (strcmp(app->painters[i]->name, name) == 0)
            app->next_painter = app->painters[i];
}

/* At a terminal, refuse once to end the program if the last turns would be lost: the user may save
 * the chat elsewhere. */
static bool refuse_end(struct app *app)
{
    struct bn_error err;
    if (!app->ui.ops->is_terminal || app->has_refused_end || chat_is_kept(&app->chat, &err))
        return false;
    app->has_refused_end = true;
    ui_notice(&app->ui, TONE_ERROR,
              "%s. The last turns are not saved: /save FILE saves the chat in another place, "
              "/quit or Ctrl-D again ends the program without them",
              err.text);
    return true;
}

static enum entry_result run_command(struct app *app, const struct slash *s)
{
    struct command_host host = host_of(app);
    const enum entry_result entry = command_run(&host, s->name, s->text);
    if (host.ends_program && refuse_end(app))
        return ENTRY_FAILED;
    if (host.painter)
        request_painter(app, host.painter);
    if (host.write_failed && !app->is_interactive)
        app_end_now(app, EXIT_FILE);
    app->is_script_done = app->is_script_done || host.ends_program;
    if (host.ends_program) /* first_failure: EXIT_DONE unless --keep-going passed over a failure */
        app_end_now(app, app->ui.first_failure);
    return entry;
}

/* A message of several lines was sent whose first word is a command, perhaps by mistake. */
static void note_lines(struct app *app, struct bn_str name)
{
    const struct command *c = command_named(name);
    if (c)
        ui_notice(&app->ui, TONE_NOTE, "sent as a message: the command /%s has only one line%s",
                  c->name, c->run == cmd_system ? "; /system @FILE reads a longer text" : "");
}

static enum entry_result run_line(struct app *app, struct bn_str text)
{
    const struct slash s = slash_parse(text);
    switch (s.kind) {
    case SLASH_NOTHING:
        return ENTRY_DONE;
    case SLASH_COMMAND:
        return run_command(app, &s);
    case SLASH_MESSAGE:
        break;
    }
    if (!app_send_message(app, s.text))
        return ENTRY_UNSENT;
    note_lines(app, s.name);
    return ENTRY_DONE;
}

void app_complete(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out)
{
    struct command_host host = host_of(ud);
    command_complete(&host, before, word, out);
}

void app_stop_answer(struct app *app)
{
    app->ui.ops->unqueue_all(&app->ui); /* else the waiting lines would be sent after the stop */
    chat_stop(&app->chat);
}

bool app_runs_now(void *ud, struct bn_str line)
{
    const struct slash s = slash_parse(line);
    (void)ud; /* the table of commands is constant */
    return s.kind == SLASH_COMMAND && command_runs_now(s.name, s.text);
}

void app_event(struct app *app, const struct ui_event *event)
{
    struct bn_error err;
    switch (event->kind) {
    case UI_LINE:
        app->ui.ops->entry_done(&app->ui, run_line(app, event->text));
        break;
    case UI_MESSAGE:
        app->ui.ops->entry_done(&app->ui,
                                app_send_message(app, event->text) ? ENTRY_DONE : ENTRY_UNSENT);
        break;
    case UI_PROMPT:
        if (!chat_send(&app->chat, &(struct question){.text = event->text}, &err))
            app->ui.ops->turn_failed(&app->ui, &err);
        break;
    case UI_STOP:
        app_stop_answer(app);
        break;
    case UI_CHANGE_PAINTER:
        request_painter(app, event->painter);
        break;
    case UI_ABORT:
        chat_stop(&app->chat);
        /* The code of this event replaces that of an interrupt; app_end_now would keep an error. */
        app->ends_after_turn = false;
        app->code = EXIT_DONE;
        app_end_now(app, event->code);
        break;
    case UI_END:
        if (event->code == EXIT_DONE && refuse_end(app))
            break;
        app->is_script_done = true;
        app_end_now(app, event->code);
        break;
    case UI_HANG_UP:
        app_end_after_turn(app, EXIT_HUNG_UP);
        break;
    }
}
