/*
 * What else the model might have said: the table of /probs. Pure.
 */
#ifndef APP_TURN_PROBS_H
#define APP_TURN_PROBS_H

#include "app/chat/turn.h"

/* A line for each token of the turn: what was chosen, then the likeliest, each with its
 * probability, one under the other. Where they do not fit into `columns` they go on in the next
 * row, below the first of them. */
void turn_probs_table(const struct tokenizer *t, const struct turn *turn, size_t columns,
                      struct strbuf *out);

#endif
