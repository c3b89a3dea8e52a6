/*
 * The members of a tokenizer, for the files of this folder only. They do not change after
 * tokenizer_open and tokenizer_add_ends.
 */
#ifndef TOKENIZER_TOKENIZER_STATE_H
#define TOKENIZER_TOKENIZER_STATE_H

#include "tokenizer/bpe/bpe.h"
#include "tokenizer/bpe/pretok.h"
#include "tokenizer/bpe/spm.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab/special.h"
#include "tokenizer/vocab/vocab.h"
#include "tokenizer/vocab/vocab_marks.h"

#include <stdbool.h>
#include <stdint.h>

struct tokenizer {
    struct tokenizer_info info;
    struct vocab vocab;
    struct vocab_marks marks;
    struct special_set specials;
    uint8_t *allowed_in_message; /* (specials.n) 1: message text may contain this special token */
    bool nfc;                    /* text is normalised before it is split */
    bool byte_level;             /* true: bpe and pretok are in use; false: spm */
    char pre[64];                /* text of info.pre; a longer name is cut */
    struct pretok *pretok;
    struct bpe bpe;
    struct spm spm;
};

#endif
