/*
 * Text about a turn: the statistics line, and notices about an unusual end. Pure functions.
 */
#ifndef APP_TURN_REPORT_H
#define APP_TURN_REPORT_H

#include "app/chat/turn.h"

/* "[57 tok, 11.8 tok/s, first token 0.42 s, prompt 23 tok 95 tok/s, ctx 212/4096, seed 1889]". If
 * the line is wider than `columns`, the least important fields are left out: on a terminal the line
 * takes one row, and /stats shows everything. */
struct turn_room {
    size_t n_used, n_ctx; /* tokens of the context */
    size_t columns;       /* SIZE_MAX for a file or a pipe */
};
void turn_stats_line(const struct turn *turn, const struct turn_room *room, struct strbuf *out);

/* A sentence about an unusual end of the turn; NULL after a normal end. */
const char *turn_end_notice(const struct turn *turn);
/* Advice after a turn that failed; NULL if there is none. `kept_in` is the file that holds the
 * conversation, "" for none. */
const char *turn_fail_notice(const struct bn_error *err, const char *kept_in);
/* "context: dropped 3 oldest turns (812 tok), re-reading 1204 tok"; appends nothing if no turn was
 * dropped. */
void turn_drop_notice(const struct turn *turn, struct strbuf *out);

/* The speed of the last answer: bytes read per token and multiply-adds of the prompt. With measured
 * `peaks` (not all zero) also as a percentage of what the device can do. Appends whole lines, none
 * if the answer read nothing. `info` may be NULL while the model loads. */
void turn_speed_lines(const struct turn *turn, const struct bn_model_info *info,
                      const struct generator_peaks *peaks, struct strbuf *out);

#endif
