/*
 * The regular expression of /find, for one line of text: PCRE2 with a limit on the steps in a line,
 * because some patterns need exponential time. Case matters only if the pattern has a capital
 * letter from A to Z that no backslash escapes. Main thread only.
 */
#ifndef APP_PATTERN_H
#define APP_PATTERN_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct pattern;

/* Compile the pattern `text`, of which nothing is kept. BN_EARG: an error in the pattern, which may
 * also be invalid UTF-8; the message has the position in characters. BN_ENOMEM. */
bool pattern_open(struct bn_str text, struct pattern **out, struct bn_error *err);
void pattern_close(struct pattern *p); /* NULL is fine */

/* A part of a line that matches. Zeros before the first call of pattern_next for a line. */
struct pattern_hit {
    size_t begin, end; /* offsets in the line; equal for a match without characters */
    size_t n;          /* number of hits in this line so far, with this one */
};

/* Find the next hit in `line`, which may have any bytes, behind *hit. Only the first hit of a line
 * may be without characters. A match that takes too many steps or too much memory ends the search
 * in the line; the steps of all hits in a line count together, and so does the length of a line
 * that is not valid UTF-8, which PCRE2 checks again for each hit. After ten such lines, and after
 * PATTERN_MAX_HITS hits of this pattern, every call returns false at once. */
#define PATTERN_MAX_HITS 10000
bool pattern_next(struct pattern *p, struct bn_str line, struct pattern_hit *hit);
bool pattern_gave_up(const struct pattern *p); /* whether any match so far took too much */

#endif
