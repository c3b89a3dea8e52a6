/*
 * Untrusted text for a terminal: cleaning, measuring, cutting. Pure functions.
 *
 * All text for a terminal must pass through this module. Control characters (with ESC and C1, but
 * without newline and tab), bidirectional embeddings, overrides and isolates, line separators,
 * invisible tags and variation selectors (U+E0000 to U+E0FFF), the last two code points of each
 * plane and invalid UTF-8 become U+FFFD, one for each character or invalid byte. Widths come from
 * wcwidth, so main must set a UTF-8 LC_CTYPE. Without it, every character beyond ASCII counts as
 * one column.
 */
#ifndef APP_TERM_TEXT_H
#define APP_TERM_TEXT_H

#include "app/common/strbuf.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TERM_REPLACEMENT 0xFFFDu
#define TERM_TAB 8 /* columns between tab stops */

struct term_char {
    uint32_t code;  /* safe to print: TERM_REPLACEMENT for a replaced character */
    size_t n_bytes; /* in the input */
    size_t width;   /* columns: 0, 1 or 2; newline 0; tab 1, to be expanded by the caller */
    bool replaced;
};

/* Read the character at *at and advance *at; false at the end. */
bool term_text_next(struct bn_str s, size_t *at, struct term_char *c);
/* Append a code point as UTF-8, without cleaning; nothing if it is not valid. */
void term_text_put(struct strbuf *out, uint32_t code);

enum term_lines {
    TERM_KEEP_LINES,
    TERM_ONE_LINE, /* each newline and each tab becomes a space */
};
/* Append s with its harmful characters replaced. */
void term_text_clean(struct bn_str s, enum term_lines lines, struct strbuf *out);

/* Append s on one line so that different texts look different: a newline as \n, a tab as \t, a
 * backslash as \\, and each byte of a harmful character or of invalid UTF-8 as a number: \x1B. */
void term_text_escape(struct bn_str s, struct strbuf *out);

/* Append valid UTF-8 for JSON and templates: invalid bytes are replaced, control characters stay.
 * Returns the offset of the first replaced byte, or SIZE_MAX. */
size_t term_text_repair(struct bn_str s, struct strbuf *out);

/* Whether the character is a part of combined emoji. Their width differs between terminals. */
bool term_text_width_varies(uint32_t code);
bool term_text_has_varying_width(struct bn_str s); /* has a character for which this is true */

/* Columns that c adds on a screen that repaints whole rows. `before` is the number of columns of
 * the previous character. Usually the result is c->width, but the emoji variation selector U+FE0F
 * widens a previous character of one column to two. */
size_t term_text_added_width(const struct term_char *c, size_t before);

/* The end of the grapheme cluster that begins at `at` < s.n_bytes: a character with all that
 * combines with it, such as an emoji of several characters, a flag, or a letter with accents. A
 * newline is a cluster. */
size_t term_text_cluster(struct bn_str s, size_t at);

size_t term_text_width(struct bn_str s); /* columns; a tab counts as one, a newline as none */
/* Number of bytes of s that fit into `width` columns, whole characters only. */
size_t term_text_fit(struct bn_str s, size_t width);
/* Append s cleaned, on one line, in at most `width` columns. If s is longer, its beginning, without
 * dots at its end, is followed by "...", or by `width` dots if `width` is below 3. A text with very
 * many characters of width 0 may be cut too. */
void term_text_brief(struct bn_str s, size_t width, struct strbuf *out);

#endif
