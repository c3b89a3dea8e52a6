/*
 * What a tokenizer is made of. Immutable after tokenizer_open; private to this folder.
 */
#ifndef TOKENIZER_TOKENIZER_STATE_H
#define TOKENIZER_TOKENIZER_STATE_H

#include "tokenizer/bpe.h"
#include "tokenizer/pretok.h"
#include "tokenizer/special.h"
#include "tokenizer/spm.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab.h"
#include "tokenizer/vocab_marks.h"

#include <stdbool.h>
#include <stdint.h>

struct tokenizer {
    struct tokenizer_info info;
    struct vocab vocab;
    struct vocab_marks marks;
    struct special_set specials;
    uint8_t *message_ok; /* (specials.n): user-defined tokens that message text may name */
    bool byte_level;     /* bpe and pretok are in use, else spm */
    char pre[64];        /* info.pre, as the file or the caller spells it */
    struct pretok *pretok;
    struct bpe bpe;
    struct spm spm;
};

#endif
