/*
 * Finds special tokens in text: at each place the longest one that is allowed there.
 *
 * The texts lie sorted, so that a range of them narrows byte by byte: a search costs a few steps a
 * byte and never more than SPECIAL_BYTES_MAX bytes, whatever the vocabulary holds.
 */
#ifndef TOKENIZER_SPECIAL_H
#define TOKENIZER_SPECIAL_H

#include "engine/base/error.h"
#include "tokenizer/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPECIAL_BYTES_MAX 256 /* longer texts are not matched; the longest known has 31 */

struct special_set {
    int32_t *ids; /* (n) by text, ascending; of equal texts the lowest id */
    size_t n;
    uint32_t first[257]; /* texts that begin with byte c: first[c] .. first[c + 1] */
};

#define SPECIAL_NONE SIZE_MAX

/* BN_ENOMEM. */
bool special_init(struct special_set *set, const struct vocab *v, struct bn_error *err);
void special_finish(struct special_set *set);

/* The place in `ids` of the longest text that `text` begins with, or SPECIAL_NONE. `allowed` (n)
 * says which count; NULL: all. */
size_t special_match(const struct special_set *set, const struct vocab *v, const uint8_t *allowed,
                     struct bn_str text);

#endif
