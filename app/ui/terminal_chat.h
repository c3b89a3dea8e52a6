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
#include "app/ui/entry_queue.h"

extern const struct ui_ops ui_inline_ops;
extern const struct ui_ops ui_full_ops;

#define TERMINAL_PROMPT ">>> "

struct answer_position {
    size_t n_thought, n_shown; /* bytes of the thought and of the answer without the thought */
};

/* State that stays when one painter follows the other. The program owns it and sets the first four
 * fields before it opens a painter. */
struct terminal_chat {
    struct history history; /* of the line editor */
    /* Tab completion, as in struct line_host. */
    void (*complete)(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out);
    /* Whether this line is a command that may run during an answer. */
    bool (*runs_now)(void *ud, struct bn_str line);
    void *callback_ud; /* for both */

    struct key_queue keys;          /* keys that the editor has not used yet */
    struct entry_queue queue;       /* lines entered during an answer */
    struct answer_position printed; /* how much of the running answer is on the ordinary screen */
    struct strbuf line;             /* the text of the last UI_LINE event */
    struct strbuf displayed;        /* the same line with marks for long pastes */
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
/* Handle Esc and Ctrl-D, which do not reach the editor at any time: during an answer Esc stops it,
 * at the prompt it does nothing, unless Readline uses it. True: *event is to be returned. */
bool terminal_filter_keys(struct ui *ui, struct ui_event *event);
/* The number of bytes at the start of the key queue that are complete keys. The others wait. */
size_t terminal_complete_keys(const struct ui *ui);

enum terminal_fed {
    TERMINAL_FED_ALL,
    TERMINAL_WAITS, /* the editor waits for the end of a paste */
    TERMINAL_EVENT, /* *event is to be returned */
};
/* Show a line that the user has entered. `displayed` has marks for long pastes. */
typedef void (*terminal_entered_fn)(struct ui *ui, struct bn_str displayed);
/* Pass the first n_keys of the key queue to the editor, which must be open. Keys that were used are
 * removed. A line that is finished becomes an event, or waits for the end of the answer. */
enum terminal_fed terminal_feed(struct ui *ui, size_t n_keys, terminal_entered_fn entered,
                                struct ui_event *event);
/* If the chat is idle, return the line that waits longest as an event. */
bool terminal_next_queued(struct ui *ui, terminal_entered_fn entered, struct ui_event *event);
/* Arrange words[1] to words[n_words], the choices of Tab, in columns; appends rows with newlines.
 * */
void terminal_choices(char **words, int n_words, int longest, size_t columns, struct strbuf *out);

/* As in ui_ops. */
void terminal_entry_done(struct ui *ui, enum entry entry);
void terminal_edit(struct ui *ui, struct bn_str text);
void terminal_interrupt(struct ui *ui);
void terminal_take_back(struct ui *ui);
bool terminal_wants_input(const struct ui *ui);
void terminal_token(struct ui *ui, const struct turn *turn);

#endif
