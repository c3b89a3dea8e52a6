/*
 * What the two painters of a terminal share: the text of banner, status row and notices, the key
 * queue, and the handling of entered lines. Each painter decides how the text looks.
 */
#ifndef APP_TERMINAL_CHAT_H
#define APP_TERMINAL_CHAT_H

#include "app/chat/chat.h"
#include "app/terminal/key_queue.h"
#include "app/terminal/line/history.h"
#include "app/terminal/line/line_edit.h"
#include "app/terminal/text/flow.h"

extern const struct ui_ops ui_inline_ops;
extern const struct ui_ops ui_full_ops;

#define TERMINAL_PROMPT ">>> "

struct answer_position {
    size_t n_thought, n_shown; /* bytes of the thought and of the answer without the thought */
};

/* State that stays when one painter follows the other. The program owns it and sets the first three
 * fields before it opens a painter. */
struct terminal_chat {
    struct history history; /* of the line editor */
    /* Tab completion, as in struct line_host. */
    void (*complete)(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out);
    void *complete_ud;

    struct key_queue keys;          /* type-ahead */
    struct answer_position printed; /* how much of the running answer is on the ordinary screen */
    struct strbuf line;             /* the text of the last UI_LINE event */
    bool enter_was_refused;         /* while busy; cleared when an answer begins */
    bool is_hung_up;                /* the terminal is gone */
};
void terminal_chat_finish(struct terminal_chat *t);

/* Set up the editor. The first painter also shows the banner and loads the history of earlier
 * runs. */
void terminal_begin(struct ui *ui);
/* Leave the editor. If another painter follows, its editor gets the unfinished text. */
void terminal_finish(enum ui_close how);

/* Format the status row, at most `width` characters. Returns status_pressure. */
int terminal_status(const struct ui *ui, size_t width, char *out, size_t out_bytes);
/* Show what follows an answer: why it ended, the /probs table, statistics. */
typedef void (*terminal_show_fn)(struct ui *ui, enum ui_tone tone, struct bn_str text);
void terminal_show_end(struct ui *ui, const struct turn *turn, terminal_show_fn show);
/* Show why a turn failed. */
void terminal_show_failure(struct ui *ui, const struct bn_error *err);
/* For a painter that opens during an answer: begin the turn, then call `add` for the thought and
 * for the answer. `printed` is already on the ordinary screen; `rest` follows it. */
typedef void (*terminal_add_fn)(struct ui *ui, enum answer_part part, struct bn_str printed,
                                struct bn_str rest);
void terminal_resume_answer(struct ui *ui, terminal_add_fn add);

bool terminal_uses_colour(const struct ui *ui); /* also bold and dim */
enum flow_wrap terminal_wrap(const struct ui *ui);
bool terminal_is_hidden(const struct ui *ui, enum ui_tone tone); /* true: --quiet hides it */

size_t terminal_read_keys(struct ui *ui); /* returns the number of bytes added to the key queue */
/* Pass the first n_keys of the key queue to the editor. Keys that were used are removed. */
enum line_result terminal_feed_editor(struct ui *ui, size_t n_keys, size_t *n_used);
/* Add the finished line to the history and return it as a UI_LINE event. */
void terminal_line_event(struct ui *ui, struct ui_event *event);
/* As in ui_ops. */
void terminal_entry_done(struct ui *ui, enum entry entry);
void terminal_edit(struct ui *ui, struct bn_str text);
void terminal_interrupt(struct ui *ui);
bool terminal_wants_input(const struct ui *ui);
void terminal_token(struct ui *ui, const struct turn *turn);

#endif
