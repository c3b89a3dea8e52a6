/*
 * The code that the two painters of a terminal, ui_inline and ui_full, share: the texts of banner,
 * status row and notices, the key queue, and the handling of entered lines. Each painter displays
 * these texts in its own way. Main thread only.
 */
#ifndef APP_UI_TERMINAL_H
#define APP_UI_TERMINAL_H

#include "app/chat/chat.h"
#include "app/terminal/key_queue.h"
#include "app/terminal/line/history.h"
#include "app/terminal/line/line_edit.h"
#include "app/terminal/text/flow.h"
#include "app/ui/entry_queue.h"

extern const struct ui_ops ui_inline_ops;
extern const struct ui_ops ui_full_ops;

#define TERMINAL_PROMPT ">>> "

/* A position in the running answer. */
struct answer_position {
    size_t n_thought, n_shown; /* bytes of turn.thought and of turn.shown (app/chat/turn.h) */
};

/* The state that stays when the user changes from one painter to the other. struct app owns it. Its
 * first four fields are set before the first painter opens. */
struct ui_terminal {
    struct history history; /* of the line editor */
    /* Tab completion, as in struct line_host. */
    void (*complete)(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out);
    /* Whether this line is a command that may run during an answer. */
    bool (*runs_now)(void *ud, struct bn_str line);
    void *callback_ud; /* `ud` of these two functions */

    struct key_queue keys;         /* keys that the editor has not used yet */
    struct bn_error history_error; /* the history file cannot be written; code 0: no such error, or
                                      it was shown */
    struct entry_queue queue;      /* lines entered during an answer */
    struct entry_queue unsent;     /* those that a stop took out of it; turn_end shows them */
    /* The running answer up to here is on the ordinary screen. The inline painter sets this field
     * when it closes during an answer; while that painter is open, the field is out of date. */
    struct answer_position printed;
    struct strbuf line;      /* the text of the last UI_LINE event */
    struct strbuf displayed; /* the same line with placeholders for long pastes (line_edit.h) */
    bool is_hung_up;         /* the terminal is gone, or the program ends in the background */
    bool has_shown_exit;     /* how to leave was shown since the last UI_LINE event */
    bool is_resuming;        /* ui_terminal_resume_answer calls turn_begin */
    int fullness;            /* status_fullness after the last answer, or less since then */
};
/* Write history lines that wait to the history file, and free all fields. Call it after the painter
 * has closed. */
void ui_terminal_finish(struct ui_terminal *t);

/* Set up the editor. The first call in a run of the program also shows the banner and loads the
 * history file. */
void ui_terminal_begin(struct ui *ui);
/* Leave the editor. With UI_CLOSE_CHANGE the unfinished text stays for the next line_begin; with
 * UI_CLOSE_END the editor is freed. */
void ui_terminal_end(enum ui_close how);

/* status_fullness of the chat now: how full the context is, from 0 to 2. */
int ui_terminal_fullness(const struct ui *ui);
/* Format the status row, as status_format in status.h. */
void ui_terminal_status(const struct ui *ui, size_t width, char *out, size_t out_bytes);
/* After an answer, call `show` with the reason for its end, the table of /probs, and the
 * statistics, as far as they exist and the options allow, and with the lines that were not sent
 * because the user stopped the answer. */
void ui_terminal_show_end(struct ui *ui, const struct turn *turn, ui_show_fn show);
/* For a painter without a status row between two turns: after an answer, call `show` with a warning
 * if the context has become 80 or 95 % full. Call ui_terminal_note_fullness before each answer:
 * a command may have freed space since the last one. */
void ui_terminal_note_fullness(struct ui *ui);
void ui_terminal_show_fullness(struct ui *ui, const struct turn *turn, ui_show_fn show);
/* Show why a turn failed and what the user can do, and return queued lines to the editor. */
void ui_terminal_show_failure(struct ui *ui, const struct bn_error *err);
/* For a painter that opens during an answer: call ops->turn_begin, then `add` for the thought and
 * for the answer. `printed` is the text that is on the ordinary screen already, `rest` the text
 * after it; each may be empty. */
typedef void (*ui_terminal_add_fn)(struct ui *ui, enum answer_part part, struct bn_str printed,
                                   struct bn_str rest);
void ui_terminal_resume_answer(struct ui *ui, ui_terminal_add_fn add);

bool ui_terminal_uses_colour(const struct ui *ui);    /* whether to use colours, bold and dim */
enum flow_wrap ui_terminal_wrap(const struct ui *ui); /* FLOW_NO_WRAP: --no-wrap or --plain */

/* Read the available bytes of descriptor 0, as key_queue_read. Returns the number of bytes added to
 * the key queue. If the terminal is gone, is_hung_up is set, and the result is 0. */
size_t ui_terminal_read_keys(struct ui *ui);
/* Remove the Esc and Ctrl-D keys that the editor must not get. While a turn runs or waits: each
 * Ctrl-D, and the Esc keys at the end of the queue, which stop the turn. At other times: only these
 * Esc keys, unless line_uses_escape. Esc keys are removed only when KEY_ESCAPE_SECONDS have passed.
 * Pastes do not change. True: the painter returns *event. False: *event may have changed. */
bool ui_terminal_filter_keys(struct ui *ui, struct ui_event *event);
/* The number of bytes at the start of the key queue that are complete keys. The other bytes may be
 * the beginning of an escape sequence. When KEY_ESCAPE_SECONDS have passed, all are complete. */
size_t ui_terminal_complete_keys(const struct ui *ui);

enum ui_terminal_fed {
    TERMINAL_FED_ALL, /* no event; the rest of the key queue can be fed now */
    TERMINAL_WAITS,   /* no event; a key or a paste is incomplete: wait for more bytes */
    TERMINAL_EVENT,   /* the painter returns *event */
};
/* Show a line that becomes an event now. `displayed` has placeholders for long pastes. */
typedef void (*ui_terminal_entered_fn)(struct ui *ui, struct bn_str displayed);
/* Pass the first n_keys bytes of the key queue to the editor, which must be open, and remove the
 * bytes that it has processed. A finished line becomes a UI_LINE event. While a turn runs or waits,
 * a line that runs_now refuses is put into the queue of lines, and a blank line is dropped. Without
 * memory, a line is put back into the editor. Ctrl-D on an empty line becomes UI_END. A paste whose
 * end mark has not arrived KEY_PASTE_SECONDS after the last byte ends there. */
enum ui_terminal_fed ui_terminal_feed(struct ui *ui, size_t n_keys, ui_terminal_entered_fn entered,
                                      struct ui_event *event);
/* If no turn runs or waits, return the first line of the queue as a UI_LINE event. False: no event.
 * If there is no memory, the line is put into the editor. */
bool ui_terminal_next_queued(struct ui *ui, ui_terminal_entered_fn entered, struct ui_event *event);
/* Append the choices of Tab, words[1] to words[n_words], as rows of at most `columns` columns, each
 * with a newline. `longest` as in struct line_display. A path is shown without its directories, a
 * word that is too wide is cut. */
void ui_terminal_choices(char **words, int n_words, int longest, size_t columns,
                         struct strbuf *out);

/* As in ui_ops. */
void ui_terminal_entry_done(struct ui *ui, enum entry_result entry);
bool ui_terminal_edit(struct ui *ui, struct bn_str text);
/* After /continue, call `skip` for the earlier parts of the answer, which are on the screen
 * already: they decide, for example, whether the text that follows is code. Hidden thoughts are
 * left out. */
void ui_terminal_skip_earlier(struct ui *ui,
                              void (*skip)(struct ui *, enum answer_part, struct bn_str));
void ui_terminal_interrupt(struct ui *ui);
void ui_terminal_unqueue_all(struct ui *ui);
bool ui_terminal_wants_input(const struct ui *ui);
void ui_terminal_token(struct ui *ui, const struct turn *turn);

#endif
