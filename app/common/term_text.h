/*
 * Text of unknown origin on its way to a terminal: strip, measure, cut. Pure.
 *
 * Every byte that reaches a terminal passes through here. Controls (ESC and C1 among them), broken
 * UTF-8, bidirectional overrides and line separators become U+FFFD, one for each bad character or
 * byte; only newline and tab stay. Widths are wcwidth's, so main must have set a UTF-8 LC_CTYPE;
 * without one every character beyond ASCII counts as one column.
 */
#ifndef APP_TERM_TEXT_H
#define APP_TERM_TEXT_H

#include "app/common/strbuf.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TERM_REPLACEMENT 0xFFFDu
#define TERM_TAB 8

struct term_char {
    uint32_t code;  /* as it may be shown: TERM_REPLACEMENT for what may not */
    size_t n_bytes; /* in the input */
    size_t width;   /* columns: 0, 1 or 2; newline 0, tab 1 (the caller knows its column) */
    bool replaced;
};

/* The character at *at, which moves on; false at the end. */
bool term_text_next(struct bn_str s, size_t *at, struct term_char *c);
void term_text_put(struct strbuf *out, uint32_t code); /* as UTF-8 */

enum term_lines {
    TERM_KEEP_LINES,
    TERM_ONE_LINE, /* newlines and tabs become one space */
};
void term_text_clean(struct bn_str s, enum term_lines lines, struct strbuf *out);

/* Valid UTF-8 with everything else as it is (controls stay): what JSON and templates want. Gives
 * the offset of the first byte that was replaced, or SIZE_MAX. */
size_t term_text_repair(struct bn_str s, struct strbuf *out);

/* Terminals disagree about the width of what it belongs to: emoji that are put together. */
bool term_text_is_doubtful(uint32_t code);

/* Columns of c where whole rows are repainted: emoji style (U+FE0F) makes the character before it,
 * which took `before` columns, a wide one. */
size_t term_text_wide(const struct term_char *c, size_t before);

size_t term_text_width(struct bn_str s);
/* How many bytes of s fit into `width` columns, whole characters only. */
size_t term_text_fit(struct bn_str s, size_t width);
/* Cleaned, on one line, at most `width` columns, "..." in place of what does not fit. */
void term_text_brief(struct bn_str s, size_t width, struct strbuf *out);

#endif
