/*
 * Text for a scrolling view: logical lines with a look each, broken into rows of a given width.
 * Does no I/O.
 *
 * Text comes in pieces of any bytes and is cleaned here. Prose is broken between words and leaves
 * one column free, because terminals disagree about some widths. Code and SCROLL_COLUMNS lines are
 * broken at the last column. Answers and thoughts are Markdown; its marks are kept and set the
 * looks. If memory runs out, text is lost.
 */
#ifndef APP_SCROLL_H
#define APP_SCROLL_H

#include "app/common/strbuf.h"
#include "app/terminal/text/markdown.h"

enum scroll_look {
    SCROLL_ANSWER,
    SCROLL_THOUGHT,
    SCROLL_USER, /* input of the user */
    SCROLL_PLAIN,
    SCROLL_NOTE,
    SCROLL_WARNING,
};
enum scroll_break { SCROLL_WORDS, SCROLL_COLUMNS };

struct scroll_line {
    struct strbuf text;  /* cleaned, with tabs as blanks */
    struct strbuf looks; /* SCROLL_ANSWER: enum text_look of each byte; else empty */
    enum scroll_look look;
    enum scroll_break breaks;
    size_t row0, n_rows; /* in the current layout */
};

struct scroll {
    struct scroll_line *lines; /* (n) */
    size_t n, cap;
    size_t columns; /* of the layout; 0: no layout yet */
    size_t n_rows;
    bool is_open;          /* the next text is appended to the last line */
    enum scroll_look look; /* of the last text */
    enum scroll_break breaks;
    struct markdown markdown;
};

void scroll_finish(struct scroll *s);
/* Break all lines again; columns >= 1. */
void scroll_layout(struct scroll *s, size_t columns);
/* Append text. A change of look or breaks begins a new line. */
void scroll_add(struct scroll *s, enum scroll_look look, enum scroll_break breaks,
                struct bn_str text);
/* End the text: what follows begins a new line, outside of fenced code. */
void scroll_end(struct scroll *s);
/* Remove the lines from `line` on. */
void scroll_truncate(struct scroll *s, size_t line);

/* scroll_line_of: the line that a row belongs to (row < n_rows). scroll_row: the text of a row. */
size_t scroll_line_of(const struct scroll *s, size_t row);
struct bn_str scroll_row(const struct scroll *s, size_t row);
/* The look of each byte of a row; NULL: all bytes have the look of the line. */
const char *scroll_row_looks(const struct scroll_line *line, struct bn_str part);

/* The position where text will be added next. Decides a pending mark as if a blank followed. */
struct scroll_position {
    size_t line, byte;
};
struct scroll_position scroll_end_position(struct scroll *s);
/* Append the text from a position to the end, as plain text for a terminal of the layout's width:
 * at most the last max_rows rows. Returns the number of rows left out. */
size_t scroll_print(const struct scroll *s, struct scroll_position from, size_t max_rows,
                    struct strbuf *out);

#endif
