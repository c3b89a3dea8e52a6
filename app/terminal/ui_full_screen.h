/*
 * The screen as rows of cells: the only file that speaks to ncurses.
 *
 * Rows are set one by one, then shown together; what has not changed is not sent. Signals and the
 * terminal's input are others'; tty_take comes before full_screen_open.
 */
#ifndef APP_UI_FULL_SCREEN_H
#define APP_UI_FULL_SCREEN_H

#include "app/terminal/text/markdown.h"
#include "app/terminal/tty.h"
#include "engine/base/str.h"

enum screen_look {
    SCREEN_NORMAL,
    SCREEN_BOLD,
    SCREEN_DIM,
    SCREEN_BAR, /* the status row; the next two, the more pressing it is */
    SCREEN_BAR_HIGH,
    SCREEN_BAR_FULL,
};
enum screen_style { SCREEN_SIMPLE, SCREEN_RICH }; /* SIMPLE: neither bold, dim nor colours */

struct screen;

/* BN_EUNSUPPORTED: the terminal is unknown or cannot place its cursor; nothing was written. */
bool full_screen_open(enum screen_style style, struct screen **out, struct bn_error *err);
/* Back to the ordinary screen. NULL is fine. */
void full_screen_close(struct screen *s);
/* The same for a while: everything is painted anew after full_screen_again. */
void full_screen_leave(struct screen *s);
void full_screen_again(struct screen *s);

void full_screen_resize(struct screen *s, struct tty_size size);
/* A whole row; text is clean (term_text) and not wider than the screen. `looks` are those of its
 * bytes (enum text_look), NULL: all have `look`. */
void full_screen_row(struct screen *s, size_t row, enum screen_look look, struct bn_str text,
                     const char *looks);
/* Show the rows, with the cursor here. */
void full_screen_show(struct screen *s, size_t row, size_t column);
void full_screen_paint_anew(struct screen *s); /* the next full_screen_show sends everything */
void full_screen_beep(void);

#endif
