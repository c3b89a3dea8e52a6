/*
 * Merges are looked up by the ids of their halves: texts are compared only while opening.
 */
#include "tokenizer/bpe.h"

#include "engine/base/size.h"
#include "tokenizer/byte_map.h"

#include <string.h>

/* A table of 2^19 slots, two thirds full, has runs of about 180 at the most. */
#define PAIR_PROBES_MAX 512

/* Lookups of a large table are misses of the page table, too: ask for huge pages. */
#define HUGE_FROM ((size_t)1 << 20)

struct builder {
    struct bpe *b;
    const struct vocab *v;
    const struct vocab_source *s;
    struct byte_map map;
    struct text_index extra; /* texts of merges that are no words; opened when the first comes */
    char *room;              /* the longest merge, decoded */
    char *last_text;         /* (n_last) what the merge before joined to; files list all ways */
    size_t n_last;           /* to make a token one after the other */
    uint32_t last_joined;
};

static size_t pair_slot(const struct bpe *b, uint32_t left, uint32_t right)
{
    uint64_t h = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u; /* golden ratio */
    h ^= h >> 32;
    h *= 0xFF51AFD7ED558CCDu;
    return (size_t)(h >> 32) & (b->n_pairs - 1);
}

/* The slot of the pair, or the free one where it would go; NULL after too many. */
static struct bpe_pair *find_pair(const struct bpe *b, uint32_t left, uint32_t right)
{
    size_t at = pair_slot(b, left, right);
    for (size_t i = 0; i < PAIR_PROBES_MAX; i++, at = (at + 1) & (b->n_pairs - 1)) {
        struct bpe_pair *pair = &b->pairs[at];
        if (pair->rank1 == 0 || (pair->left == left && pair->right == right))
            return pair;
    }
    return NULL;
}

static bool open_extra(struct builder *u, struct bn_error *err)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < u->s->n_merges; i++)
        n_bytes += u->s->merges[i].n_bytes;
    size_t n_texts, n_room;
    if (!size_mul(&n_texts, u->s->n_merges, 3) || !size_mul(&n_room, n_bytes, 2))
        return bn_fail(err, BN_EFORMAT, "%zu merges are too many", u->s->n_merges);
    return text_index_init(&u->extra, n_texts, n_room, err);
}

/* The symbol of a decoded text. */
static bool symbol_of(struct builder *u, struct bn_str text, uint32_t *out, struct bn_error *err)
{
    const int32_t id = vocab_find(u->v, text, VOCAB_WORD);
    if (id >= 0 || text.n_bytes == 1) {
        *out = id >= 0 ? (uint32_t)id : u->b->bytes[(uint8_t)text.ptr[0]];
        return true;
    }
    if (!u->extra.slots && !open_extra(u, err))
        return false;
    uint32_t number = text_index_find(&u->extra, text, 0);
    if (number == UINT32_MAX) {
        memcpy(text_index_room(&u->extra), text.ptr, text.n_bytes);
        number = text_index_append(&u->extra, text.n_bytes);
        if (!text_index_add(&u->extra, number, 0))
            return bn_fail(err, BN_EFORMAT, "too many merge texts collide");
    }
    *out = (uint32_t)u->v->n + 256 + number;
    return true;
}

/* The symbol of the joined text in u->room. */
static bool joined_symbol(struct builder *u, size_t n_bytes, uint32_t *out, struct bn_error *err)
{
    const struct bn_str text = {u->room, n_bytes};
    if (!bn_str_equal(text, (struct bn_str){u->last_text, u->n_last})) {
        if (!symbol_of(u, text, &u->last_joined, err))
            return false;
        memcpy(u->last_text, text.ptr, n_bytes);
        u->n_last = n_bytes;
    }
    *out = u->last_joined;
    return true;
}

/* Halves are decoded one behind the other, so that the joined text lies there as well. */
static bool add_merge(struct builder *u, size_t rank, struct bn_error *err)
{
    const struct bn_str merge = u->s->merges[rank];
    const char *space = merge.n_bytes > 1 ? memchr(merge.ptr + 1, ' ', merge.n_bytes - 1) : NULL;
    const size_t left_bytes = space ? (size_t)(space - merge.ptr) : 0;
    if (!space || left_bytes + 1 == merge.n_bytes)
        return bn_fail(err, BN_EFORMAT, "merge %zu has no two halves", rank);
    bool exact_left, exact_right;
    const size_t n_left =
        byte_map_decode(&u->map, (struct bn_str){merge.ptr, left_bytes}, u->room, &exact_left);
    const size_t n_right =
        byte_map_decode(&u->map, (struct bn_str){space + 1, merge.n_bytes - left_bytes - 1},
                        u->room + n_left, &exact_right);
    if (!exact_left || !exact_right)
        return true; /* characters outside the byte map: no text can ever come to this merge */
    uint32_t left, right, joined;
    if (!symbol_of(u, (struct bn_str){u->room, n_left}, &left, err) ||
        !symbol_of(u, (struct bn_str){u->room + n_left, n_right}, &right, err) ||
        !joined_symbol(u, n_left + n_right, &joined, err))
        return false;
    struct bpe_pair *pair = find_pair(u->b, left, right);
    if (!pair)
        return bn_fail(err, BN_EFORMAT, "merge %zu: too many merges collide", rank);
    if (pair->rank1 == 0)
        *pair = (struct bpe_pair){left, right, (uint32_t)rank + 1, joined};
    return true;
}

static bool open_pairs(struct builder *u, struct bn_error *err)
{
    struct bpe *b = u->b;
    size_t longest = 1, n_pairs = 16;
    for (size_t i = 0; i < u->s->n_merges; i++)
        longest = size_max(longest, u->s->merges[i].n_bytes);
    if (u->s->n_merges > INT32_MAX / 4)
        return bn_fail(err, BN_EFORMAT, "%zu merges are too many", u->s->n_merges);
    while (n_pairs < u->s->n_merges + u->s->n_merges / 2)
        n_pairs *= 2;
    const size_t n_bytes = n_pairs * sizeof(*b->pairs);
    const bool mapped =
        mem_map_open(&b->map, n_bytes, n_bytes < HUGE_FROM ? MEM_PAGES_NORMAL : MEM_PAGES_HUGE);
    u->room = mem_alloc(longest, 1);
    u->last_text = mem_alloc(longest, 1);
    if (!mapped || !u->room || !u->last_text)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu merges", u->s->n_merges);
    b->pairs = b->map.ptr;
    b->n_pairs = n_pairs;
    return true;
}

bool bpe_init(struct bpe *b, const struct vocab *v, const struct vocab_source *s,
              struct bn_error *err)
{
    *b = (struct bpe){.n_merges = s->n_merges};
    struct builder u = {.b = b, .v = v, .s = s};
    byte_map_init(&u.map);
    for (uint32_t byte = 0; byte < 256; byte++) {
        const char c = (char)byte;
        const int32_t id = vocab_find(v, (struct bn_str){&c, 1}, VOCAB_WORD);
        b->bytes[byte] = id >= 0 ? (uint32_t)id : (uint32_t)v->n + byte;
    }
    bool ok = open_pairs(&u, err);
    for (size_t i = 0; ok && i < s->n_merges; i++)
        ok = add_merge(&u, i, err);
    text_index_finish(&u.extra);
    mem_free(u.room);
    mem_free(u.last_text);
    if (!ok)
        bpe_finish(b);
    return ok;
}

void bpe_finish(struct bpe *b)
{
    mem_map_close(&b->map);
    *b = (struct bpe){0};
}

static void bpe_pair_of(const void *rules, struct merge_symbol *symbols, uint32_t left,
                        uint32_t right)
{
    const struct bpe_pair *pair = find_pair(rules, symbols[left].id, symbols[right].id);
    const bool found = pair && pair->rank1 > 0;
    symbols[left].rank = found ? pair->rank1 - 1 : MERGE_NO_RANK;
    symbols[left].joined = found ? pair->joined : 0;
}

/* A symbol that is no token goes out byte by byte, without the bytes that are no tokens either. */
static bool emit(const struct bpe *b, const struct vocab *v, uint32_t symbol, struct bn_str text,
                 struct token_list *out, struct bn_error *err)
{
    if (symbol < v->n)
        return token_list_push(out, (int32_t)symbol, err);
    for (size_t i = 0; i < text.n_bytes; i++) {
        const uint32_t byte = b->bytes[(uint8_t)text.ptr[i]];
        if (byte < v->n && !token_list_push(out, (int32_t)byte, err))
            return false;
    }
    return true;
}

bool bpe_encode(const struct bpe *b, const struct vocab *v, struct bn_str piece, struct merge *m,
                struct token_list *out, struct bn_error *err)
{
    if (b->whole_first && piece.n_bytes <= v->longest_word) {
        const int32_t id = vocab_find(v, piece, VOCAB_WORD);
        if (id >= 0)
            return token_list_push(out, id, err);
    }
    if (!merge_reserve(m, piece.n_bytes, err))
        return false;
    const uint32_t n_bytes = (uint32_t)piece.n_bytes;
    for (uint32_t i = 0; i < n_bytes; i++) {
        m->symbols[i] = (struct merge_symbol){
            .id = b->bytes[(uint8_t)piece.ptr[i]],
            .next = i + 1,
            .before = i ? i - 1 : UINT32_MAX,
        };
    }
    merge_run(m, n_bytes, bpe_pair_of, b);
    for (uint32_t i = 0; i < n_bytes; i = m->symbols[i].next) {
        const struct bn_str text = {piece.ptr + i, m->symbols[i].next - i};
        if (!emit(b, v, m->symbols[i].id, text, out, err))
            return false;
    }
    return true;
}
