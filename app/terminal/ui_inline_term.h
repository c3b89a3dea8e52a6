/*
 * What the terminal can do, as strings: from the terminfo data base, never from literals.
 */
#ifndef APP_UI_INLINE_TERM_H
#define APP_UI_INLINE_TERM_H

#include "app/terminal/text/flow.h"

#include <stdbool.h>

enum term_string {
    TERM_STRING_BOLD,
    TERM_STRING_DIM,
    TERM_STRING_HEADING,
    TERM_STRING_CODE,
    TERM_STRING_NORMAL,
    TERM_STRING_CLEAR,       /* the screen */
    TERM_STRING_ERASE_BELOW, /* from the cursor to the end of the screen */
    TERM_STRING_UP,          /* one row */
    TERM_STRING_INSERT_ROW,  /* above the cursor's, which goes down with all below it */
    TERM_STRING_N
};

struct term_caps {
    bool can_repaint;                /* ERASE_BELOW, UP and the movement to the right are there */
    char strings[TERM_STRING_N][48]; /* "" where the terminal has none */
};

enum term_looks {
    TERM_LOOKS_PLAIN,  /* nothing, as on a terminal that is dumb or unknown */
    TERM_LOOKS_SIMPLE, /* neither bold, dim nor colours */
    TERM_LOOKS_RICH,
};
void term_caps_read(struct term_caps *caps, enum term_looks looks);
/* The looks of answers; the strings are those of caps. */
void term_caps_paint(const struct term_caps *caps, struct flow_paint *out);
/* To the right by n columns, n >= 1; only where can_repaint. */
void term_caps_right(const struct term_caps *caps, size_t n, struct strbuf *out);

#endif
