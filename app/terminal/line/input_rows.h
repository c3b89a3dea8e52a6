/*
 * Breaks the prompt and the text of the line editor into rows of a given width, and computes the
 * position of the cursor. Does no I/O.
 *
 * ASCII control characters of the text, also tabs, appear in caret notation (^X). Invalid bytes and
 * other harmful characters (term_text.h) appear as U+FFFD. A newline begins a row that starts with
 * "... " if the screen has more than 8 columns. In a prompt, Readline's markers \001 and \002
 * enclose control sequences; these, the markers and newlines are left out.
 */
#ifndef APP_INPUT_ROWS_H
#define APP_INPUT_ROWS_H

#include "app/common/strbuf.h"

#include <stdbool.h>

/* Stands before each line of an input but the first, here and on a screen. */
#define INPUT_CONTINUED "... "
/* Append an input to `out`, with INPUT_CONTINUED after each newline. */
void input_rows_continue(struct bn_str input, struct strbuf *out);

/* Zero-initialise, free with input_rows_finish. */
struct input_rows {
    struct strbuf text; /* all rows, UTF-8, without line ends */
    size_t *starts;     /* (n) offset of each row in text */
    size_t n, cap;
    size_t n_prompt;                  /* bytes of text that belong to the prompt */
    size_t cursor_row, cursor_column; /* for a cursor within a cluster (term_text.h): its start */
    size_t cursor_byte;               /* offset of the cursor in text */
    /* Number of characters in the last row whose width differs between terminals, without those of
     * width 0: see term_text_width_varies. */
    size_t n_width_varies;
    /* input_rows_limit has replaced rows: the first or the last row is a mark that counts them. */
    bool has_mark_above, has_mark_below;
};

void input_rows_finish(struct input_rows *r);
/* Break into rows of at most `columns` >= 1 columns, at least one row. A row is wider only if it
 * cannot be broken, or if an emoji at its end has two columns because of the style character behind
 * it (U+FE0F). `point` is the offset of the cursor in the parameter `text`. If memory runs out,
 * rows are missing, and r->n may be 0. */
void input_rows_make(struct input_rows *r, const char *prompt, struct bn_str text, size_t point,
                     size_t columns);
/* Columns of a row on a terminal that shows each emoji of several characters in two columns. */
size_t input_rows_width(struct bn_str row);
/* The text of a row, row < n; valid until the next input_rows_make, as is input_rows_before. */
struct bn_str input_rows_row(const struct input_rows *r, size_t row);
/* The text before the cursor in its row; empty if this row is missing. */
struct bn_str input_rows_before(const struct input_rows *r);
/* Keep only n_shown >= 1 rows, with the row of the cursor among them. Marks of at most `columns`
 * columns replace the rows above and below, as "(7 rows above)". With fewer than 3 rows there are
 * no marks. The cursor moves with its row. If memory runs out, r->n becomes 0. */
void input_rows_limit(struct input_rows *r, size_t n_shown, size_t columns);
bool input_rows_is_mark(const struct input_rows *r, size_t row);

#endif
