/*
 * The control strings of the terminal, read from the terminfo data base.
 */
#ifndef APP_TERMINFO_H
#define APP_TERMINFO_H

#include "app/terminal/text/flow.h"

#include <stdbool.h>

enum terminfo_string {
    /* BOLD, DIM, HEADING, CODE and REVERSE: strings that start a look. They are "" if the style is
     * not RICH or the terminal has no NORMAL. */
    TERMINFO_BOLD,
    TERMINFO_DIM,
    TERMINFO_HEADING,     /* bold, and in a colour if the terminal has eight */
    TERMINFO_CODE,        /* in another colour */
    TERMINFO_REVERSE,     /* foreground and background exchanged */
    TERMINFO_NORMAL,      /* ends every look */
    TERMINFO_CLEAR,       /* clear the screen */
    TERMINFO_ERASE_BELOW, /* erase from the cursor to the end of the screen */
    TERMINFO_ERASE_LINE,  /* erase from the cursor to the end of its row */
    TERMINFO_UP,          /* move the cursor up one row */
    TERMINFO_INSERT_ROW,  /* insert a row above the cursor's row */
    TERMINFO_STRINGS      /* number of strings */
};

struct terminfo {
    bool has_screen;  /* the terminal has the two ERASE strings, UP and movement to the right */
    bool can_repaint; /* the same, but false with TERMINFO_STYLE_NONE */
    /* "" if the terminal has no such string, or one that does not fit. Known terminals have shorter
     * ones. */
    char strings[TERMINFO_STRINGS][48];
};

enum terminfo_style {
    TERMINFO_STYLE_NONE,   /* no strings at all */
    TERMINFO_STYLE_SIMPLE, /* no bold, dim or colours; the strings for the screen and the cursor */
    TERMINFO_STYLE_RICH,
};
/* Read the strings of the terminal $TERM. If $TERM is unset, unknown, "dumb" or longer than 63
 * bytes, all strings are empty, and has_screen and can_repaint are false. */
void terminfo_read(struct terminfo *caps, enum terminfo_style style);
/* Append the string with this terminfo name to the text in `out`, a buffer of out_bytes bytes.
 * Nothing is appended if the terminal lacks the string or it does not fit. Call it after newterm or
 * setupterm, as curses_open and terminfo_read do. */
void terminfo_append(const char *name, char *out, size_t out_bytes);
/* Set *out to the strings for the looks of an answer. They point into caps. */
void terminfo_text_looks(const struct terminfo *caps, struct flow_looks *out);
/* Append the string that moves the cursor n >= 1 columns to the right; nothing without
 * can_repaint. */
void terminfo_add_right(const struct terminfo *caps, size_t n, struct strbuf *out);

#endif
