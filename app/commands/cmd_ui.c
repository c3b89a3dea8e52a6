/*
 * /ui: which painter a terminal chat has.
 */
#include "app/commands/commands.h"

bool cmd_ui(struct app *app, struct bn_str args)
{
    if (app->ui.ops == &ui_pipe_ops) {
        ui_notice(&app->ui, TONE_ERROR, "there is no terminal to chat on");
        return false;
    }
    if (args.n_bytes == 0)
        ui_notice(&app->ui, TONE_PLAIN, "ui = %s; /ui inline and /ui full change it",
                  app->ui.ops->name);
    else if (bn_str_is(args, "inline"))
        app_change_ui(app, &ui_inline_ops);
    else if (bn_str_is(args, "full"))
        app_change_ui(app, &ui_full_ops);
    else
        ui_notice(&app->ui, TONE_ERROR, "expected inline or full");
    return args.n_bytes == 0 || bn_str_is(args, "inline") || bn_str_is(args, "full");
}
