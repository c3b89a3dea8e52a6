/*
 * SentencePiece: one fragment of text to ids by scored merges, bytes where no token fits.
 *
 * The vocabulary's texts have spaces where the file has U+2581; `spm_encode` takes text in that
 * form.
 */
#ifndef TOKENIZER_SPM_H
#define TOKENIZER_SPM_H

#include "engine/base/error.h"
#include "tokenizer/merge.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab.h"

#include <stdbool.h>
#include <stdint.h>

struct spm {
    uint32_t *ranks; /* (n_vocab): 0 for the highest score */
    int32_t unk;
    bool splits_at_spaces; /* no word has a space behind another character */
};

/* BN_ENOMEM. */
bool spm_init(struct spm *s, const struct vocab *v, const float *scores, int32_t unk,
              struct bn_error *err);
void spm_finish(struct spm *s);

/* Bytes from the front that can be encoded by themselves with the same result; at least 1. */
size_t spm_piece_bytes(const struct spm *s, struct bn_str text);

/* Append the ids of `piece`, whose bytes may be anything. `m` is scratch. BN_ENOMEM. */
bool spm_encode(const struct spm *s, const struct vocab *v, struct bn_str piece, struct merge *m,
                struct token_list *out, struct bn_error *err);

#endif
