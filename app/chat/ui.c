/*
 * Functions for all painters: see ui.h.
 */
#include "app/chat/ui.h"

#include "app/options/options.h"

#include <stdarg.h>
#include <stdio.h>

bool ui_find_nowhere(struct ui *ui, struct pattern *pattern)
{
    (void)ui;
    (void)pattern;
    return false;
}

bool ui_is_hidden(const struct ui *ui, enum ui_tone tone)
{
    return (tone == TONE_NOTE || tone == TONE_WARNING) && options_flag(ui->options, "quiet");
}

void ui_notice(struct ui *ui, enum ui_tone tone, const char *fmt, ...)
{
    char text[1000]; /* for sentences; longer texts go to the painter directly */
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* cut if too long */
    va_end(args);
    ui->ops->notice(ui, tone, bn_str_of(text));
}

void ui_note_returned(struct ui *ui)
{
    if (ui->ops->is_terminal)
        ui_notice(ui, TONE_PLAIN, "not sent; edit the message below, or delete it with Ctrl-C");
}
