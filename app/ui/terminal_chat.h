/*
 * What the painters of a terminal have in common: the words of banner and status row, and what
 * happens with a line that was entered. How it looks is theirs.
 */
#ifndef APP_TERMINAL_CHAT_H
#define APP_TERMINAL_CHAT_H

#include "app/app.h"
#include "app/terminal/line/line_edit.h"
#include "app/terminal/text/flow.h"

#define TERMINAL_PROMPT ">>> "

/* Set up the editor; the first painter also gives the banner and the history of earlier runs. */
void terminal_begin(struct ui *ui);
/* Leave the editor; at a change of painters its text stays for the next one. */
void terminal_finish(struct ui *ui);

/* At most `width` characters; gives status_pressure. REFUSED: Enter was pressed in vain. */
enum terminal_busy { TERMINAL_CALM, TERMINAL_REFUSED };
int terminal_status(const struct ui *ui, enum terminal_busy busy, size_t width, char *out,
                    size_t out_bytes);
/* The words after an answer: why it ended, /probs, the numbers. */
typedef void (*terminal_say_fn)(struct ui *ui, enum ui_tone tone, struct bn_str text);
void terminal_say_end(struct ui *ui, const struct turn *turn, terminal_say_fn say_it);
/* The words of a turn that could not run; where the model could not be opened, the way out. */
void terminal_fail(struct ui *ui, const struct bn_error *err);
/* Another painter has begun with the answer that runs: what of it the ordinary screen has. */
struct answer_mark terminal_printed(const struct ui *ui);
bool terminal_take_first(struct ui *ui); /* true once, if there is a first prompt */

bool terminal_wants_looks(const struct ui *ui); /* bold and dim: --color, else the environment */
enum flow_wrap terminal_wrap(const struct ui *ui);
bool terminal_is_silent(const struct ui *ui, enum ui_tone tone); /* --quiet leaves it out */

size_t terminal_read_keys(struct ui *ui); /* into app->keys; gives how many came */
/* The first n_keys of app->keys to the editor; those that were used are gone then. */
enum line_result terminal_feed(struct ui *ui, size_t n_keys, size_t *n_used);
/* The line that is done: into the history, then a command or a message; back into the editor if it
 * is neither. */
void terminal_enter(struct ui *ui);
void terminal_edit(struct ui *ui, struct bn_str text); /* what ops->edit is to do */

#endif
