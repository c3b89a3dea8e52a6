/*
 * A list of byte strings numbered from 0, and a hash table that finds the number of a string.
 *
 * Strings are appended to one pool. A string can be found only after text_index_add, which assigns
 * a class to it: a number from 0 to TEXT_CLASSES - 1 that a search must give too. The same bytes
 * can be in several classes. Insert and find look at no more than TEXT_PROBES_MAX slots, so a file
 * built to collide is refused and cannot make the program slow.
 */
#ifndef TOKENIZER_TEXT_INDEX_H
#define TOKENIZER_TEXT_INDEX_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stddef.h>
#include <stdint.h>

/* In a table of 2^20 slots that is half full, the longest chain of occupied slots is at most about
 * 80, so only a file that is made to collide reaches this limit. */
#define TEXT_PROBES_MAX 256
#define TEXT_CLASSES 4 /* a power of two */

/* A slot holds the position of its text, so that a search reads only the slot and the text. */
struct text_slot {
    uint32_t tag;   /* upper half of the text's hash, with the class in the lowest bits */
    uint32_t entry; /* number of the string + 1; 0 for a free slot */
    uint32_t start; /* offset of the text in the pool */
    uint32_t n_bytes;
};

struct text_index {
    char *pool;        /* (pool_bytes) */
    size_t pool_bytes; /* bytes of the strings appended so far */
    uint32_t *ends;    /* (n) end of each string as an offset in the pool */
    size_t n;
    struct text_slot *slots; /* (n_slots), a power of two, at most half full */
    size_t n_slots;
};

/* Space for `n_texts` strings with `n_bytes` in total; more cannot be appended.
 * BN_EFORMAT: at least 2^31 strings or 4 GiB. BN_ENOMEM. After an error x needs no
 * text_index_finish. */
bool text_index_init(struct text_index *x, size_t n_texts, size_t n_bytes, struct bn_error *err);
void text_index_finish(struct text_index *x);

/* To append a string, write its bytes to text_index_buffer and call text_index_append, which
 * returns the number of the string. The caller keeps to the limits of text_index_init. */
char *text_index_buffer(struct text_index *x);
uint32_t text_index_append(struct text_index *x, size_t n_bytes);

/* `number` must be below n. The bytes stay at their place until text_index_finish. */
struct bn_str text_index_get(const struct text_index *x, uint32_t number);

/* Insert string `number` into the table under `class`. If the class already holds the same text,
 * the earlier string stays. Returns false if too many strings collide. */
bool text_index_add(struct text_index *x, uint32_t number, unsigned class);
/* The number of the string with this text that was inserted under `class`; UINT32_MAX if there is
 * none. */
uint32_t text_index_find(const struct text_index *x, struct bn_str text, unsigned class);

/* text_index_find in two steps, for many strings at once. If all probes come before the first
 * resolve, their cache misses overlap. Between the two steps the index must not change, and the
 * bytes of the text must stay. `class` must be the same in both. */
struct text_probe {
    struct bn_str text;
    uint64_t hash;
    struct text_slot slot; /* copy of the first slot that a search reads */
};
void text_index_probe(const struct text_index *x, struct bn_str text, unsigned class,
                      struct text_probe *out);
uint32_t text_index_resolve(const struct text_index *x, const struct text_probe *probe,
                            unsigned class);

/* Not cryptographic. Different seeds give different hashes of the same bytes. */
uint64_t text_hash(const char *bytes, size_t n_bytes, uint64_t seed);

#endif
