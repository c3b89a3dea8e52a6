/*
 * The screen as rows of text. Only this module draws with ncurses.
 *
 * The caller sets rows one by one and then shows them together. Only differences are sent to the
 * terminal, but a changed row with characters whose width differs between terminals is sent as a
 * whole. Signals and input are handled elsewhere. Call tty_acquire before curses_open.
 */
#ifndef APP_CURSES_SCREEN_H
#define APP_CURSES_SCREEN_H

#include "app/terminal/text/markdown.h"
#include "app/terminal/tty.h"
#include "engine/base/str.h"

/* The appearance of a row. */
enum screen_look {
    SCREEN_NORMAL,
    SCREEN_BOLD,
    SCREEN_DIM,
    SCREEN_BAR, /* reverse video: the status row */
    /* The status row when the context is nearly full. */
    SCREEN_BAR_HIGH, /* status_fullness (status.h) is 1 */
    SCREEN_BAR_FULL, /* status_fullness is 2 */
};
/* SIMPLE: no colours, and only the looks from SCREEN_BAR on have attributes. */
enum screen_style { SCREEN_SIMPLE, SCREEN_RICH };

struct curses_screen;

/* Enter the full screen. BN_EUNSUPPORTED: $TERM is unset, unknown or "dumb", or the terminal cannot
 * position its cursor; the terminal then keeps its contents. BN_ENOMEM. */
bool curses_open(enum screen_style style, struct curses_screen **out, struct bn_error *err);
/* Leave the full screen and free `s`. A terminal with an alternate screen shows its earlier
 * contents again. In the background of a shell, only free `s`. NULL is fine. */
void curses_close(struct curses_screen *s);
/* Leave the full screen for a while; nothing if it was left already, or in the background.
 * curses_resume enters it again and repaints everything; the terminal must be acquired then
 * (tty_reacquire). */
void curses_suspend(void);
void curses_resume(struct curses_screen *s);

/* The screen has a new size: set all rows again. */
void curses_resize(struct curses_screen *s, struct tty_size size);
/* Set a whole row; nothing if `row` is below the screen. The text must be without control
 * characters (see term_text.h) and not wider than the screen. `looks` has an enum text_look for
 * each byte of the text, perhaps with SCREEN_MARKED: reverse video; with NULL the whole text has
 * `look`. SCREEN_BAR and the looks after it in the enum also fill the rest of the row, and `looks`
 * must be NULL with them. */
#define SCREEN_MARKED 0x40 /* a bit that no enum text_look has */
void curses_set_row(struct curses_screen *s, size_t row, enum screen_look look, struct bn_str text,
                    const char *looks);
/* Show the rows, and put the cursor at this row and column. `before` is the text of the row up to
 * the cursor. If it has characters whose width differs between terminals, it is printed again from
 * column 0, so that the cursor is after the text in this terminal. */
void curses_refresh(struct curses_screen *s, size_t row, size_t column, struct bn_str before);
void curses_invalidate(void); /* the next curses_refresh sends all rows */
void curses_beep(void);       /* sound the bell of the terminal */

#endif
