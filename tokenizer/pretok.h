/*
 * Cuts text into the pieces that byte-level BPE merges within: the regular expressions of each
 * pre-tokenizer, by name.
 *
 * A pre-tokenizer is immutable after pretok_open; each split has its own match state.
 */
#ifndef TOKENIZER_PRETOK_H
#define TOKENIZER_PRETOK_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct pretok;

/* What comes with a name in the file's `pre` key. */
struct pretok_rule {
    const char
        *names; /* separated by spaces, the first is the rule's own; "x*" is any that begins x */
    const char *const *regexes; /* (n_regexes), applied one after the other */
    size_t n_regexes;
    bool ignore_merges; /* a whole piece that is a token is that token */
    bool add_bos;       /* where the file does not say */
};

/* NULL: no such name. */
const struct pretok_rule *pretok_rule_find(struct bn_str name);

/* BN_ENOMEM. */
bool pretok_open(const struct pretok_rule *rule, struct pretok **out, struct bn_error *err);
void pretok_close(struct pretok *p); /* NULL is fine */

typedef bool pretok_piece_fn(void *ud, struct bn_str piece, struct bn_error *err);

/* Hand every piece of `text` to `piece`, in order; together they are the text. Bytes that are no
 * UTF-8 are cut out first, each run of them a piece, and no expression sees past them. False:
 * `piece` said so, BN_ENOMEM, or BN_EFORMAT when an expression exceeds its match limit. */
bool pretok_split(const struct pretok *p, struct bn_str text, pretok_piece_fn *piece, void *ud,
                  struct bn_error *err);

#endif
