/*
 * Text for a scrolling view: lines, each with a look (an appearance), broken into rows of a given
 * width. Does no I/O.
 *
 * Text comes in pieces, which may end within a line or a character, and is cleaned here
 * (term_text.h). Prose is broken between words and leaves one column free, because the width of
 * some characters differs between terminals. Fenced code and SCROLL_COLUMNS lines are broken at the
 * last column. Answers and thoughts are Markdown. Its marks stay in the text; they set the looks of
 * characters in an answer, and in both they distinguish fenced code from prose and tell how far the
 * later rows of a line are indented (markdown.h). If memory runs out, text is lost.
 */
#ifndef APP_SCROLL_H
#define APP_SCROLL_H

#include "app/common/strbuf.h"
#include "app/terminal/text/markdown.h"

enum scroll_look {
    SCROLL_ANSWER,
    SCROLL_THOUGHT,
    SCROLL_USER,  /* input of the user */
    SCROLL_PLAIN, /* this and the next three: messages of the program */
    SCROLL_TABLE, /* as FLOW_TABLE in flow.h */
    SCROLL_NOTE,
    SCROLL_WARNING,
};
enum scroll_break { SCROLL_WORDS, SCROLL_COLUMNS }; /* between words; at the last column */

struct scroll_line {
    struct strbuf text;  /* cleaned, with tabs as blanks */
    size_t text_columns; /* its width, as term_text_width measures it */
    struct strbuf looks; /* SCROLL_ANSWER: the enum text_look of each byte of `text`; else empty */
    enum scroll_look look;
    enum scroll_break breaks;
    struct markdown_hang hang; /* zeros: not an answer, a thought or a table */
    size_t row0, n_rows;       /* first row and number of rows in the current layout */
};

struct scroll {                /* zeros: no text */
    struct scroll_line *lines; /* (n) */
    size_t n, cap;
    size_t columns;        /* of the layout; 0: no layout yet */
    size_t n_rows;         /* of all lines */
    bool is_open;          /* the next text is appended to the last line */
    enum scroll_look look; /* of the last text that was added, as is `breaks` */
    enum scroll_break breaks;
    struct markdown markdown;
    /* The next line continues a line of prose that was skipped or paused: it has this indentation,
     * and blanks and a newline at its beginning are left out. Zeros: a new line. */
    struct markdown_hang continued;
};

void scroll_finish(struct scroll *s); /* frees the lines; *s is zero then */
/* Break all lines into rows of at most `columns` >= 1 columns. */
void scroll_layout(struct scroll *s, size_t columns);
/* Append text. If `look` or `breaks` differs from that of the last text, a new line begins. */
void scroll_add(struct scroll *s, enum scroll_look look, enum scroll_break breaks,
                struct bn_str text);
/* End the text, with the mark or the incomplete character that is held back (markdown.h): text
 * added later begins a new line, outside of fenced code. */
void scroll_end(struct scroll *s);
/* Add text that is not shown, because it was shown before: it only decides the Markdown of the text
 * that is added next with the same look and breaks. Call it after scroll_end. */
void scroll_skip(struct scroll *s, enum scroll_look look, enum scroll_break breaks,
                 struct bn_str text);
/* Call scroll_pause before and scroll_resume after other lines in the middle of a text. The text
 * keeps its Markdown and continues in a new line. If its last line has only blanks so far, they are
 * the indentation of what follows, so scroll_resume puts this line after the other lines. *out owns
 * memory until scroll_resume. */
struct scroll_paused {
    struct markdown markdown;
    struct markdown_hang continued;
    enum scroll_look look;
    enum scroll_break breaks;
    struct scroll_line line; /* if has_line: the moved line */
    bool has_line;
};
void scroll_pause(struct scroll *s, struct scroll_paused *out);
void scroll_resume(struct scroll *s, const struct scroll_paused *paused);
/* Replace a finished line, line < n, by the lines of `text`, with the same look and breaks. Returns
 * the number of the new lines; 0: out of memory, and nothing changes. */
size_t scroll_replace(struct scroll *s, size_t line, struct bn_str text);
/* End the text without what is held back, and remove the lines from the index `line` on. */
void scroll_truncate(struct scroll *s, size_t line);

/* The index of the line that a row belongs to, row < n_rows. */
size_t scroll_line_of(const struct scroll *s, size_t row);
struct scroll_position {
    size_t line, byte; /* index of the line, and offset in its text */
};
/* The row of a position in a scroll with a layout. */
size_t scroll_row_of(const struct scroll *s, struct scroll_position at);
/* The text of a row, row < n_rows, of a scroll with a layout. It points into its line and is valid
 * until text is added or removed. */
struct bn_str scroll_row(const struct scroll *s, size_t row);
/* The number of blanks to show before the text of a row. */
size_t scroll_row_indent(const struct scroll *s, size_t row);
/* The enum text_look of each byte of `part`, which scroll_row returned for a row of `line`. NULL:
 * use the look of the line for all bytes. The line is no part of an answer, or it is empty, or
 * memory ran out. */
const char *scroll_row_looks(const struct scroll_line *line, struct bn_str part);

/* The position where text will be added next. First adds a pending mark, decided as if a blank
 * followed it. */
struct scroll_position scroll_end_position(struct scroll *s);
/* Append the text from a position to the end, as plain text for a terminal of the layout's width.
 * Requires a layout. If the text has more than max_rows rows, only the last whole lines that fit
 * into max_rows rows are appended. Returns the number of rows left out. In both numbers, the line
 * of `from` counts with all its rows, also with those before `from`. */
size_t scroll_print(const struct scroll *s, struct scroll_position from, size_t max_rows,
                    struct strbuf *out);

#endif
