/*
 * Text about a turn: the statistics line, notices about its prompt and about an unusual end, and
 * the table of /probs. Pure functions.
 */
#ifndef APP_TURN_REPORT_H
#define APP_TURN_REPORT_H

#include "app/chat/conversation/chat_prompt.h"
#include "app/chat/open_model.h"
#include "app/chat/turn.h"
#include "app/options/options.h"

struct turn_space {
    size_t n_used, n_ctx; /* tokens of the context in use, and in all */
    size_t columns;       /* of the terminal; SIZE_MAX for a file or a pipe */
};
/* Appends the statistics line, for example
 * "[57 tok, 11.8 tok/s, first token 0.42 s, prompt 23 tok 95 tok/s, ctx 212/4096, seed 1889]".
 * If it is wider than `columns`, the least important fields are left out until it fits one row of a
 * terminal. The tokens of the answer and the context always stay, even if they do not fit. /stats
 * shows all fields. */
void turn_stats_line(const struct turn *turn, const struct turn_space *space, struct strbuf *out);

/* A warning about what the template has made of a conversation, as static text; NULL if there is no
 * other one. `o` are the settings of the turn. Each warning is returned once in a run: *shown
 * remembers it, and is 0 before the first call. */
const char *turn_prompt_warning(const struct open_model *m, const struct options *o,
                                const struct prompt *p, unsigned *shown);
/* A sentence about an unusual end of the turn, as static text; NULL after a normal end. */
const char *turn_end_notice(const struct turn *turn);
/* Advice after a turn that failed, as static text; NULL if there is none. `saved_in` is the file
 * that holds the conversation, "" for none. */
const char *turn_fail_notice(const struct turn *turn, const struct bn_error *err,
                             const char *saved_in);
/* "context: dropped 3 oldest turns (812 tok), re-reading 1204 tok"; appends nothing if no turn was
 * dropped. */
void turn_drop_notice(const struct turn *turn, struct strbuf *out);

/* The speed of the answer: bytes read per token in decode, and multiply-adds per second in prefill.
 * A speed whose peak in `peaks` is not 0 is also shown as a percentage of that peak, or with the
 * remark that the peak was disturbed (REPORT_MAX_PERCENT). Appends whole lines, without those of an
 * unknown speed: an answer of one token has no speed of decode. `info` is NULL while the model
 * loads. */
void turn_speed_lines(const struct turn *turn, const struct bn_model_info *info,
                      const struct generator_peaks *peaks, struct strbuf *out);

/* The table of /probs. For each token that the turn has generated: the chosen token, then the most
 * probable ones, each with its probability. Alternatives that do not fit into `columns` continue in
 * the next row. */
void turn_probs_table(const struct tokenizer *t, const struct turn *turn, size_t columns,
                      struct strbuf *out);

#endif
