/*
 * The saved states of one session: copies of what a sequence with rings or recurrent states needs
 * to return to an earlier length (docs/architecture.md, "Saved states"). Private to the session.
 *
 * The states are sorted by length and fit into a budget. If there are n_max states, a new one
 * replaces the least useful one: states of the recent past stay close together, older ones become
 * sparse, and the newest two stay if there is memory for two.
 */
#ifndef ENGINE_SESSION_STATES_H
#define ENGINE_SESSION_STATES_H

#include "engine/base/error.h"
#include "engine/base/memory.h"

#include <stdbool.h>
#include <stddef.h>

/* Most states of one session, even if the budget allows more. The functions search the list from
 * one end to the other, so it must not be long. */
#define STATES_MAX 1024

struct saved_state {
    size_t length;      /* tokens of the sequence when the state was saved, at least 1 */
    struct mem_map map; /* the bytes of backend_ops.state_save */
};

struct states {
    size_t state_bytes;       /* of one state; 0: the sequence needs none */
    size_t n_max, n;          /* most states (budget and STATES_MAX), and states now */
    struct saved_state *list; /* (n_max), the first n are in use, in order of length */
};

/* Prepare for states of state_bytes each within `budget` bytes, possibly none. Allocates only the
 * list. BN_ENOMEM; then states_close may be called, but need not. */
bool states_open(struct states *st, size_t state_bytes, size_t budget, struct bn_error *err);
void states_close(struct states *st); /* accepts a struct of zeros */

/* The newest state of at most n_ids tokens, or NULL. Valid until the next change. */
const struct saved_state *states_find(const struct states *st, size_t n_ids);

/* Length of the newest state, 0 if there is none. */
size_t states_newest(const struct states *st);

/* Add a state of `length` tokens, more than states_newest. Returns its memory, which the caller
 * fills and the list frees. NULL if the budget has no room for a single state, or the system has no
 * memory; then the state is not in the list. */
void *states_add(struct states *st, size_t length);

/* Remove the states of more than n_keep tokens. */
void states_cut(struct states *st, size_t n_keep);

#endif
