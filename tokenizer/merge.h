/*
 * Joins neighbouring symbols of one piece of text, best pair first, leftmost of equals: the loop
 * that byte-level BPE and SentencePiece share.
 *
 * A symbol is numbered by the byte it begins at, and ends where the next one begins. The caller
 * fills in the first symbols, says what a pair becomes, and reads the rest. O(n log n) in the
 * bytes.
 */
#ifndef TOKENIZER_MERGE_H
#define TOKENIZER_MERGE_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MERGE_NO_RANK UINT32_MAX
#define MERGE_BYTES_MAX (UINT32_MAX - 1) /* positions are 32 bits wide */

struct merge_symbol {
    uint32_t id;
    uint32_t next;   /* where the next symbol begins; the piece's n_bytes for the last */
    uint32_t before; /* where the one before begins; UINT32_MAX for the first */
    uint32_t rank;   /* of this symbol with the next; lower is better */
    uint32_t joined; /* what the two become */
};

/* What does the symbol at `left` become with its neighbour at `right`, which ends before `end`?
 * Sets rank and joined of `left`; rank MERGE_NO_RANK: nothing. */
typedef void merge_pair_fn(const void *rules, struct merge_symbol *symbols, uint32_t left,
                           uint32_t right);

struct merge {
    struct merge_symbol *symbols; /* (symbols_cap), by byte position */
    size_t symbols_cap;
    uint64_t *heap; /* (heap_cap): rank << 32 | position */
    size_t heap_cap;
    size_t n_heap;
};

/* Room for a piece of `n_bytes`. BN_ENOMEM. */
bool merge_reserve(struct merge *m, size_t n_bytes, struct bn_error *err);
void merge_finish(struct merge *m);

/* `symbols` holds id, next and before of every first symbol. Joins until no pair is left. */
void merge_run(struct merge *m, uint32_t n_bytes, merge_pair_fn *pair, const void *rules);

#endif
