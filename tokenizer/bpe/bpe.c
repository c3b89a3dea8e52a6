/*
 * Byte-level BPE. Merges are found by the symbols of their two halves. Texts are compared only
 * while the table of merges is built, and where a whole piece is looked up (ignore_merges).
 *
 * Llama 3 has 280 thousand merges with three texts each (two halves and the joined text), and the
 * user waits until the table is built. Nearly all of the time is spent on cache misses, so merges
 * are processed in blocks: first all texts of a block are decoded and their slots in the index of
 * the vocabulary are read, then the texts are compared, then the pairs are inserted.
 */
#include "tokenizer/bpe/bpe.h"

#include "engine/base/size.h"
#include "tokenizer/vocab/byte_map.h"

#include <string.h>

#define BLOCK 64 /* merges; their 192 probes are more than the loads that a core keeps in flight */

/* Bytes. Lookups in a large table also miss the TLB, so tables from this size on use huge pages. */
#define HUGE_FROM ((size_t)1 << 20)

struct merge_texts {
    size_t rank;
    /* The previous merge of the block builds the same text, so `joined` is not set. This is common
     * in files such as Llama 3's, which list all merges that build a token one after the other. */
    bool same;
    struct text_probe left, right, joined;
};

struct builder {
    struct bpe *b;
    const struct vocab *v;
    const struct vocab_source *s;
    struct byte_map map;
    struct text_index extra; /* merge texts that are not tokens; opened for the first one */
    char *buffer;            /* (buffer_cap) decoded texts of a block */
    size_t buffer_cap;
    struct merge_texts *block; /* (n_block <= BLOCK) */
    size_t n_block;
};

/* ---- building the table ---- */

static bool open_extra(struct builder *u, struct bn_error *err)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < u->s->n_merges; i++)
        n_bytes += u->s->merges[i].n_bytes; /* cannot overflow: all are in one file */
    size_t n_texts, n_pool;
    /* At most three new texts per merge. The two halves together are as long as the joined text. */
    if (!size_mul(&n_texts, u->s->n_merges, 3) || !size_mul(&n_pool, n_bytes, 2))
        return bn_fail(err, BN_EFORMAT, "%zu merges are too many", u->s->n_merges);
    return text_index_init(&u->extra, n_texts, n_pool, err);
}

/* The symbol of a decoded text. A single byte without a token has the number v->n + byte, from
 * bpe.bytes; other texts that are not tokens get the numbers from v->n + 256 on. */
static bool symbol_of(struct builder *u, const struct text_probe *probe, uint32_t *out,
                      struct bn_error *err)
{
    const struct bn_str text = probe->text;
    *out = text_index_resolve(&u->v->texts, probe, VOCAB_WORD);
    if (*out != UINT32_MAX)
        return true;
    if (text.n_bytes == 1) {
        *out = u->b->bytes[(uint8_t)text.ptr[0]];
        return true;
    }
    if (!u->extra.slots && !open_extra(u, err))
        return false;
    uint32_t number = text_index_find(&u->extra, text, 0);
    if (number == UINT32_MAX) {
        memcpy(text_index_buffer(&u->extra), text.ptr, text.n_bytes);
        number = text_index_append(&u->extra, text.n_bytes);
        if (!text_index_add(&u->extra, number, 0))
            return bn_fail(err, BN_EFORMAT, "too many merge texts collide");
    }
    *out = (uint32_t)u->v->n + 256 + number;
    return true;
}

/* Decode both halves of a merge to `out`, one after the other, so that `out` also holds the joined
 * text. halves[] receives their lengths; halves[0] is 0 if a character is outside the byte map,
 * since no text can reach such a merge. */
static bool decode_merge(struct builder *u, size_t rank, char *out, size_t halves[2],
                         struct bn_error *err)
{
    struct bn_str left, right;
    if (!vocab_split_merge(u->s->merges[rank], &left, &right))
        return bn_fail(err, BN_EFORMAT,
                       "key 'tokenizer.ggml.merges': merge %zu lacks one of two halves", rank);
    bool exact_left, exact_right;
    halves[0] = byte_map_decode(&u->map, left, out, &exact_left);
    halves[1] = byte_map_decode(&u->map, right, out + halves[0], &exact_right);
    if (!exact_left || !exact_right)
        halves[0] = 0;
    return true;
}

/* Decode the merges from rank0 up to but not including rank1, and read their slots. */
static bool probe_block(struct builder *u, size_t rank0, size_t rank1, struct bn_error *err)
{
    size_t n_bytes = 0;
    for (size_t rank = rank0; rank < rank1; rank++)
        n_bytes += u->s->merges[rank].n_bytes;
    if (!mem_grow(&u->buffer, &u->buffer_cap, n_bytes, 1))
        return bn_fail(err, BN_ENOMEM, "no memory for %zu merges", u->s->n_merges);
    char *out = u->buffer;
    struct bn_str last = {NULL, 0};
    u->n_block = 0;
    for (size_t rank = rank0; rank < rank1; rank++) {
        size_t halves[2] = {0, 0};
        if (!decode_merge(u, rank, out, halves, err))
            return false;
        if (halves[0] == 0)
            continue;
        struct merge_texts *texts = &u->block[u->n_block++];
        const struct bn_str joined = {out, halves[0] + halves[1]};
        const struct text_index *index = &u->v->texts;
        texts->rank = rank;
        texts->same = bn_str_equal(joined, last);
        text_index_probe(index, (struct bn_str){out, halves[0]}, VOCAB_WORD, &texts->left);
        text_index_probe(index, (struct bn_str){out + halves[0], halves[1]}, VOCAB_WORD,
                         &texts->right);
        if (!texts->same)
            text_index_probe(index, joined, VOCAB_WORD, &texts->joined);
        last = joined;
        out += joined.n_bytes;
    }
    return true;
}

/* Find the symbols of all texts of the block, then insert its pairs. If a pair occurs twice, the
 * first merge counts. */
static bool add_block(struct builder *u, struct bn_error *err)
{
    struct bpe_pair pairs[BLOCK];
    uint32_t joined = 0;
    for (size_t i = 0; i < u->n_block; i++) {
        const struct merge_texts *texts = &u->block[i];
        pairs[i].rank1 = (uint32_t)texts->rank + 1;
        if (!symbol_of(u, &texts->left, &pairs[i].left, err) ||
            !symbol_of(u, &texts->right, &pairs[i].right, err) ||
            (!texts->same && !symbol_of(u, &texts->joined, &joined, err)))
            return false;
        pairs[i].joined = joined;
    }
    for (size_t i = 0; i < u->n_block; i++) {
        struct bpe_pair *pair = bpe_find_pair(u->b, pairs[i].left, pairs[i].right);
        if (!pair)
            return bn_fail(err, BN_EFORMAT, "merge %zu: too many merges collide", u->block[i].rank);
        if (pair->rank1 == 0)
            *pair = pairs[i];
    }
    return true;
}

static bool open_pairs(struct builder *u, struct bn_error *err)
{
    struct bpe *b = u->b;
    size_t n_slots = 16;
    if (u->s->n_merges > INT32_MAX / 4) /* symbols, n_vocab + 256 + 3 * n_merges, fit in 32 bits */
        return bn_fail(err, BN_EFORMAT, "%zu merges are too many", u->s->n_merges);
    while (n_slots < u->s->n_merges + u->s->n_merges / 2)
        n_slots *= 2;
    const size_t n_bytes = n_slots * sizeof(*b->pairs);
    const bool mapped =
        mem_map_open(&b->map, n_bytes, n_bytes < HUGE_FROM ? MEM_PAGES_NORMAL : MEM_PAGES_HUGE);
    u->block = mem_alloc(BLOCK, sizeof(*u->block));
    if (!mapped || !u->block)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu merges", u->s->n_merges);
    b->pairs = b->map.ptr;
    b->n_slots = n_slots;
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
    for (size_t rank = 0; ok && rank < s->n_merges; rank += BLOCK)
        ok = probe_block(&u, rank, size_min(rank + BLOCK, s->n_merges), err) && add_block(&u, err);
    text_index_finish(&u.extra);
    mem_free(u.buffer);
    mem_free(u.block);
    if (!ok)
        bpe_finish(b);
    return ok;
}

void bpe_finish(struct bpe *b)
{
    mem_map_close(&b->map);
    *b = (struct bpe){0};
}

/* ---- encoding ---- */

static void bpe_pair_of(const void *rules, struct merge_symbol *symbols, uint32_t left,
                        uint32_t right)
{
    const struct bpe_pair *pair = bpe_find_pair(rules, symbols[left].id, symbols[right].id);
    const bool found = pair && pair->rank1 > 0;
    symbols[left].rank = found ? pair->rank1 - 1 : MERGE_NO_RANK;
    symbols[left].joined = found ? pair->joined : 0;
}

/* Append the id of a symbol. A symbol that is not a token is written as the ids of its bytes; bytes
 * that are not tokens are dropped. */
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
    if (b->ignore_merges && piece.n_bytes <= v->longest_word) {
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
