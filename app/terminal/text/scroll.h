/*
 * Text that scrolls: logical lines with a look each, broken into rows for a width. Pure.
 *
 * Text comes in pieces, of any bytes; it is cleaned here. Rows are broken between words, with one
 * column spared as terminals disagree about some widths; lines of code and lines that shall stay
 * whole are broken at the last column. Answers are Markdown, whose marks stay and give looks. All
 * functions survive a lack of memory by losing text.
 */
#ifndef APP_SCROLL_H
#define APP_SCROLL_H

#include "app/common/strbuf.h"
#include "app/terminal/text/markdown.h"

enum scroll_look {
    SCROLL_ANSWER,
    SCROLL_THOUGHT,
    SCROLL_SAID, /* what the user entered */
    SCROLL_PLAIN,
    SCROLL_NOTE,
    SCROLL_WARNING,
};
enum scroll_break { SCROLL_WORDS, SCROLL_COLUMNS };

struct scroll_line {
    struct strbuf text;  /* cleaned, tabs as blanks */
    struct strbuf looks; /* of an answer: enum text_look of each byte; else empty */
    enum scroll_look look;
    enum scroll_break breaks;
    size_t row0, n_rows; /* in the present layout */
};

struct scroll {
    struct scroll_line *lines; /* (n) */
    size_t n, cap;
    size_t columns; /* of the layout; 0: none yet */
    size_t n_rows;
    struct strbuf bytes;   /* an incomplete character at the end */
    bool is_open;          /* the next text goes to the end of the last line */
    enum scroll_look look; /* of the last text ... */
    enum scroll_break breaks;
    struct markdown markdown; /* ... whose marks may go on */
};

void scroll_finish(struct scroll *s);
/* Break everything anew; columns >= 1. */
void scroll_layout(struct scroll *s, size_t columns);
/* Text at the end; a piece with another look begins a new line. */
void scroll_add(struct scroll *s, enum scroll_look look, enum scroll_break breaks,
                struct bn_str text);
/* What follows begins a new line, outside of code. */
void scroll_end(struct scroll *s);
/* Forget the lines from `line` on. */
void scroll_cut(struct scroll *s, size_t line);

/* The line of a row (row < n_rows), and the row's part of its text. */
size_t scroll_line_of(const struct scroll *s, size_t row);
struct bn_str scroll_row(const struct scroll *s, size_t row);
/* The looks of each byte of that part; NULL: all have the line's. */
const char *scroll_row_looks(const struct scroll_line *line, struct bn_str part);

/* Where text will be added next; a mark that is not decided yet is, as if a blank followed. */
struct scroll_place {
    size_t line, byte;
};
struct scroll_place scroll_here(struct scroll *s);
/* From a place to the end as plain text for a terminal of the layout's width, at most `max_rows`
 * rows: the last ones. Gives how many rows were left out. */
size_t scroll_print(const struct scroll *s, struct scroll_place from, size_t max_rows,
                    struct strbuf *out);

#endif
