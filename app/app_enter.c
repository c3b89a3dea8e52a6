/*
 * What a person enters: a command, or a message with its attachments.
 */
#include "app/app.h"
#include "app/commands/commands.h"
#include "app/common/input_text.h"
#include "app/common/slash.h"

bool app_say(struct app *app, struct bn_str text)
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
        ui_notice(&app->ui, TONE_NOTE, "%zu file%s attached: a message of %zu bytes",
                  found.n_attached, found.n_attached == 1 ? "" : "s", message.n_bytes);
    if (ok && found.missing.n_bytes > 0)
        ui_notice(&app->ui, TONE_WARNING, "@%.200s names no file and is sent as text",
                  strbuf_text(&found.missing));
    if (ok && !chat_ask(&app->chat, strbuf_str(&message), &err)) {
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

enum entry app_enter(struct app *app, struct bn_str text)
{
    const struct slash s = slash_parse(text);
    switch (s.kind) {
    case SLASH_NOTHING:
        return ENTRY_DONE;
    case SLASH_COMMAND:
        return command_run(app, s.name, s.text);
    case SLASH_MESSAGE:
        break;
    }
    return app_say(app, s.text) ? ENTRY_DONE : ENTRY_UNSENT;
}
