/*
 * Writes streaming text to a terminal: cleans it, breaks lines between words, adds colours, and
 * tracks the column of the cursor. Does no I/O.
 *
 * Text comes in pieces of any bytes. The output is bytes to write, and written text is never
 * changed. The last word of a piece is held back until its end is known. Lines of code (between
 * fences) and, with FLOW_NO_WRAP, all lines are broken by the terminal, so that they can be copied
 * as a whole.
 */
#ifndef APP_FLOW_H
#define APP_FLOW_H

#include "app/common/strbuf.h"
#include "app/terminal/text/markdown.h"

enum flow_wrap { FLOW_WRAP, FLOW_NO_WRAP };
enum flow_kind {
    FLOW_MESSAGE, /* messages of the program: no Markdown, no looks */
    FLOW_ANSWER,  /* Markdown */
    FLOW_THOUGHT, /* as an answer, but all characters are dim */
};

/* The control sequences that start each look. begin[TEXT_PLAIN] ends every look. */
struct flow_looks {
    const char *begin[TEXT_LOOKS];
};

struct flow_cell {
    uint32_t code;
    uint8_t width, look;
    uint8_t n_bytes; /* of the input */
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
    size_t column;         /* of the cursor; == columns: the next character goes to a new row */
    struct flow_cells row; /* the characters on the cursor's row */
    size_t n_doubtful;     /* of them: characters whose width differs between terminals */
    size_t n_wrapped;      /* number of rows that the terminal has broken */
    enum text_look look;   /* the look that the terminal is set to */
    struct markdown markdown;
    bool is_skipping; /* the skipped text ended within a line: leave out blanks */

    struct flow_held {
        struct flow_cells word; /* characters without blanks */
        size_t width;           /* of the word */
        size_t n_blanks;        /* before the word, in columns */
        size_t n_blank_bytes;   /* the same, in bytes of the input */
    } held;
};

void flow_init(struct flow *f, size_t columns, enum flow_wrap wrap, enum flow_kind kind,
               const struct flow_looks *looks);
void flow_finish(struct flow *f);

void flow_add(struct flow *f, struct bn_str text, struct strbuf *out);
/* Write everything that is held back. Call it at the end of the text. */
void flow_flush(struct flow *f, struct strbuf *out);
/* Before the caller writes something else within the text: a word that is held back begins the next
 * row. The caller then calls flow_begin_row. */
void flow_pause(struct flow *f);
/* Change the kind of the text that follows. First writes what is held back. */
void flow_set_kind(struct flow *f, enum flow_kind kind, struct strbuf *out);
/* Number of bytes of the text that are held back. */
size_t flow_n_pending(const struct flow *f);
/* Process text that was written earlier. The next text begins a new row, with the right looks. */
void flow_skip(struct flow *f, struct bn_str text);
/* The caller has written something else, and the cursor is at the start of a row. */
void flow_begin_row(struct flow *f);
/* End the current look, so that the caller can write. The next character sets its look again. */
void flow_reset_look(struct flow *f, struct strbuf *out);

/* For a terminal whose width has changed to `columns`: how many rows the cursor is now below the
 * start of its old row. The caller moves up by as many rows and erases the screen below;
 * flow_rewrite_row then writes the row again. */
size_t flow_rows_up(const struct flow *f, size_t columns);
void flow_rewrite_row(struct flow *f, size_t columns, struct strbuf *out);
/* Write the cursor's row as it is. */
void flow_write_row(struct flow *f, struct strbuf *out);

#endif
