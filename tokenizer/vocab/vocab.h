/*
 * The vocabulary: text and type of each token, and the id of a text.
 *
 * Texts are decoded when the vocabulary is opened (byte-level characters to bytes, U+2581 to a
 * space), so the rest of the tokenizer works on plain bytes. Texts of control and unknown tokens,
 * and of user-defined ones in byte-level vocabularies, are not encoded in the file. Each token
 * belongs to one class and is found only in it.
 */
#ifndef TOKENIZER_VOCAB_H
#define TOKENIZER_VOCAB_H

#include "engine/base/error.h"
#include "tokenizer/vocab/text_index.h"
#include "tokenizer/vocab/vocab_source.h"

#include <stddef.h>
#include <stdint.h>

enum vocab_class {
    VOCAB_WORD,    /* ordinary text can become this token */
    VOCAB_SPECIAL, /* control, unknown, user-defined: matched as a whole, never merged */
    VOCAB_OTHER,   /* <0xXX> of type byte, empty texts, texts that ordinary text cannot produce */
};

struct vocab {
    struct text_index texts; /* string i is the text of token i */
    uint8_t *types;          /* (n) enum token_type, after repairs */
    size_t n;
    size_t n_special;      /* tokens of class VOCAB_SPECIAL */
    size_t longest_word;   /* bytes of the longest text of class VOCAB_WORD */
    int32_t byte_ids[256]; /* byte tokens <0x00> .. <0xFF>, TOKEN_NONE where absent */
    uint64_t hash;         /* vocab_hash of the file; set by the caller of vocab_init */
};

/* FNV-1a (64 bits) over the texts and types. Call it before repairs, so that it identifies the
 * file. */
uint64_t vocab_hash(const struct vocab_source *s);

/* Call vocab_marks_init first, which repairs `s`. Copies what it needs from `s`. BN_EFORMAT: too
 * large, or too many collisions. BN_ENOMEM. After an error v needs no vocab_finish. */
bool vocab_init(struct vocab *v, const struct vocab_source *s, struct bn_error *err);
void vocab_finish(struct vocab *v);

/* The byte that a text like "<0x0A>" of a SentencePiece vocabulary names, or -1. */
int vocab_byte_of_text(struct bn_str text);
/* Copy `text` to `out` (text.n_bytes) with a space for each U+2581. Returns the length written. */
size_t vocab_decode_spaces(struct bn_str text, char *out);
/* Split a merge of a file at the first space after its first character, as docs/formats.md says.
 * Returns false if there is no such space, or if nothing follows it. */
bool vocab_split_merge(struct bn_str merge, struct bn_str *left, struct bn_str *right);

struct bn_str vocab_text(const struct vocab *v, int32_t id); /* `id` must be in range */
/* The lowest id of `class` with this text, or TOKEN_NONE. */
int32_t vocab_find(const struct vocab *v, struct bn_str text, enum vocab_class class);

#endif
