/*
 * Byte-level BPE: converts one piece of text to ids by ranked merges. The rank of a merge is its
 * index in the list of merges in the file; lower ranks come first.
 *
 * A symbol number below the size of the vocabulary is a token id. Higher numbers are bytes without
 * a token, and texts that occur in merges but are not tokens.
 */
#ifndef TOKENIZER_BPE_H
#define TOKENIZER_BPE_H

#include "engine/base/error.h"
#include "engine/base/memory.h"
#include "tokenizer/bpe/merge.h"
#include "tokenizer/vocab/token_list.h"
#include "tokenizer/vocab/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most slots that a lookup examines. In a table of 2^19 slots that is two thirds full, the longest
 * chain of occupied slots has about 100 slots and rarely more than 160. So only a file that is made
 * to collide reaches this limit. */
#define BPE_PROBES_MAX 512

struct bpe_pair {
    uint32_t left, right; /* symbols */
    uint32_t rank1;       /* rank + 1; 0 for a free slot */
    uint32_t joined;      /* symbol of both halves together */
};

struct bpe {
    struct mem_map map;     /* owns the memory of `pairs` */
    struct bpe_pair *pairs; /* (n_slots) hash table in `map` */
    size_t n_slots;         /* a power of two; the table is at most two thirds full */
    uint32_t bytes[256];    /* symbol of each byte */
    size_t n_merges;
    /* Set by the caller after bpe_init: a piece that is a token becomes it without merging. */
    bool ignore_merges;
};

/* The slot of the pair, or the free slot for it; NULL if neither is within BPE_PROBES_MAX slots. */
static inline struct bpe_pair *bpe_find_pair(const struct bpe *b, uint32_t left, uint32_t right)
{
    uint64_t h = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u; /* golden ratio in 64 bits */
    h ^= h >> 32;
    h *= 0xFF51AFD7ED558CCDu; /* from MurmurHash3's finaliser */
    size_t at = (size_t)(h >> 32) & (b->n_slots - 1);
    for (size_t i = 0; i < BPE_PROBES_MAX; i++, at = (at + 1) & (b->n_slots - 1)) {
        struct bpe_pair *pair = &b->pairs[at];
        if (pair->rank1 == 0 || (pair->left == left && pair->right == right))
            return pair;
    }
    return NULL;
}

/* BN_EFORMAT: a merge without two halves, too many merges, or too many collisions. BN_ENOMEM. After
 * an error b needs no bpe_finish. */
bool bpe_init(struct bpe *b, const struct vocab *v, const struct vocab_source *s,
              struct bn_error *err);
void bpe_finish(struct bpe *b);

/* Append the ids of `piece`. v is the vocabulary that bpe_init got. `m` is scratch memory, at first
 * all zero; the caller frees it with merge_finish. Drops bytes without a token. BN_ENOMEM: some of
 * the ids may have been appended. */
bool bpe_encode(const struct bpe *b, const struct vocab *v, struct bn_str piece, struct merge *m,
                struct token_list *out, struct bn_error *err);

#endif
