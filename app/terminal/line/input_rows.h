/*
 * A line editor's text as rows of a pane: prompt, text, and where the cursor stands. Pure.
 *
 * Controls are shown as ^X, broken bytes as U+FFFD; a newline begins a row, which is indented by a
 * continuation mark. The marks \001 and \002, which line editors put around what has no width, and
 * what stands between them, are left out.
 */
#ifndef APP_INPUT_ROWS_H
#define APP_INPUT_ROWS_H

#include "app/common/strbuf.h"

struct input_rows {
    struct strbuf text; /* of all rows, UTF-8, one after the other */
    size_t *starts;     /* (n) where each row begins in text */
    size_t n, cap;
    size_t cursor_row, cursor_column;
};

void input_rows_finish(struct input_rows *r);
/* `point` is the cursor's byte in text; columns >= 1. Out of memory: rows are missing. */
void input_rows_make(struct input_rows *r, const char *prompt, struct bn_str text, size_t point,
                     size_t columns);
struct bn_str input_rows_row(const struct input_rows *r, size_t row);
/* The first of `n_shown` rows to show so that the cursor's is among them. */
size_t input_rows_first(const struct input_rows *r, size_t n_shown);

#endif
