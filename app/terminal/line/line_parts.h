/*
 * Parts of the line editor, for line_edit.c only: its keys, and what was pasted into it. Readline
 * is initialised before.
 */
#ifndef APP_LINE_PARTS_H
#define APP_LINE_PARTS_H

#include "app/common/strbuf.h"

#include <stddef.h>

/* `edit_elsewhere` is the command that hands the text to the user's own editor. */
void line_keys_bind(int (*edit_elsewhere)(int count, int key));

/* Put a paste in at the cursor: cleaned, and a long one as a mark that stands for it. The caller
 * shows the line. */
void line_paste_take(const char *bytes, size_t n_bytes);
/* The line with the pastes in the place of their marks, appended to out. */
void line_paste_expand(const char *line, struct strbuf *out);
void line_paste_finish(void);

#endif
