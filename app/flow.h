/*
 * Streaming text into lines of a terminal: clean, break between words, know the column. Pure.
 *
 * Text comes in pieces and goes out as bytes to write; nothing that went out is ever taken back.
 * The last word of a piece is held until its end is known. Lines of code (between ``` fences) and,
 * with FLOW_NO_WRAP, all lines are left to the terminal to break, so that they can be copied whole.
 */
#ifndef APP_FLOW_H
#define APP_FLOW_H

#include "app/strbuf.h"

enum flow_wrap { FLOW_WRAP, FLOW_NO_WRAP };

struct flow {
    enum flow_wrap wrap;
    size_t columns;    /* of the terminal, at least 1 */
    size_t column;     /* of the cursor; == columns: the next character goes to the next row */
    struct strbuf row; /* what stands on the cursor's row */

    struct strbuf word; /* held back: cleaned, without blanks */
    size_t word_width;
    size_t n_blanks;     /* held back before the word */
    struct strbuf bytes; /* held back: an incomplete character */
    size_t n_ticks; /* the line so far is this many backticks and nothing else; SIZE_MAX: more */
    bool in_code, closes_code;
};

void flow_init(struct flow *f, size_t columns, enum flow_wrap wrap);
void flow_finish(struct flow *f);

void flow_add(struct flow *f, struct bn_str text, struct strbuf *out);
/* Everything held back goes out: the end of the text. */
void flow_flush(struct flow *f, struct strbuf *out);

/* The terminal has become this wide and has broken the cursor's row anew: how many rows the cursor
 * now stands below the row's beginning. The caller goes up, erases, and flow_again gives the row
 * again. */
size_t flow_rows_up(const struct flow *f, size_t columns);
void flow_again(struct flow *f, size_t columns, struct strbuf *out);

#endif
