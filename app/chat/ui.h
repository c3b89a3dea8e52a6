/*
 * What the chat needs of a painter: an ordinary terminal (ui_inline), a pipe (ui_pipe), or the
 * whole screen. One painter is open at a time; everything here is the main thread's.
 *
 * The program's loop polls the wake pipe and, while the painter wants input, descriptor 0. Text
 * given to a painter may hold any bytes; a painter that writes to a terminal passes all of it
 * through term_text.
 */
#ifndef APP_UI_H
#define APP_UI_H

#include "app/chat/conversation/thought.h"
#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct app;
struct pattern;
struct turn;
struct ui;

enum ui_tone {
    TONE_PLAIN,   /* what a command was asked for */
    TONE_EXACT,   /* the same, but its lines are not broken between words */
    TONE_NOTE,    /* what one should know; left out by --quiet */
    TONE_WARNING, /* likewise, but pressing */
    TONE_ERROR,
};

struct ui_ops {
    const char *name;
    /* Take the terminal. BN_EUNSUPPORTED: this painter cannot run here. */
    bool (*open)(struct ui *ui, struct bn_error *err);
    /* Give it back as it was; closing twice is fine. */
    void (*close)(struct ui *ui);
    /* Nothing runs: take the next input. Called whenever the loop finds the chat idle. */
    void (*ready)(struct ui *ui);
    /* Descriptor 0 has something to read, or has ended. */
    void (*input)(struct ui *ui);
    bool (*wants_input)(const struct ui *ui);
    /* Repaint what is due; gives the milliseconds until it is next due, -1 for never. */
    int (*tick)(struct ui *ui);
    void (*resize)(struct ui *ui);
    /* Ctrl-C while nothing runs. */
    void (*interrupt)(struct ui *ui);
    void (*suspend)(struct ui *ui); /* Ctrl-Z: give the terminal back ... */
    void (*resume)(struct ui *ui);  /* ... and take it again */

    void (*notice)(struct ui *ui, enum ui_tone tone, struct bn_str text); /* one or more lines */
    /* Show where the transcript matches, and let keys go from match to match. False: this painter
     * does not move about, the matches are to be listed. */
    bool (*find)(struct ui *ui, struct pattern *pattern);
    void (*edit)(struct ui *ui,
                 struct bn_str text); /* put into the line editor, where there is one */

    void (*turn_begin)(struct ui *ui);
    void (*answer)(struct ui *ui, enum answer_part part, struct bn_str text);
    void (*token)(struct ui *ui, const struct turn *turn); /* after each token: progress, rates */
    void (*turn_end)(struct ui *ui, const struct turn *turn);
    /* The turn could not run; `turn_begin` may or may not have been called. */
    void (*turn_failed)(struct ui *ui, const struct bn_error *err);
};

struct ui {
    const struct ui_ops *ops;
    struct app *app;
    void *state; /* the painter's own */
    int log_fd;  /* what else tick shall be called for when it can be read; 0: nothing */
};

extern const struct ui_ops ui_pipe_ops;
extern const struct ui_ops ui_inline_ops;
extern const struct ui_ops ui_full_ops;

bool ui_find_nowhere(struct ui *ui, struct pattern *pattern); /* for painters that only append */

void ui_notice(struct ui *ui, enum ui_tone tone, const char *fmt, ...) BN_PRINTF(3, 4);

#endif
