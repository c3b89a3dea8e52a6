/*
 * The screen as rows of text. Only this module draws with ncurses.
 *
 * The caller sets rows one by one and then shows them together; only differences are sent to the
 * terminal. Signals and input are handled elsewhere. Call tty_acquire before curses_open.
 */
#ifndef APP_CURSES_SCREEN_H
#define APP_CURSES_SCREEN_H

#include "app/terminal/text/markdown.h"
#include "app/terminal/tty.h"
#include "engine/base/str.h"

enum screen_look {
    SCREEN_NORMAL,
    SCREEN_BOLD,
    SCREEN_DIM,
    SCREEN_BAR, /* the status row; the next two are for a context that is nearly full */
    SCREEN_BAR_HIGH,
    SCREEN_BAR_FULL,
};
enum screen_style { SCREEN_SIMPLE, SCREEN_RICH }; /* SIMPLE: no bold, dim or colours */

struct curses_screen;

/* BN_EUNSUPPORTED: the terminal is unknown or cannot position its cursor; nothing was written. */
bool curses_open(enum screen_style style, struct curses_screen **out, struct bn_error *err);
/* Return to the ordinary screen. NULL is fine. */
void curses_close(struct curses_screen *s);
/* Return to the ordinary screen for a while. curses_resume repaints everything. */
void curses_suspend(void);
void curses_resume(struct curses_screen *s);

void curses_resize(struct curses_screen *s, struct tty_size size);
/* Set a whole row. The text must be clean (term_text) and not wider than the screen. `looks` has an
 * enum text_look for each byte; NULL: all bytes have `look`. */
void curses_set_row(struct curses_screen *s, size_t row, enum screen_look look, struct bn_str text,
                    const char *looks);
/* Show the rows, and put the cursor at this row and column. `before` is the text of the row up to
 * there. If terminals disagree about its width, the cursor is put behind this text. */
void curses_refresh(struct curses_screen *s, size_t row, size_t column, struct bn_str before);
void curses_invalidate(void); /* the next curses_refresh sends all rows */
void curses_beep(void);

#endif
