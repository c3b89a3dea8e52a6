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

/* Whether a part of `line`, which may have any bytes, matches. A match that takes too many steps or
 * too much memory counts as no match. After ten such matches every call returns false at once. */
bool pattern_matches(struct pattern *p, struct bn_str line);
bool pattern_gave_up(const struct pattern *p); /* whether any match so far reached a limit */

#endif
