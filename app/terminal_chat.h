/*
 * What the painters of a terminal have in common: the words of banner and status row, and what
 * happens with a line that was entered. How it looks is theirs.
 */
#ifndef APP_TERMINAL_CHAT_H
#define APP_TERMINAL_CHAT_H

#include "app/app.h"
#include "app/flow.h"

/* Set up the editor; the first painter also gives the banner and the history of earlier runs. */
void terminal_begin(struct ui *ui);
/* Leave the editor; at a change of painters its text stays for the next one. */
void terminal_finish(struct ui *ui);

/* At most `width` characters; gives status_pressure. */
int terminal_status(const struct ui *ui, const char *hint, size_t width, char *out,
                    size_t out_bytes);
/* A turn's tokens, a line each, with their probability and the likeliest others. */
void terminal_probs(const struct ui *ui, const struct turn *turn, struct strbuf *out);
bool terminal_wants_stats(const struct ui *ui);
bool terminal_wants_looks(const struct ui *ui); /* bold and dim: --color, NO_COLOR */
enum flow_wrap terminal_wrap(const struct ui *ui);
bool terminal_is_silent(const struct ui *ui, enum ui_tone tone); /* --quiet leaves it out */

/* The line that is done: into the history, then a command or a message; back if it is neither. */
void terminal_enter(struct ui *ui);
void terminal_edit(struct ui *ui, struct bn_str text); /* what ops->edit is to do */

#endif
