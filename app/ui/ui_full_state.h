/*
 * The state of the full-screen painter, for the files ui_full*.c only. Main thread.
 */
#ifndef APP_UI_FULL_STATE_H
#define APP_UI_FULL_STATE_H

#include "app/terminal/curses_screen.h"
#include "app/terminal/line/input_rows.h"
#include "app/terminal/text/scroll.h"
#include "app/ui/ui_terminal.h"

/* When full_paint paints the next frame. SOON: FRAME_SECONDS (ui_full_paint.c) after the last. */
enum full_due { DUE_NOTHING, DUE_SOON, DUE_NOW };

/* The matches of /find; n is 0 if no search is active. */
struct full_find {
    struct full_hit {
        struct scroll_position begin; /* in full_ui.text */
        size_t end;                   /* offset in the text of the line */
    } * hits;                         /* (n), ascending */
    size_t n, cap;
    size_t at; /* index of the match that is shown */
    char key;  /* the last n or N, pressed at `pressed`, in clock_seconds; 0: none */
    double pressed;
};

/* Standard error is redirected into a pipe, because its text would disturb the screen. The painter
 * shows this text as notices. */
struct stderr_pipe {
    int fd;              /* read end of the pipe; 0: not redirected */
    int saved;           /* while redirected: a copy of the descriptor of the real standard error */
    struct strbuf bytes; /* read from the pipe and not shown yet */
};

struct full_ui {
    struct curses_screen *screen;
    struct tty_size size;
    struct stderr_pipe stderr_pipe;

    struct scroll text;             /* the conversation, with commands and notices */
    struct scroll_position printed; /* full_close prints the text after it on the ordinary screen */
    bool is_scrolled;               /* the view stays at top_line and top_row; false: at the end */
    size_t top_line;                /* index of the first line of the view */
    size_t top_row;                 /* first visible row of this line, counted from 0 */
    size_t n_shown;                 /* rows of the view in the last frame */
    struct input_rows input;        /* the line editor */
    struct full_find find;
    struct strbuf choices; /* rows with the choices of Tab, or empty */
    struct strbuf queued;  /* rows with the lines of the entry queue */

    char status[256];            /* text of the status row */
    int fullness;                /* status_fullness */
    double status_made, painted; /* clock_seconds of the last status row, and of the last frame */
    enum full_due due;

    bool in_answer;        /* between full_turn_begin and the end of the turn */
    size_t answer_line;    /* index of the first line of the answer */
    enum answer_part part; /* of the text that was added last */
};

/* Paint if a frame is due. Returns the milliseconds until the next call is due, -1 if none is. */
int full_paint(struct ui *ui);
void full_resize(struct ui *ui); /* adapt to the size of the terminal, if it has changed */
/* Move the view by n_rows rows; SIZE_MAX: to the beginning or the end of the text. */
enum full_direction { FULL_UP, FULL_DOWN };
void full_scroll(struct full_ui *u, enum full_direction direction, size_t n_rows);

bool full_find(struct ui *ui, struct pattern *pattern); /* as in ui.h */
void full_find_end(struct full_ui *u);                  /* end the search, if one is active */
bool full_is_finding(const struct full_ui *u);          /* matches of /find are shown */
/* Handle a key while matches are shown: n and N move, other keys end the search. False: no matches
 * are shown, or the key ended the search and is for the editor (not Esc). */
bool full_find_key(struct full_ui *u, char key);
/* The n or N that was just pressed, if it may be the first letter of a word that the user types;
 * else 0. */
char full_find_letter(const struct full_ui *u);

/* Add a message or a command of the user to the text, and move the view to the end. */
void full_add_user_text(struct ui *ui, struct bn_str text);
/* Let this painter draw the editor as part of the frame; NULL: no longer. */
void full_attach_editor(struct full_ui *u);
void full_open_line(void); /* open the editor unless it is open */
/* As in ui_ops. */
void full_input(struct ui *ui);
bool full_next_event(struct ui *ui, struct ui_event *event);

#endif
