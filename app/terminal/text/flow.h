/*
 * Streaming text into lines of a terminal: clean, break between words, colour, know the column.
 * Pure.
 *
 * Text comes in pieces and goes out as bytes to write; nothing that went out is ever taken back.
 * The last word of a piece is held until its end is known. Lines of code (between fences) and, with
 * FLOW_NO_WRAP, all lines are left to the terminal to break, so that they can be copied whole.
 */
#ifndef APP_FLOW_H
#define APP_FLOW_H

#include "app/common/strbuf.h"
#include "app/terminal/text/markdown.h"

enum flow_wrap { FLOW_WRAP, FLOW_NO_WRAP };
enum flow_voice {
    FLOW_WORDS,   /* the program's own: no Markdown, no look */
    FLOW_ANSWER,  /* Markdown */
    FLOW_THOUGHT, /* the same lines, dim all over */
};

/* What sets the terminal to each look; [TEXT_PLAIN] ends any of them. */
struct flow_paint {
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
    enum flow_voice voice;
    const struct flow_paint *paint; /* NULL: no looks */
    size_t columns;                 /* of the terminal, at least 1 */
    size_t column;         /* of the cursor; == columns: the next character goes to the next row */
    struct flow_cells row; /* what stands on the cursor's row */
    size_t n_doubtful;     /* of them: terminals disagree about their width */
    size_t n_wrapped;      /* rows that the terminal broke, so far */
    enum text_look look;   /* what the terminal is set to */
    struct markdown markdown; /* of the answer */
    bool is_skipping;         /* what stood elsewhere ended within a line: no blanks first */

    struct flow_cells word; /* held back: cleaned, without blanks */
    size_t word_width;
    size_t n_blanks, n_blank_bytes; /* held back before the word: columns, bytes of the input */
    struct strbuf bytes;            /* held back: an incomplete character */
};

void flow_init(struct flow *f, size_t columns, enum flow_wrap wrap, enum flow_voice voice,
               const struct flow_paint *paint);
void flow_finish(struct flow *f);

void flow_add(struct flow *f, struct bn_str text, struct strbuf *out);
/* Everything held back goes out: the end of the text. */
void flow_flush(struct flow *f, struct strbuf *out);
/* The next text speaks like this; what is held back goes out before. */
void flow_speak(struct flow *f, enum flow_voice voice, struct strbuf *out);
/* Bytes of the text that are held back. */
size_t flow_held(const struct flow *f);
/* This stands elsewhere already: what follows it begins a row, with the looks that it would have.
 */
void flow_skip(struct flow *f, struct bn_str text);
/* Something else has been written since: the cursor stands at the start of a row. */
void flow_begin_row(struct flow *f);
/* Set the terminal to no look, for others to write; the next character sets its own again. */
void flow_plain(struct flow *f, struct strbuf *out);

/* The terminal has become this wide and has broken the cursor's row anew: how many rows the cursor
 * now stands below the row's beginning. The caller goes up, erases, and flow_again gives the row
 * again. */
size_t flow_rows_up(const struct flow *f, size_t columns);
void flow_again(struct flow *f, size_t columns, struct strbuf *out);
/* The cursor's row as it stands, from its start. */
void flow_row(struct flow *f, struct strbuf *out);

#endif
