/*
 * SentencePiece: converts one piece of text to ids by scored merges, with byte tokens for
 * characters that are not in the vocabulary.
 *
 * Input has spaces where SentencePiece writes U+2581, like the texts of struct vocab.
 */
#ifndef TOKENIZER_SPM_H
#define TOKENIZER_SPM_H

#include "engine/base/error.h"
#include "tokenizer/bpe/merge.h"
#include "tokenizer/vocab/token_list.h"
#include "tokenizer/vocab/vocab.h"

#include <stdbool.h>
#include <stdint.h>

struct spm {
    uint32_t *ranks; /* (n_vocab) a higher score has a lower rank */
    int32_t unk;     /* id for a byte that no token encodes; TOKEN_NONE: such bytes are dropped */
    bool splits_at_spaces; /* no VOCAB_WORD has a space after a character that is not a space */
};

/* `scores` (v->n); unk: see struct spm. BN_ENOMEM. */
bool spm_init(struct spm *s, const struct vocab *v, const float *scores, int32_t unk,
              struct bn_error *err);
void spm_finish(struct spm *s);

/* Bytes of the first piece of `text` that can be encoded separately with the same result, at least
 * 1. `text` is not empty. */
size_t spm_piece_bytes(const struct spm *s, struct bn_str text);

/* Append the ids of `piece`, which may hold any bytes. v is the vocabulary that spm_init got. `m`
 * is scratch memory, at first all zero; the caller frees it with merge_finish. BN_ENOMEM: some of
 * the ids may have been appended. */
bool spm_encode(const struct spm *s, const struct vocab *v, struct bn_str piece, struct merge *m,
                struct token_list *out, struct bn_error *err);

#endif
