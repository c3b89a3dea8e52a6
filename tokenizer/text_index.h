/*
 * A list of byte strings numbered from 0, and a hash table that finds the number of a string.
 *
 * Strings are appended to one pool. A string is found only after text_index_add with its class: the
 * same bytes may stand once in each class. Inserting and finding look at no more than
 * TEXT_PROBES_MAX slots, so a file made to collide is refused instead of making everything slow.
 */
#ifndef TOKENIZER_TEXT_INDEX_H
#define TOKENIZER_TEXT_INDEX_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stddef.h>
#include <stdint.h>

/* At half load the longest run of a table of 2^20 slots stays below about 80. */
#define TEXT_PROBES_MAX 256

/* With the place of the text in it: a search touches the slot and the text, nothing else. */
struct text_slot {
    uint32_t tag;   /* upper half of the hash */
    uint32_t entry; /* number + 1; 0: free */
    uint32_t start; /* in the pool */
    uint32_t n_bytes;
};

struct text_index {
    char *pool; /* (pool_bytes) */
    size_t pool_bytes;
    size_t pool_cap;
    uint32_t *ends; /* (n): where in the pool each string ends */
    size_t ends_cap;
    size_t n;
    struct text_slot *slots; /* (n_slots), a power of two, at most half full */
    size_t n_slots;
};

/* Room for `n_texts` strings of `n_bytes` together; more than that cannot be appended.
 * BN_EFORMAT: more than 2^31 strings or 4 GiB. BN_ENOMEM. */
bool text_index_init(struct text_index *x, size_t n_texts, size_t n_bytes, struct bn_error *err);
void text_index_finish(struct text_index *x);

/* Begin a string: the address where its bytes go. Follow with text_index_append. */
char *text_index_room(struct text_index *x);
/* The string is the `n_bytes` written at text_index_room; its number. */
uint32_t text_index_append(struct text_index *x, size_t n_bytes);

struct bn_str text_index_get(const struct text_index *x, uint32_t number);

/* Make string `number` findable in `class`; the first of equal strings wins. False: too many
 * strings share a place. */
bool text_index_add(struct text_index *x, uint32_t number, unsigned class);
/* The number, or UINT32_MAX. */
uint32_t text_index_find(const struct text_index *x, struct bn_str text, unsigned class);

/* text_index_find in two steps. Many probes first, then what they found: the memory that the first
 * step asks for comes while the next probes are made. */
struct text_probe {
    struct bn_str text;
    uint64_t hash;
    struct text_slot slot; /* the first one looked at */
};
void text_index_probe(const struct text_index *x, struct bn_str text, unsigned class,
                      struct text_probe *out);
uint32_t text_index_settle(const struct text_index *x, const struct text_probe *probe,
                           unsigned class);

uint64_t text_hash(const char *bytes, size_t n_bytes, uint64_t seed);

#endif
