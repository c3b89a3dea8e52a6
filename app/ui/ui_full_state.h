/*
 * The state of the full-screen painter, for the files ui_full*.c only. Main thread.
 */
#ifndef APP_UI_FULL_STATE_H
#define APP_UI_FULL_STATE_H

#include "app/terminal/curses_screen.h"
#include "app/terminal/line/input_rows.h"
#include "app/terminal/text/scroll.h"
#include "app/ui/terminal_chat.h"

enum full_due { DUE_NOTHING, DUE_SOON, DUE_NOW };

/* The matches of /find; n is 0 if no search is active. */
struct full_find {
    size_t *lines; /* (n) line numbers in the transcript, ascending */
    size_t n, cap;
    size_t at; /* index of the match that is shown */
};

/* Standard error, kept off the screen: it is redirected into a pipe. */
struct error_log {
    int fd;    /* read end of the pipe; 0: not redirected */
    int saved; /* the real standard error */
    struct strbuf bytes;
};

struct full_ui {
    struct curses_screen *screen;
    struct tty_size size;
    struct error_log log;

    struct scroll text;
    struct scroll_position printed; /* text before it is on the ordinary screen already */
    bool is_scrolled;               /* the view stays at top_line and top_row; false: at the end */
    size_t top_line;                /* first line of the view ... */
    size_t top_row;                 /* ... and which of its rows */
    size_t n_shown;                 /* rows of the transcript in the last frame */
    struct input_rows input;
    struct full_find find;
    struct strbuf choices; /* rows with what Tab can complete, or empty */
    struct strbuf queued;  /* rows with the lines that wait */

    char status[256];
    int pressure;
    double status_made, painted; /* clock_seconds */
    enum full_due due;

    bool in_answer;
    size_t answer_line; /* first line of the answer */
    enum answer_part part;
};

/* Paint if a frame is due. Returns the milliseconds until the next one, -1 for never. */
int full_paint(struct ui *ui);
void full_resize(struct ui *ui);
/* Move the view by n_rows; SIZE_MAX: to the beginning or the end. */
enum full_direction { FULL_UP, FULL_DOWN };
void full_scroll(struct full_ui *u, enum full_direction direction, size_t n_rows);

bool full_find(struct ui *ui, struct pattern *pattern); /* as in ui.h */
void full_find_end(struct full_ui *u);
bool full_is_finding(const struct full_ui *u); /* matches are shown, and Esc ends the search */
/* Handle a key while matches are shown: n and N move, other keys end the search. False: the key is
 * for the editor. */
bool full_find_key(struct full_ui *u, char key);

/* Add input of the user to the transcript. */
void full_add_user_text(struct ui *ui, struct bn_str text);
/* Draw the editor as part of the frame; NULL: stop it. */
void full_attach_editor(struct full_ui *u);
void full_open_line(void); /* open the editor unless it is open */
/* As in ui_ops. */
void full_input(struct ui *ui);
bool full_next_event(struct ui *ui, struct ui_event *event);

#endif
