/*
 * Marks: the tokens with a special role (begin of text, end of an answer, padding, unknown).
 *
 * They are read from the file and completed where the file is known to be wrong. This happens
 * before the texts are decoded; token texts and types are corrected in place. The notes report
 * repaired texts and added ids that end an answer, but not corrected types.
 */
#ifndef TOKENIZER_VOCAB_MARKS_H
#define TOKENIZER_VOCAB_MARKS_H

#include "engine/base/error.h"
#include "engine/base/notes.h"
#include "tokenizer/vocab/vocab_source.h"

#include <stdint.h>

struct vocab_marks {
    int32_t ids[N_MARKS]; /* TOKEN_NONE where absent */
    int32_t *eog;         /* (n_eog) ids that end an answer, ascending */
    size_t n_eog;
    size_t eog_cap;
};

/* Find the marks, remove the begin-of-text mark that a converter put in front of control tokens
 * (repair "control-text"), collect the ids that end an answer (repair "end-of-turn"), and correct
 * the types of marks. `no_repair`: see bn_repair_allowed. BN_ENOMEM. */
bool vocab_marks_init(struct vocab_marks *m, struct vocab_source *s, const char *no_repair,
                      struct bn_notes *notes, struct bn_error *err);
void vocab_marks_finish(struct vocab_marks *m);
/* Add an id that ends an answer. Ignores TOKEN_NONE and an id that is in the list. BN_ENOMEM. */
bool vocab_marks_add_end(struct vocab_marks *m, int32_t id, struct bn_error *err);

#endif
