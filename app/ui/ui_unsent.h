/*
 * Entered lines that were not sent, because a message was refused or an answer was stopped. Such a
 * line returns to the line editor, or it goes into the input history and a notice shows it. Main
 * thread only.
 */
#ifndef APP_UI_UNSENT_H
#define APP_UI_UNSENT_H

#include "app/ui/ui_terminal.h"

/* Add the lines to the input history, and show that they were not sent. */
void ui_unsent_recall(struct ui *ui, const struct entry_queue *lines);
/* The same while a turn runs or waits, but the lines are shown at its end: text of the answer may
 * arrive after a stop, and a notice now would be within a sentence. */
void ui_unsent_recall_late(struct ui_terminal *t, const struct entry_queue *lines);
/* At the end of a turn, call `show` with the lines of ui_unsent_recall_late, if there are any. */
void ui_unsent_show_late(struct ui *ui, ui_show_fn show);

/* Put a displayed line into the editor if that is empty. Otherwise the user is typing another
 * message, and the line is recalled with Up. Returns whether the line is in the editor. */
bool ui_unsent_put_back(struct ui *ui, struct bn_str displayed);

#endif
