/*
 * Which of the two copies of a recurrent state belongs to which length of a sequence.
 *
 * A pass reads the current copy and writes the other one, and only the end of a successful pass
 * makes the other copy current. So a pass that fails changes nothing, and the copy before the last
 * pass remains. A backend owns the memory of the copies, number 0 and number 1.
 */
#ifndef ENGINE_BACKEND_RECURRENT_COPIES_H
#define ENGINE_BACKEND_RECURRENT_COPIES_H

#include "engine/model/model.h"

#include <stdbool.h>
#include <stddef.h>

#define RECURRENT_NONE SIZE_MAX /* length of a copy whose contents are undefined */

struct recurrent_copies {
    size_t lengths[2]; /* number of ids that each copy is the result of */
    size_t current;    /* number of the copy that belongs to the sequence's length */
};

/* Bytes of one copy, and of the part of a saved state that holds it; 0 without delta nets. False if
 * they overflow. */
bool recurrent_bytes(const struct hparams *hp, size_t *out);

void recurrent_begin(struct recurrent_copies *r);                 /* a pass writes the other copy */
void recurrent_commit(struct recurrent_copies *r, size_t length); /* the pass succeeded */

/* The largest length up to n_keep that recurrent_truncate accepts: that of a copy, or 0. */
size_t recurrent_reachable(const struct recurrent_copies *r, size_t n_keep);
/* Cut to 0 or to the length of a copy, which becomes the current one. Returns false if n_keep is 0
 * and neither copy is that of no ids: then the caller clears the current copy and calls
 * recurrent_set_length. */
bool recurrent_truncate(struct recurrent_copies *r, size_t n_keep);

/* Make a copy current that the caller then overwrites with a saved state of `length` ids. The copy
 * of a shorter text is kept for a later truncation, and that of a longer text is lost. */
void recurrent_replace(struct recurrent_copies *r, size_t length);
/* The current copy is the result of `length` ids, and the other copy is lost. */
void recurrent_set_length(struct recurrent_copies *r, size_t length);

#endif
