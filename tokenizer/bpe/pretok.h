/*
 * Pre-tokenizers: cut text into pieces by regular expressions. Byte-level BPE never merges across
 * the border of two pieces.
 *
 * A pre-tokenizer is immutable after pretok_open, and each split has separate match state, so
 * several threads may use one.
 */
#ifndef TOKENIZER_PRETOK_H
#define TOKENIZER_PRETOK_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct pretok;

/* The rule that a name in the `pre` key of a file selects. */
struct pretok_rule {
    const char *names; /* separated by spaces; "x*" matches every name that begins with x */
    const char *const *regexes; /* (n_regexes) each cuts the pieces of the one before it */
    size_t n_regexes;
    bool ignore_merges; /* a piece that is a token becomes that token without merging */
    bool add_bos;       /* a prompt begins with bos; used if the file does not set add_bos_token */
    bool nfc;           /* text is normalised to Unicode NFC first */
};

/* NULL if the name is unknown. */
const struct pretok_rule *pretok_rule_find(struct bn_str name);

/* BN_ENOMEM. */
bool pretok_open(const struct pretok_rule *rule, struct pretok **out, struct bn_error *err);
void pretok_close(struct pretok *p); /* accepts NULL */

/* Receives one piece, which points into the text of pretok_split. False: *err is written. */
typedef bool pretok_piece_fn(void *ud, struct bn_str piece, struct bn_error *err);

/* Call `piece` for every piece of `text`, in order; together the pieces are the text. Each run of
 * ill-formed UTF-8 is a separate piece, and no expression looks across it. Fails if `piece`
 * returns false, with BN_ENOMEM, or with BN_EFORMAT for any other error of PCRE2, such as an
 * exceeded match limit. */
bool pretok_split(const struct pretok *p, struct bn_str text, pretok_piece_fn *piece, void *ud,
                  struct bn_error *err);

#endif
