/*
 * The table of /probs: the probability of each token and of its alternatives. Pure functions.
 */
#ifndef APP_TURN_PROBS_H
#define APP_TURN_PROBS_H

#include "app/chat/turn.h"

/* One line for each token of the turn: the chosen token, then the most probable ones, each with its
 * probability, in columns. Alternatives that do not fit into `columns` go on in the next row. */
void turn_probs_table(const struct tokenizer *t, const struct turn *turn, size_t columns,
                      struct strbuf *out);

#endif
