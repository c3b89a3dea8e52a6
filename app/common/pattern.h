/*
 * A regular expression of /find over one line of text: PCRE2 with a bound on the steps of a match,
 * since a pattern may be hostile to itself.
 *
 * Small letters match capitals too; a capital in the pattern asks for exactly that. Main thread.
 */
#ifndef APP_PATTERN_H
#define APP_PATTERN_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct pattern;

/* BN_EARG: no such expression, says where; BN_ENOMEM. */
bool pattern_open(struct bn_str text, struct pattern **out, struct bn_error *err);
void pattern_close(struct pattern *p); /* NULL is fine */

/* Any bytes. A match that takes too long counts as none; after a few of those nothing matches any
 * more. */
bool pattern_matches(struct pattern *p, struct bn_str line);
bool pattern_gave_up(const struct pattern *p); /* some lines took too long */

#endif
