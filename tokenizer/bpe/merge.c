/*
 * The merge loop, with a heap of pairs and lazy deletion.
 *
 * When a pair changes, its old entry stays in the heap and is dropped when it reaches the top and
 * no longer matches the symbols. Every join removes one entry and adds at most two, so the heap
 * never has more entries than twice the number of initial symbols. A node has four children,
 * because cache misses limit the speed of a heap of a million entries. With two children it has
 * twice as many levels.
 */
#include "tokenizer/bpe/merge.h"

#include "engine/base/memory.h"

#define CHILDREN 4
#define JOINED UINT32_MAX /* value of `next` of a symbol joined into its left neighbour */

bool merge_reserve(struct merge *m, size_t n_bytes, struct bn_error *err)
{
    if (n_bytes > MERGE_BYTES_MAX / 2 || /* then n_bytes * 2 could overflow a 32-bit size_t */
        !mem_grow(&m->symbols, &m->symbols_cap, n_bytes, sizeof(*m->symbols)) ||
        !mem_grow(&m->heap, &m->heap_cap, n_bytes * 2, sizeof(*m->heap)))
        return bn_fail(err, BN_ENOMEM, "no memory to tokenise %zu bytes", n_bytes);
    return true;
}

void merge_finish(struct merge *m)
{
    mem_free(m->symbols);
    mem_free(m->heap);
    *m = (struct merge){0};
}

static void sift_down(uint64_t *heap, size_t n, size_t at, uint64_t key)
{
    for (;;) {
        const size_t first = at * CHILDREN + 1;
        if (first >= n)
            break;
        const size_t end = first + CHILDREN < n ? first + CHILDREN : n;
        size_t best = first;
        for (size_t i = first + 1; i < end; i++)
            best = heap[i] < heap[best] ? i : best;
        if (heap[best] >= key)
            break;
        heap[at] = heap[best];
        at = best;
    }
    heap[at] = key;
}

static void push(struct merge *m, uint64_t key)
{
    size_t at = m->n_heap++;
    while (at > 0 && m->heap[(at - 1) / CHILDREN] > key) {
        m->heap[at] = m->heap[(at - 1) / CHILDREN];
        at = (at - 1) / CHILDREN;
    }
    m->heap[at] = key;
}

static uint64_t pop(struct merge *m)
{
    const uint64_t top = m->heap[0];
    const uint64_t last = m->heap[--m->n_heap];
    if (m->n_heap > 0)
        sift_down(m->heap, m->n_heap, 0, last);
    return top;
}

/* Collect the initial pairs and build the heap bottom-up. Entries after n_heap / CHILDREN have no
 * children. */
static void fill(struct merge *m, uint32_t n_bytes, merge_pair_fn *pair, const void *rules)
{
    m->n_heap = 0;
    for (uint32_t at = 0; at < n_bytes; at = m->symbols[at].next) {
        struct merge_symbol *symbol = &m->symbols[at];
        symbol->rank = MERGE_NO_RANK;
        if (symbol->next < n_bytes)
            pair(rules, m->symbols, at, symbol->next);
        if (symbol->rank != MERGE_NO_RANK)
            m->heap[m->n_heap++] = (uint64_t)symbol->rank << 32 | at;
    }
    for (size_t at = m->n_heap / CHILDREN + 1; at-- > 0;) {
        if (at < m->n_heap)
            sift_down(m->heap, m->n_heap, at, m->heap[at]);
    }
}

/* Compute the pair of the symbol at `left` with the next symbol, which must exist. */
static void update_pair(struct merge *m, uint32_t left, merge_pair_fn *pair, const void *rules)
{
    struct merge_symbol *symbol = &m->symbols[left];
    pair(rules, m->symbols, left, symbol->next);
    if (symbol->rank != MERGE_NO_RANK)
        push(m, (uint64_t)symbol->rank << 32 | left);
}

void merge_run(struct merge *m, uint32_t n_bytes, merge_pair_fn *pair, const void *rules)
{
    struct merge_symbol *symbols = m->symbols;
    fill(m, n_bytes, pair, rules);
    while (m->n_heap > 0) {
        const uint64_t key = pop(m);
        const uint32_t at = (uint32_t)key;
        struct merge_symbol *left = &symbols[at];
        if (left->next == JOINED || left->rank != (uint32_t)(key >> 32))
            continue;
        struct merge_symbol *right = &symbols[left->next];
        const uint32_t after = right->next;
        right->next = JOINED;
        left->id = left->joined;
        left->next = after;
        left->rank = MERGE_NO_RANK;
        if (after < n_bytes) {
            symbols[after].before = at;
            update_pair(m, at, pair, rules);
        }
        if (left->before != UINT32_MAX)
            update_pair(m, left->before, pair, rules);
    }
}
