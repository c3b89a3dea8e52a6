/*
 * What the painters of a terminal have in common: the words of banner and status row, and what
 * happens with a line that was entered. How it looks is theirs.
 */
#ifndef APP_TERMINAL_CHAT_H
#define APP_TERMINAL_CHAT_H

#include "app/chat/chat.h"
#include "app/terminal/key_queue.h"
#include "app/terminal/line/history.h"
#include "app/terminal/line/line_edit.h"
#include "app/terminal/text/flow.h"

extern const struct ui_ops ui_inline_ops; /* ui_inline.c */
extern const struct ui_ops ui_full_ops;   /* ui_full.c */

#define TERMINAL_PROMPT ">>> "

/* A place in an answer. */
struct answer_mark {
    size_t n_thought, n_shown; /* bytes of the thought and of the answer proper */
};

/* What the painters of a terminal share, also when one follows the other. The program owns it and
 * sets the first three fields before the first painter opens. */
struct terminal_chat {
    struct history history; /* of the line editor */
    /* Tab completion, as in struct line_host. */
    void (*complete)(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out);
    void *complete_ud;

    struct key_queue keys;      /* typed and not used yet */
    struct answer_mark printed; /* how much of the running answer the ordinary screen has */
    struct strbuf line;         /* the text of the last UI_LINE event */
    bool is_hung_up;            /* the terminal is gone */
};
void terminal_chat_finish(struct terminal_chat *t);

/* Set up the editor; the first painter also gives the banner and the history of earlier runs. */
void terminal_begin(struct ui *ui);
/* Leave the editor. At a change of painters its text stays for the next one. */
void terminal_finish(enum ui_close how);

/* At most `width` characters; gives status_pressure. REFUSED: Enter was pressed in vain. */
enum terminal_busy { TERMINAL_CALM, TERMINAL_REFUSED };
int terminal_status(const struct ui *ui, enum terminal_busy busy, size_t width, char *out,
                    size_t out_bytes);
/* The words after an answer: why it ended, /probs, the numbers. */
typedef void (*terminal_say_fn)(struct ui *ui, enum ui_tone tone, struct bn_str text);
void terminal_say_end(struct ui *ui, const struct turn *turn, terminal_say_fn say_it);
/* The words of a turn that could not run. */
void terminal_fail(struct ui *ui, const struct bn_error *err);
/* Another painter has begun with the answer that runs: what of it the ordinary screen has. */
struct answer_mark terminal_printed(const struct ui *ui);

bool terminal_wants_looks(const struct ui *ui); /* bold and dim: --color, else the environment */
enum flow_wrap terminal_wrap(const struct ui *ui);
bool terminal_is_silent(const struct ui *ui, enum ui_tone tone); /* --quiet leaves it out */

size_t terminal_read_keys(struct ui *ui); /* into the key queue; returns how many bytes came */
/* Give the first n_keys of the key queue to the editor. Those that were used are removed. */
enum line_result terminal_feed(struct ui *ui, size_t n_keys, size_t *n_used);
/* The editor's line is done: add it to the history and make it a UI_LINE event. */
void terminal_line_event(struct ui *ui, struct ui_event *event);
void terminal_entry_done(struct ui *ui, enum entry entry); /* as in ui_ops */
void terminal_edit(struct ui *ui, struct bn_str text);     /* what ops->edit is to do */

#endif
