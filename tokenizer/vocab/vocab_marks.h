/*
 * Marks: the tokens with a special role (begin of text, end of an answer, padding, unknown).
 *
 * The keys of the file give their ids. A mark without a key, or whose key is no id, gets the
 * default of llama.cpp if this token has the type control or unknown. The end of a turn is also
 * found by its text. This happens before the texts are decoded; token texts and types are corrected
 * in place. Notes report a key that is no id, missing types, repaired texts, and how many ids that
 * end an answer were found by their text. They do not report defaults and corrected types.
 */
#ifndef TOKENIZER_VOCAB_MARKS_H
#define TOKENIZER_VOCAB_MARKS_H

#include "engine/base/error.h"
#include "engine/base/notes.h"
#include "tokenizer/vocab/vocab_source.h"

#include <stdint.h>

struct vocab_marks {
    int32_t ids[N_MARKS]; /* TOKEN_NONE where absent */
    int32_t *eog;         /* (n_eog) end of generation: ids that end an answer, ascending */
    size_t n_eog;
    size_t eog_cap;
};

/* Find the marks and repair the vocabulary, in this order:
 *
 * - If the file has no types, find special tokens and byte tokens by their text (repair
 *   "token-type").
 * - Read the id of each mark from its metadata key. A mark without a key gets its default id.
 * - Strip the text of the begin-of-text token from the texts of control tokens, where a faulty
 *   converter put it in front (repair "control-text").
 * - Collect the ids that end an answer: the marks MARK_EOS, MARK_EOT and MARK_EOM, and the tokens
 *   with a known text (repair "end-of-turn").
 * - Correct types, so that the text of a message cannot produce these tokens. The type becomes
 *   control for tokens with a known text, for user-defined ids that end an answer, and for marks of
 *   type normal whose text is in <>, [] or || (unknown for MARK_UNK). Ordinary words, which merges
 *   build, keep their type, and so does <|end|> where it ends only a section of an answer.
 *
 * `no_repair`: see bn_repair_allowed; types are corrected in any case. BN_EFORMAT: too many merges,
 * or their texts collide. BN_ENOMEM. After an error m needs no vocab_marks_finish. */
bool vocab_marks_init(struct vocab_marks *m, struct vocab_source *s, const char *no_repair,
                      struct bn_notes *notes, struct bn_error *err);
void vocab_marks_finish(struct vocab_marks *m);
/* Add an id that ends an answer. Ignores TOKEN_NONE and an id that is in the list. BN_ENOMEM. */
bool vocab_marks_add_end(struct vocab_marks *m, int32_t id, struct bn_error *err);

#endif
