/*
 * Handles input of the user: a slash command, or a message with its attachments. Also handles the
 * other events of a painter.
 */
#include "app/app.h"
#include "app/commands/commands.h"
#include "app/common/input_text.h"
#include "app/common/slash.h"

#include <string.h>

bool app_send_message(struct app *app, struct bn_str text)
{
    struct strbuf clean = {0}, message = {0};
    struct bn_error err;
    size_t bad_at;
    struct input_paths found = {0};
    bool ok = input_clean("the message", text, &clean, &bad_at, &err);
    if (ok) {
        strbuf_add_str(&message, strbuf_str(&app->attachments));
        ok = input_expand_paths(strbuf_str(&clean), &message, &found, &err);
    }
    if (!ok)
        ui_notice(&app->ui, TONE_ERROR, "%s", err.text);
    else if (found.n_attached > 0)
        ui_notice(&app->ui, TONE_NOTE, "%zu file%s attached; the message has %zu bytes",
                  found.n_attached, found.n_attached == 1 ? "" : "s", message.n_bytes);
    if (ok && found.missing.n_bytes > 0)
        ui_notice(&app->ui, TONE_WARNING, "@%.200s is not a file; it is sent as text",
                  strbuf_text(&found.missing));
    if (ok && !chat_send(&app->chat, strbuf_str(&message), &err)) {
        app->ui.ops->turn_failed(&app->ui, &err);
        ok = false;
    }
    if (ok)
        strbuf_cut(&app->attachments, 0);
    strbuf_finish(&found.missing);
    strbuf_finish(&clean);
    strbuf_finish(&message);
    return ok;
}

static struct command_host host_of(struct app *app)
{
    return (struct command_host){.options = app->options,
                                 .chat = &app->chat,
                                 .ui = &app->ui,
                                 .attachments = &app->attachments,
                                 .history_path = app->terminal.history.path,
                                 .is_interactive = app->is_interactive};
}

static void change_painter(struct app *app, const char *name)
{
    for (size_t i = 0; app->painters[i]; i++)
        if (strcmp(app->painters[i]->name, name) == 0 && app->painters[i] != app->ui.ops)
            app->next_ui = app->painters[i];
}

static enum entry run_command(struct app *app, const struct slash *s)
{
    struct command_host host = host_of(app);
    const enum entry entry = command_run(&host, s->name, s->text);
    if (host.painter)
        change_painter(app, host.painter);
    if (host.write_failed && !app->is_interactive)
        app_leave(app, EXIT_FILE);
    if (host.leaves)
        app_leave(app, EXIT_DONE);
    return entry;
}

static enum entry run_line(struct app *app, struct bn_str text)
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
    return app_send_message(app, s.text) ? ENTRY_DONE : ENTRY_UNSENT;
}

void app_complete(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out)
{
    struct command_host host = host_of(ud);
    command_complete(&host, before, word, out);
}

void app_event(struct app *app, const struct ui_event *event)
{
    struct bn_error err;
    switch (event->kind) {
    case UI_LINE:
        app->ui.ops->entry_done(&app->ui, run_line(app, event->text));
        break;
    case UI_MESSAGE:
        (void)app_send_message(app, event->text); /* app_send_message has shown the reason */
        break;
    case UI_PROMPT:
        if (!chat_send(&app->chat, event->text, &err))
            app->ui.ops->turn_failed(&app->ui, &err);
        break;
    case UI_STOP:
        chat_stop(&app->chat);
        break;
    case UI_CHANGE:
        change_painter(app, event->painter);
        break;
    case UI_ABORT:
        chat_stop(&app->chat);
        app->ending = false; /* this exit code replaces that of an interrupt */
        app->code = EXIT_DONE;
        app_leave(app, event->code);
        break;
    case UI_END:
        app_leave(app, event->code);
        break;
    case UI_HANG_UP:
        app_end(app, EXIT_HUNG_UP);
        break;
    }
}
