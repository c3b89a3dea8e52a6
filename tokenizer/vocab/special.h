/*
 * Finds special tokens in text: at a position the longest one that is allowed there.
 *
 * The texts are sorted, so each byte of the input narrows the range of candidates. A search takes a
 * few steps per byte and reads at most SPECIAL_BYTES_MAX bytes.
 */
#ifndef TOKENIZER_SPECIAL_H
#define TOKENIZER_SPECIAL_H

#include "engine/base/error.h"
#include "tokenizer/vocab/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPECIAL_BYTES_MAX 256 /* longer texts are not matched; the longest known has 31 */

struct special_set {
    int32_t *ids; /* (n) sorted by text; if several tokens have the same text, the lowest id */
    size_t n;
    uint32_t first[257]; /* texts that begin with byte c: indices first[c] to first[c + 1] - 1 */
};

#define SPECIAL_NONE SIZE_MAX

/* BN_ENOMEM. */
bool special_init(struct special_set *set, const struct vocab *v, struct bn_error *err);
void special_finish(struct special_set *set);

/* Index in `ids` of the longest special token that `text` starts with, or SPECIAL_NONE. `allowed`
 * has one flag per index; NULL allows all. */
size_t special_match(const struct special_set *set, const struct vocab *v, const uint8_t *allowed,
                     struct bn_str text);

#endif
