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
    size_t cursor_row, cursor_column;
};

void input_rows_finish(struct input_rows *r);
/* `point` is the offset of the cursor in text; columns >= 1. If out of memory, rows are missing. */
void input_rows_make(struct input_rows *r, const char *prompt, struct bn_str text, size_t point,
                     size_t columns);
struct bn_str input_rows_row(const struct input_rows *r, size_t row);
/* The first row to show if only n_shown rows fit, so that the cursor is visible. */
size_t input_rows_first(const struct input_rows *r, size_t n_shown);

#endif
