/*
 * The interface of a painter. There are three painters: ui_inline (the ordinary screen of a
 * terminal), ui_full (the whole screen) and ui_pipe (pipes and scripts). One is open at a time.
 * Main thread only.
 *
 * The event loop polls the wake pipe, ui.stderr_fd and, while wants_input is true, descriptor 0. A
 * painter turns input into events, and the event loop handles them.
 *
 * Text for a painter may contain any bytes. A painter that writes to a terminal passes all text
 * through term_text.
 */
#ifndef APP_UI_H
#define APP_UI_H

#include "app/chat/conversation/thought.h"
#include "app/common/report.h"
#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct chat;
struct options;
struct pattern;
struct ui_terminal;
struct turn;
struct ui;

enum ui_tone {
    TONE_PLAIN,   /* the result of a command */
    TONE_TABLE,   /* the same; lines of columns, with at least two blanks between them */
    TONE_EXACT,   /* the same; lines are not wrapped between words */
    TONE_USER,    /* the same; an earlier message of the user */
    TONE_NOTE,    /* information; --quiet hides it */
    TONE_WARNING, /* a warning; --quiet hides it */
    TONE_ERROR,
};

enum ui_event_kind {
    UI_LINE,    /* `text` is a command or a message */
    UI_MESSAGE, /* `text` is a message even if it begins with a slash; @paths in it are attached */
    UI_PROMPT,  /* `text` is a message that is sent exactly as it is */
    UI_STOP,    /* stop the answer */
    UI_CHANGE_PAINTER, /* change to the painter named `painter` */
    UI_END,     /* end the program with exit code `code`, unless it ends already with another one */
    UI_ABORT,   /* stop the answer and end with `code`, which replaces an earlier exit code */
    UI_HANG_UP, /* the terminal is gone: end the program; from now on every event is this one */
};

struct ui_event {
    enum ui_event_kind kind;
    struct bn_str text;  /* owned by the painter, valid until the next call of next_event */
    const char *painter; /* UI_CHANGE_PAINTER: ui_ops.name */
    enum exit_code code;
};

/* The result of an entered line. */
enum entry_result {
    ENTRY_DONE,
    ENTRY_FAILED,   /* a command that failed; the reason was shown */
    ENTRY_NO_FILE,  /* the same, because a file cannot be read or written */
    ENTRY_TOO_LONG, /* the same, because a text does not fit the context */
    ENTRY_UNKNOWN,  /* no such command; a suggestion was shown */
    ENTRY_UNSENT, /* a message that was not sent; it returns to the line editor, if there is one */
};

enum ui_close {
    UI_CLOSE_END,    /* the program ends */
    UI_CLOSE_CHANGE, /* another painter opens next */
};

/* No member is optional. A painter without a line editor ignores `edit` and `unqueue_all`. */
struct ui_ops {
    const char *name;
    bool is_terminal; /* false: no line editor, and no change to another painter */

    /* Set up the terminal. BN_EUNSUPPORTED: this painter cannot run here. After any error the
     * painter is not open. */
    bool (*open)(struct ui *ui, struct bn_error *err);
    /* Restore the terminal. Does nothing if the painter is not open. */
    void (*close)(struct ui *ui, enum ui_close how);
    /* Show that input is expected. Called in each round of the event loop in which the chat is not
     * busy (chat_is_busy). */
    void (*ready)(struct ui *ui);
    /* Whether the event loop polls descriptor 0 now. */
    bool (*wants_input)(const struct ui *ui);
    /* Read descriptor 0, which has bytes or has ended. */
    void (*input)(struct ui *ui);
    /* Get the next event of the input; false if there is none. The event loop calls it until it
     * returns false, or an event ends the program or changes the painter. */
    bool (*next_event)(struct ui *ui, struct ui_event *event);
    /* The result of the last UI_LINE or UI_MESSAGE event. Called once for each of them; a
     * program that ends drops the later ones. */
    void (*entry_done)(struct ui *ui, enum entry_result entry);
    /* Repaint if a repaint is due. Returns the milliseconds until it must be called again, -1 if no
     * call is due. */
    int (*tick)(struct ui *ui);
    void (*resize)(struct ui *ui);    /* the terminal has a new size */
    void (*interrupt)(struct ui *ui); /* Ctrl-C of a user while no turn runs or waits */
    /* Empty the queue. A single line returns to the line editor if nothing is typed there, unless
     * the question of the turn returns there (before the first token). Otherwise the input
     * history has the lines, and a notice shows them: while a turn runs or waits, at its end. */
    void (*unqueue_all)(struct ui *ui);
    /* Restore the terminal for Ctrl-Z or an external editor, and set it up again afterwards. */
    void (*suspend)(struct ui *ui);
    void (*resume)(struct ui *ui);

    void (*notice)(struct ui *ui, enum ui_tone tone, struct bn_str text); /* one or more lines */
    /* Show a message of the user that was not typed into the editor. */
    void (*show_message)(struct ui *ui, struct bn_str text);
    /* Show the first match in the displayed text and let keys move between matches, or show that
     * nothing matches. The pattern is used only during the call. False: this painter cannot move;
     * the caller lists the matches. */
    bool (*find)(struct ui *ui, struct pattern *pattern);
    /* Put a message into the line editor. If the user has typed other text there, a notice shows
     * the message, and the input history has it. Returns whether it is in the editor. */
    bool (*edit)(struct ui *ui, struct bn_str text);

    void (*turn_begin)(struct ui *ui);
    void (*answer)(struct ui *ui, enum answer_part part, struct bn_str text);
    /* Update progress and rates. Called for each token, after `answer` got the text that the token
     * completes (perhaps none), and for text that the detokeniser held back until the end. */
    void (*token)(struct ui *ui, const struct turn *turn);
    void (*turn_end)(struct ui *ui, const struct turn *turn);
    /* The turn failed: before `turn_begin`, after it or, if memory ran out at the end, even after
     * `turn_end`. */
    void (*turn_failed)(struct ui *ui, const struct bn_error *err);
};

struct ui {
    const struct ui_ops *ops;
    const struct options *options;
    const struct chat *chat;
    struct ui_terminal *terminal; /* shared by the painters of a terminal */
    void *state;                  /* private to the painter */
    /* Read end of the pipe to which the painter has redirected standard error; tick reads it. 0:
     * not redirected. */
    int stderr_fd;
    enum exit_code first_failure; /* --keep-going: the exit code of the first failure */
};

/* A function that shows a text, for example the member `notice` of a painter. */
typedef void (*ui_show_fn)(struct ui *ui, enum ui_tone tone, struct bn_str text);

/* The `find` of painters that cannot move between matches: returns false. */
bool ui_find_nowhere(struct ui *ui, struct pattern *pattern);

/* Whether --quiet hides a notice of this tone. */
bool ui_is_hidden(const struct ui *ui, enum ui_tone tone);

/* Show a formatted notice. It is cut after 999 bytes. */
void ui_notice(struct ui *ui, enum ui_tone tone, const char *fmt, ...) BN_PRINTF(3, 4);
/* A message that was not sent is in the line editor again, so typed text would become part of it.
 * Show what the user can do. Does nothing for a painter without a line editor. */
void ui_note_returned(struct ui *ui);

#endif
