/*
 * Formats streaming text for a terminal: cleans it, breaks lines between words, adds looks
 * (colours, bold and dim, see enum text_look), and tracks the column of the cursor. Does no I/O:
 * the functions append the bytes to write to `out`. The caller writes them to the terminal.
 *
 * Text comes in pieces, which may end within a word or a character. Text that was written is never
 * changed. Lines of code (between fences) and, with FLOW_NO_WRAP, all lines are broken by the
 * terminal, so that they can be copied as a whole. In other lines, the last word of a piece is held
 * back until its end is known; in Chinese and Japanese, nearly every character is a word. The later
 * rows of such a line are indented like its text (markdown.h), but not those of messages. Blanks
 * are held back until the next word, and undecided marks of Markdown until they are decided
 * (markdown.h). If memory runs out, a piece of the text is lost (markdown_add), a word is broken,
 * or the functions that write a row again leave out characters.
 */
#ifndef APP_FLOW_H
#define APP_FLOW_H

#include "app/common/strbuf.h"
#include "app/terminal/text/markdown.h"

enum flow_wrap { FLOW_WRAP, FLOW_NO_WRAP };
enum flow_kind {
    FLOW_MESSAGE, /* messages of the program: no Markdown, no looks */
    FLOW_TABLE,   /* the same, but later rows begin below the last column of the line: behind its
                     last two blanks in a row, or behind two blanks if that leaves little room */
    FLOW_ANSWER,  /* Markdown */
    FLOW_THOUGHT, /* Markdown, but all characters are dim */
};

/* The control sequence that starts each look, or "". begin[TEXT_PLAIN] ends every look. */
struct flow_looks {
    const char *begin[TEXT_LOOKS];
};

/* A character. */
struct flow_cell {
    uint32_t code;
    uint8_t width, look; /* in columns; an enum text_look */
    uint8_t n_bytes;     /* in the input */
};

struct flow_cells {
    struct flow_cell *items; /* (n) */
    size_t n, cap;
};

struct flow {
    enum flow_wrap wrap;
    enum flow_kind kind;
    const struct flow_looks *looks; /* NULL: no looks */
    size_t columns;                 /* of the terminal, at least 1 */
    size_t column;             /* of the cursor; == columns: the next character begins a new row */
    struct flow_cells row;     /* the characters on the cursor's row */
    size_t n_indent;           /* how many of them are the indentation of a later row of a line */
    struct markdown_hang hang; /* of the line; without a column for FLOW_MESSAGE */
    size_t n_width_varies;     /* characters of `row` whose width differs between terminals */
    /* Grows when the terminal itself begins a new row; also for a character that is wider than a
     * row, and for text that flow_skip leaves out. */
    size_t n_wrapped;
    enum text_look look;     /* the look that the terminal is set to */
    enum text_look row_look; /* of the last character of `row` that is no blank */
    struct markdown markdown;
    /* flow_skip or flow_pause came within a line: leave out blanks, and then a newline */
    bool is_skipping;

    struct flow_held {          /* not written yet: blanks, then the beginning of a word */
        struct flow_cells word; /* characters without blanks */
        size_t width;           /* columns of the word */
        size_t n_blanks;        /* columns of the blanks */
        size_t n_blank_bytes;   /* bytes of the blanks in the input */
    } held;
};

/* `f` is zero, or was initialised before. `looks` must stay valid; NULL: no looks. */
void flow_init(struct flow *f, size_t columns, enum flow_wrap wrap, enum flow_kind kind,
               const struct flow_looks *looks);
void flow_finish(struct flow *f);

/* Append the formatted text to `out`, except what is held back. */
void flow_add(struct flow *f, struct bn_str text, struct strbuf *out);
/* Write what is held back, but drop blanks at the end. Call it at the end of the text. */
void flow_flush(struct flow *f, struct strbuf *out);
/* Call it before other text is written in the middle of this text, and call flow_begin_row after
 * that text. Blanks that are held back are dropped, unless they begin a row. A word that is held
 * back, or else the next word, then begins the new row, behind the indentation of the line. Blanks
 * and a newline before the next word are left out, but not in code. */
void flow_pause(struct flow *f);
/* Change the kind of the text that follows, which begins new Markdown. First writes what is held
 * back, except blanks at the end, which stay held back. Does nothing if the kind is the same. */
void flow_set_kind(struct flow *f, enum flow_kind kind, struct strbuf *out);
/* Number of bytes of the text that are held back. */
size_t flow_n_pending(const struct flow *f);
/* Process text that is on the screen already, without output. It begins a line. The following text
 * begins a new row and continues with the Markdown state of the skipped text. If it begins with a
 * newline, this one is left out. */
void flow_skip(struct flow *f, struct bn_str text);
/* Call it after writing other text: the cursor is now at the start of a row. */
void flow_begin_row(struct flow *f);
/* End the current look, so that the caller can write. The next character sets its look again. */
void flow_reset_look(struct flow *f, struct strbuf *out);

/* After a change of the terminal's width to `columns`, the terminal may have broken the cursor's
 * row into several. flow_rows_up returns how many rows the cursor is below the first of them. The
 * caller moves the cursor to the start of this first row and erases the screen from there; then
 * flow_rewrite_row writes the text of the cursor's row again. */
size_t flow_rows_up(const struct flow *f, size_t columns);
void flow_rewrite_row(struct flow *f, size_t columns, struct strbuf *out);
/* Write the text of the cursor's row again, without breaking it. The cursor must be at the start of
 * this row. */
void flow_write_row(struct flow *f, struct strbuf *out);

#endif
