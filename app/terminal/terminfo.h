/*
 * The control strings of the terminal, read from the terminfo data base.
 */
#ifndef APP_TERMINFO_H
#define APP_TERMINFO_H

#include "app/terminal/text/flow.h"

#include <stdbool.h>

enum terminfo_string {
    TERMINFO_BOLD,
    TERMINFO_DIM,
    TERMINFO_HEADING,
    TERMINFO_CODE,
    TERMINFO_NORMAL,
    TERMINFO_CLEAR,       /* the screen */
    TERMINFO_ERASE_BELOW, /* from the cursor to the end of the screen */
    TERMINFO_ERASE_LINE,  /* from the cursor to the end of its row */
    TERMINFO_UP,          /* one row */
    TERMINFO_INSERT_ROW,  /* insert a row above the cursor's row */
    TERMINFO_STRINGS
};

struct terminfo {
    bool can_repaint; /* the terminal has the two ERASE strings, UP and movement to the right */
    char strings[TERMINFO_STRINGS][48]; /* "" if the terminal has no such string */
};

enum terminfo_style {
    TERMINFO_STYLE_NONE,   /* no strings at all, as on a dumb or unknown terminal */
    TERMINFO_STYLE_SIMPLE, /* no bold, dim or colours */
    TERMINFO_STYLE_RICH,
};
void terminfo_read(struct terminfo *caps, enum terminfo_style looks);
/* Append the string with this terminfo name to out, a text in out_bytes bytes. Nothing is appended
 * if the terminal lacks the string or it does not fit. Call terminfo_read or curses_open first. */
void terminfo_append(const char *name, char *out, size_t out_bytes);
/* The strings for the looks of an answer. They point into caps. */
void terminfo_text_looks(const struct terminfo *caps, struct flow_looks *out);
/* Append a movement by n >= 1 columns to the right. Needs can_repaint. */
void terminfo_add_right(const struct terminfo *caps, size_t n, struct strbuf *out);

#endif
