/*
 * Lines that were not sent: see ui_unsent.h.
 */
#include "app/ui/ui_unsent.h"

#include "app/terminal/tty.h"

#include <unistd.h>

#define UNSENT_ROWS 8 /* most rows for lines that were not sent; Up recalls the others, too */

/* Says where the newest n_lines of the input history are. From an entry that was recalled or found,
 * Up goes on to earlier ones. */
static const char *how_to_recall(size_t n_lines)
{
    if (line_is_earlier_entry())
        return n_lines == 1 ? "it is the newest line of the input history"
                            : "they are the newest lines of the input history";
    return n_lines == 1 ? "Up recalls it" : "Up recalls them, the last one first";
}

/* Show that these lines were not sent, and how to recall them. */
static void show_unsent(struct ui *ui, const struct entry_queue *lines, ui_show_fn show)
{
    struct strbuf notice = {0};
    if (lines->n == 0)
        return;
    entry_queue_rows(lines, "not sent: ", tty_safe_columns(tty_size(STDOUT_FILENO)), UNSENT_ROWS,
                     &notice);
    strbuf_add_text(&notice, how_to_recall(lines->n));
    show(ui, TONE_PLAIN, strbuf_str(&notice));
    strbuf_finish(&notice);
}

/* Add the lines to the input history, which keeps them apart: in the editor, several lines would
 * become one message. */
static void add_to_history(const struct entry_queue *lines)
{
    for (size_t i = 0; i < lines->n; i++)
        line_add_history(strbuf_text(&lines->items[i]));
}

void ui_unsent_recall(struct ui *ui, const struct entry_queue *lines)
{
    add_to_history(lines);
    show_unsent(ui, lines, ui->ops->notice);
}

bool ui_unsent_put_back(struct ui *ui, struct bn_str displayed)
{
    struct entry_queue lines = {0};
    const bool is_alone = line_is_empty() || !entry_queue_add(&lines, displayed);
    if (is_alone)
        line_put_back(displayed);
    ui_unsent_recall(ui, &lines);
    entry_queue_finish(&lines);
    return is_alone;
}

void ui_unsent_recall_late(struct ui_terminal *t, const struct entry_queue *lines)
{
    add_to_history(lines);
    for (size_t i = 0; i < lines->n; i++) /* without memory, only the notice lacks the line */
        (void)entry_queue_add(&t->unsent, strbuf_str(&lines->items[i]));
}

void ui_unsent_show_late(struct ui *ui, ui_show_fn show)
{
    show_unsent(ui, &ui->terminal->unsent, show);
    entry_queue_finish(&ui->terminal->unsent);
}
