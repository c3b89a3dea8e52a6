/*
 * Token texts as bytes, their types, and the way from bytes to an id.
 *
 * Texts are decoded once: byte-level characters and U+2581 become what they stand for, so the rest
 * of the tokenizer works on plain bytes. Each token can be found in one class only.
 */
#ifndef TOKENIZER_VOCAB_H
#define TOKENIZER_VOCAB_H

#include "engine/base/error.h"
#include "tokenizer/text_index.h"
#include "tokenizer/vocab_source.h"

#include <stddef.h>
#include <stdint.h>

enum vocab_class {
    VOCAB_WORD,    /* ordinary text may become this token */
    VOCAB_SPECIAL, /* control, unknown, user-defined: matched as a whole, never built */
    VOCAB_OTHER,   /* byte tokens, and texts that no ordinary text can spell */
};
#define N_VOCAB_CLASSES 3

struct vocab {
    struct text_index texts; /* text i is that of token i */
    uint8_t *types;          /* (n) enum token_type, corrected */
    size_t n;
    size_t n_special;
    size_t longest_word;   /* bytes */
    int32_t byte_ids[256]; /* byte tokens <0x00> .. <0xFF>, TOKEN_NONE where absent */
    uint64_t hash;         /* FNV-1a 64 over texts and types as the file has them */
};

uint64_t vocab_hash(const struct vocab_source *s);

/* `s` after vocab_marks_init. BN_EFORMAT: too large, or made to collide. BN_ENOMEM. */
bool vocab_init(struct vocab *v, const struct vocab_source *s, struct bn_error *err);
void vocab_finish(struct vocab *v);

struct bn_str vocab_text(const struct vocab *v, int32_t id); /* `id` in range */
/* TOKEN_NONE when there is none; of equal texts the lowest id. */
int32_t vocab_find(const struct vocab *v, struct bn_str text, enum vocab_class class);

#endif
