/*
 * The merge loop that byte-level BPE and SentencePiece share. It joins neighbouring symbols of one
 * piece of text: first the pair with the lowest rank; among equal ranks, the leftmost pair.
 *
 * A symbol is identified by the byte position where it begins; it ends where the next one begins.
 * The caller fills in the initial symbols, defines the pairs with a callback, and reads the result.
 * A piece of n bytes takes O(n log n) time.
 */
#ifndef TOKENIZER_MERGE_H
#define TOKENIZER_MERGE_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MERGE_NO_RANK UINT32_MAX         /* the pair does not merge */
#define MERGE_BYTES_MAX (UINT32_MAX - 1) /* positions have 32 bits, and UINT32_MAX is no position */

struct merge_symbol {
    uint32_t id;     /* number of the symbol, as the caller defines it */
    uint32_t next;   /* position of the next symbol; n_bytes of the piece for the last */
    uint32_t before; /* position of the previous symbol; UINT32_MAX for the first */
    uint32_t rank;   /* rank of the pair with the next symbol; lower is better */
    uint32_t joined; /* id of the joined pair */
};

/* Set `rank` and `joined` of the symbol at `left` for the pair with its neighbour at `right`. The
 * rank is MERGE_NO_RANK if the two do not merge. */
typedef void merge_pair_fn(const void *rules, struct merge_symbol *symbols, uint32_t left,
                           uint32_t right);

struct merge {
    struct merge_symbol *symbols; /* (symbols_cap), by byte position */
    size_t symbols_cap;
    uint64_t *heap; /* (n_heap): rank << 32 | position of the left symbol of the pair */
    size_t heap_cap;
    size_t n_heap;
};

/* Reserve memory for a piece of `n_bytes`. BN_ENOMEM, also for more than MERGE_BYTES_MAX / 2. */
bool merge_reserve(struct merge *m, size_t n_bytes, struct bn_error *err);
void merge_finish(struct merge *m);

/* Join until no pair can merge. The caller has reserved n_bytes and set id, next and before of the
 * initial symbols. `rules` is passed to `pair`. The symbols of the result are at position 0 and
 * then at each `next`, up to n_bytes. */
void merge_run(struct merge *m, uint32_t n_bytes, merge_pair_fn *pair, const void *rules);

#endif
