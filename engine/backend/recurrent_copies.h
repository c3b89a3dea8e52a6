/*
 * Which of the two copies of a recurrent state belongs to which length of a sequence.
 *
 * A pass reads the current copy and writes the other one, and only the end of a successful pass
 * makes the other copy current. So a pass that fails leaves the current copy as it was, and a pass
 * that succeeds leaves the copy from before it. A backend owns the memory of the copies, number 0
 * and number 1.
 */
#ifndef ENGINE_BACKEND_RECURRENT_COPIES_H
#define ENGINE_BACKEND_RECURRENT_COPIES_H

#include "engine/model/model.h"

#include <stdbool.h>
#include <stddef.h>

#define COPY_NONE SIZE_MAX /* length of a copy whose contents are undefined */

/* For an empty sequence: lengths 0 and COPY_NONE, current 0. copies_set_length(r, 0) turns
 * a struct of zeros into this state. */
struct recurrent_copies {
    size_t lengths[2]; /* number of ids that each copy is the result of */
    size_t current;    /* number of the copy that belongs to the sequence's length */
};

/* Bytes of one copy. A saved state holds one copy in as many bytes. 0 without delta nets. False if
 * they overflow. */
bool recurrent_bytes(const struct hparams *hp, size_t *out);

/* Call before a pass. The pass writes the copy that is not current, whose old contents are lost
 * even if the pass fails. */
void copies_begin(struct recurrent_copies *r);
/* The pass succeeded: the copy that it wrote becomes current. It is the result of `length` ids. */
void copies_commit(struct recurrent_copies *r, size_t length);

/* The largest length up to n_keep that copies_truncate accepts: that of a copy, or 0. */
size_t copies_reachable(const struct recurrent_copies *r, size_t n_keep);
/* Cut to 0 or to the length of a copy, which becomes the current one. Returns false if n_keep is 0
 * and no copy has length 0: then the caller calls copies_set_length(r, 0) and makes sure that
 * the next pass starts from zeros. */
bool copies_truncate(struct recurrent_copies *r, size_t n_keep);

/* Choose the copy that the caller then overwrites with a saved state of `length` ids, and make it
 * current with this length. It is the current copy, unless that is the result of fewer ids. The
 * remaining copy stays usable for copies_truncate if it has at most `length` ids. Otherwise its
 * length becomes COPY_NONE. */
void copies_replace(struct recurrent_copies *r, size_t length);
/* The current copy is the result of `length` ids, and the other copy is lost. */
void copies_set_length(struct recurrent_copies *r, size_t length);

#endif
