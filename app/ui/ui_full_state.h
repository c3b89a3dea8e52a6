/*
 * The full-screen painter's state, for its files only. Main thread.
 */
#ifndef APP_UI_FULL_STATE_H
#define APP_UI_FULL_STATE_H

#include "app/terminal/line/input_rows.h"
#include "app/terminal/text/scroll.h"
#include "app/terminal/ui_full_screen.h"
#include "app/ui/terminal_chat.h"
#include "app/ui/ui_full_log.h"

enum full_due { DUE_NOTHING, DUE_SOON, DUE_NOW };

/* What /find found; n 0: nothing is being looked for. */
struct full_find {
    size_t *lines; /* (n) of the transcript, ascending */
    size_t n, cap;
    size_t at; /* the one that is shown */
};

struct full_ui {
    struct screen *screen;
    struct tty_size size;
    struct error_log log;

    struct scroll text;
    struct scroll_place printed; /* what is before it stands on the ordinary screen already */
    bool is_scrolled;            /* the view stays at top_line, top_row; else at the end */
    size_t top_line;             /* the view's first line ... */
    size_t top_row;              /* ... and which of its rows */
    size_t n_shown;              /* rows of the transcript's pane when last painted */
    struct input_rows input;
    struct full_find find;
    struct strbuf choices; /* what Tab could complete, a row a line; empty: nothing to show */

    char status[256];
    int pressure;
    double status_made, painted; /* clock_seconds */
    enum full_due due;

    bool said_busy;

    bool in_answer;
    size_t answer_line; /* where it begins */
    enum answer_part part;
};

/* Paint what is due; gives the milliseconds until something is, -1 for never. */
int full_paint(struct ui *ui);
void full_resize(struct ui *ui);
/* Move the view by rows; SIZE_MAX: to the beginning or the end. */
enum full_way { FULL_UP, FULL_DOWN };
void full_scroll(struct full_ui *u, enum full_way way, size_t n_rows);

/* Move the view so that this line is in it. */
void full_show_line(struct full_ui *u, size_t line);

bool full_find(struct ui *ui, struct pattern *pattern); /* as in ui.h */
void full_find_end(struct full_ui *u);
/* A typed key while matches are gone through: n and N, Esc ends it. False: it is for the editor. */
bool full_find_key(struct full_ui *u, char key);
bool full_find_is_at(const struct full_ui *u, size_t line);
/* "match 2 of 7, n N Esc | " for the status row, or "". */
void full_find_hint(const struct full_ui *u, char *out, size_t out_bytes);

/* What was entered, in the transcript. */
void full_add_said(struct ui *ui, struct bn_str text);
/* The editor as part of the frame; NULL: no longer. */
void full_edit_with(struct full_ui *u);
void full_open_line(void); /* unless it is open */
/* As in ui_ops. */
void full_input(struct ui *ui);
bool full_next_event(struct ui *ui, struct ui_event *event);

#endif
