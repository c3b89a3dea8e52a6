/*
 * Matches special tokens by binary search in a sorted list, one byte at a time, with the same
 * result as a trie.
 *
 * Among the tokens that begin at one position the longest wins, as in the tokenizers library of
 * Hugging Face.
 */
#include "tokenizer/vocab/special.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    struct bn_str text;
    int32_t id;
};

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    const int order = memcmp(x->text.ptr, y->text.ptr, size_min(x->text.n_bytes, y->text.n_bytes));
    if (order != 0)
        return order;
    if (x->text.n_bytes != y->text.n_bytes)
        return x->text.n_bytes < y->text.n_bytes ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static size_t collect(struct entry *entries, const struct vocab *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++) {
        const struct bn_str text = vocab_text(v, (int32_t)i);
        const uint8_t type = v->types[i];
        if ((type == TOKEN_CONTROL || type == TOKEN_UNKNOWN || type == TOKEN_USER) &&
            text.n_bytes > 0 && text.n_bytes <= SPECIAL_BYTES_MAX)
            entries[n++] = (struct entry){text, (int32_t)i};
    }
    return n;
}

bool special_init(struct special_set *set, const struct vocab *v, struct bn_error *err)
{
    *set = (struct special_set){0};
    struct entry *entries = mem_alloc(v->n_special, sizeof(*entries));
    set->ids = mem_alloc(v->n_special, sizeof(*set->ids));
    if (!entries || !set->ids) {
        mem_free(entries);
        special_finish(set);
        return bn_fail(err, BN_ENOMEM, "no memory for %zu special tokens", v->n_special);
    }
    const size_t n = collect(entries, v);
    qsort(entries, n, sizeof(*entries), compare);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && bn_str_equal(entries[i].text, entries[i - 1].text))
            continue;
        set->ids[set->n++] = entries[i].id;
        set->first[(uint8_t)entries[i].text.ptr[0] + 1u] = (uint32_t)set->n;
    }
    /* No text begins with byte c - 1 if first[c] is still 0. */
    for (size_t c = 1; c <= 256; c++)
        if (set->first[c] == 0)
            set->first[c] = set->first[c - 1];
    mem_free(entries);
    return true;
}

void special_finish(struct special_set *set)
{
    mem_free(set->ids);
    *set = (struct special_set){0};
}

/* Index of the first text in [low, high) whose byte at position `depth` is at least `byte`, which
 * is 0 to 256; `high` if there is none. All these texts are equal before `depth`; a text that ends
 * there sorts first. */
static size_t lower_bound(const struct special_set *set, const struct vocab *v, size_t low,
                          size_t high, size_t depth, unsigned byte)
{
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct bn_str text = vocab_text(v, set->ids[middle]);
        if (text.n_bytes <= depth || (uint8_t)text.ptr[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t special_match(const struct special_set *set, const struct vocab *v, const uint8_t *allowed,
                     struct bn_str text)
{
    size_t found = SPECIAL_NONE;
    if (text.n_bytes == 0)
        return found;
    const uint8_t byte = (uint8_t)text.ptr[0];
    size_t low = set->first[byte], high = set->first[byte + 1u];
    for (size_t depth = 1; low < high; depth++) {
        if (vocab_text(v, set->ids[low]).n_bytes == depth && (!allowed || allowed[low]))
            found = low;
        if (depth == text.n_bytes)
            break;
        const uint8_t next = (uint8_t)text.ptr[depth];
        low = lower_bound(set, v, low, high, depth, next);
        high = lower_bound(set, v, low, high, depth, next + 1u);
    }
    return found;
}
