/*
 * Which ids begin a text, end an answer, fill or stand for the unknown: read, repaired, completed.
 *
 * Works on a vocabulary as its file has it, before its texts are decoded, and corrects token texts
 * and types in place. Every change is reported in the notes under the repair's id.
 */
#ifndef TOKENIZER_VOCAB_MARKS_H
#define TOKENIZER_VOCAB_MARKS_H

#include "engine/base/error.h"
#include "engine/base/notes.h"
#include "tokenizer/vocab_source.h"

#include <stdint.h>

struct vocab_marks {
    int32_t ids[N_MARKS]; /* TOKEN_NONE where there is none */
    int32_t *eog;         /* (n_eog) ascending */
    size_t n_eog;
    size_t eog_cap;
};

/* Strip a begin-of-text mark that a converter glued in front of control tokens (repair
 * "control-text"), find the marked ids, collect what ends an answer (repair "end-of-turn"), and
 * give marks the control type where the file forgot. BN_ENOMEM. */
bool vocab_marks_init(struct vocab_marks *m, struct vocab_source *s, const char *no_repair,
                      struct bn_notes *notes, struct bn_error *err);
void vocab_marks_finish(struct vocab_marks *m);

/* A text of at least three bytes in <>, [] or ||. */
bool vocab_looks_like_mark(struct bn_str text);

#endif
