/*
 * What is said about a turn: the stats line, a sentence about an unusual end, the JSON object.
 */
#ifndef APP_TURN_REPORT_H
#define APP_TURN_REPORT_H

#include "app/chat/chat.h"
#include "app/terminal/text/status.h"

#include <jansson.h>

/* "[57 tok, 11.8 tok/s, first token 0.42 s, prompt 23 tok 95 tok/s, ctx 212/4096, seed 1889]".
 * Where that is wider than the room, the least of it is left out: a terminal shows it in one row,
 * and /stats has it all. */
struct turn_room {
    size_t n_used, n_ctx; /* tokens of the context */
    size_t columns;       /* SIZE_MAX: a file, a pipe */
};
void turn_stats_line(const struct turn *turn, const struct turn_room *room, struct strbuf *out);

/* What the reader should know of how the turn ended; NULL: it ended as it should. */
const char *turn_end_notice(const struct turn *turn);
/* What to do about a turn that failed; NULL: nothing is known to help. `kept_in` is the file that
 * holds the conversation, "" for none. */
const char *turn_fail_notice(const struct bn_error *err, const char *kept_in);
/* "context: dropped 3 oldest turns (812 tok), re-reading 1204 tok", or nothing. */
void turn_drop_notice(const struct turn *turn, struct strbuf *out);

/* The last answer against the machine: memory read for its tokens, arithmetic of its prompt, and
 * what that is of what the device can do where that was measured. Whole lines; none where it has
 * read nothing. */
void turn_speed_lines(const struct chat *c, struct strbuf *out);

/* One object with every field of a turn; NULL: out of memory. */
json_t *turn_json(const struct chat *c, const struct turn *turn);
json_t *turn_json_of(const struct tokenizer *t, const char *model, const struct turn *turn);

/* The status row's numbers as they are now. Texts of `out` are left alone. */
void turn_status(const struct chat *c, struct status *out);

#endif
