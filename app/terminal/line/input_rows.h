/*
 * The prompt and text of the line editor, broken into rows of a pane, and the position of the
 * cursor. Does no I/O.
 *
 * Control characters appear as ^X and invalid bytes as U+FFFD. A newline begins a row with a
 * continuation mark. Readline's markers \001 and \002 and everything between them are left out.
 */
#ifndef APP_INPUT_ROWS_H
#define APP_INPUT_ROWS_H

#include "app/common/strbuf.h"

struct input_rows {
    struct strbuf text; /* all rows, UTF-8, without line ends */
    size_t *starts;     /* (n) offset of each row in text */
    size_t n, cap;
    size_t n_prompt;                  /* bytes of text that belong to the prompt */
    size_t cursor_row, cursor_column; /* within an emoji of several characters: its start */
    size_t cursor_byte;               /* offset of the cursor in text */
    size_t n_doubtful; /* of the last row: characters whose width differs between terminals */
};

void input_rows_finish(struct input_rows *r);
/* `point` is the offset of the cursor in text; columns >= 1. If out of memory, rows are missing. */
void input_rows_make(struct input_rows *r, const char *prompt, struct bn_str text, size_t point,
                     size_t columns);
/* Columns of a row on a terminal that shows an emoji of several characters in two columns. */
size_t input_rows_width(struct bn_str row);
struct bn_str input_rows_row(const struct input_rows *r, size_t row);
/* The text before the cursor in its row. */
struct bn_str input_rows_before(const struct input_rows *r);
/* The first row to show if only n_shown rows fit, so that the cursor is visible. */
size_t input_rows_first(const struct input_rows *r, size_t n_shown);

#endif
