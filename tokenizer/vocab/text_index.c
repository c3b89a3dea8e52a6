/*
 * A hash table with open addressing and linear probing. A lookup reads the pool only if the tag is
 * equal.
 */
#include "tokenizer/vocab/text_index.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <string.h>

#define NOT_FOUND UINT32_MAX

/* The golden ratio in 64 bits, and a multiplier of MurmurHash3's finaliser. Both are odd, so that a
 * multiplication maps different numbers to different numbers. */
#define HASH_STEP 0x9E3779B97F4A7C15u
#define HASH_END 0xFF51AFD7ED558CCDu

uint64_t text_hash(const char *bytes, size_t n_bytes, uint64_t seed)
{
    uint64_t h = (seed ^ n_bytes) * HASH_STEP;
    uint64_t word;
    for (; n_bytes >= sizeof(word); bytes += sizeof(word), n_bytes -= sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        h = (h ^ word) * HASH_STEP;
        h ^= h >> 32;
    }
    word = 0;
    for (size_t i = 0; i < n_bytes; i++)
        word = word << 8 | (uint8_t)bytes[i];
    h = (h ^ word) * HASH_END;
    return h ^ h >> 32;
}

bool text_index_init(struct text_index *x, size_t n_texts, size_t n_bytes, struct bn_error *err)
{
    *x = (struct text_index){0};
    if (n_texts > INT32_MAX || n_bytes > UINT32_MAX)
        return bn_fail(err, BN_EFORMAT, "%zu token texts in %zu bytes are too many", n_texts,
                       n_bytes);
    size_t n_slots = 16;
    while (n_slots < n_texts * 2)
        n_slots *= 2;
    x->pool = mem_alloc(n_bytes, 1);
    x->ends = mem_alloc(n_texts, sizeof(*x->ends));
    x->slots = mem_alloc(n_slots, sizeof(*x->slots));
    x->n_slots = n_slots;
    if (x->pool && x->ends && x->slots)
        return true;
    text_index_finish(x);
    return bn_fail(err, BN_ENOMEM, "no memory for %zu token texts", n_texts);
}

void text_index_finish(struct text_index *x)
{
    mem_free(x->pool);
    mem_free(x->ends);
    mem_free(x->slots);
    *x = (struct text_index){0};
}

char *text_index_buffer(struct text_index *x)
{
    return x->pool + x->pool_bytes;
}

uint32_t text_index_append(struct text_index *x, size_t n_bytes)
{
    x->pool_bytes += n_bytes;
    x->ends[x->n] = (uint32_t)x->pool_bytes;
    return (uint32_t)x->n++;
}

struct bn_str text_index_get(const struct text_index *x, uint32_t number)
{
    const size_t start = number ? x->ends[number - 1] : 0;
    return (struct bn_str){x->pool + start, x->ends[number] - start};
}

static uint32_t tag_of(uint64_t hash, unsigned class)
{
    return ((uint32_t)(hash >> 32) & ~(uint32_t)(TEXT_CLASSES - 1)) | class;
}

/* The slot of `text` in `class`, or the free slot for it. NULL: none in TEXT_PROBES_MAX slots. */
static struct text_slot *slot_of(const struct text_index *x, struct bn_str text, unsigned class)
{
    const uint64_t hash = text_hash(text.ptr, text.n_bytes, class);
    const uint32_t tag = tag_of(hash, class);
    const size_t mask = x->n_slots - 1;
    size_t at = (size_t)hash & mask;
    for (size_t i = 0; i < TEXT_PROBES_MAX; i++, at = (at + 1) & mask) {
        struct text_slot *slot = &x->slots[at];
        if (slot->entry == 0)
            return slot;
        if (slot->tag == tag && slot->n_bytes == text.n_bytes &&
            memcmp(x->pool + slot->start, text.ptr, text.n_bytes) == 0)
            return slot;
    }
    return NULL;
}

bool text_index_add(struct text_index *x, uint32_t number, unsigned class)
{
    const struct bn_str text = text_index_get(x, number);
    struct text_slot *slot = slot_of(x, text, class);
    if (!slot)
        return false;
    if (slot->entry == 0)
        *slot = (struct text_slot){
            .tag = tag_of(text_hash(text.ptr, text.n_bytes, class), class),
            .entry = number + 1,
            .start = (uint32_t)(text.ptr - x->pool),
            .n_bytes = (uint32_t)text.n_bytes,
        };
    return true;
}

uint32_t text_index_find(const struct text_index *x, struct bn_str text, unsigned class)
{
    const struct text_slot *slot = slot_of(x, text, class);
    return slot && slot->entry ? slot->entry - 1 : NOT_FOUND;
}

void text_index_probe(const struct text_index *x, struct bn_str text, unsigned class,
                      struct text_probe *out)
{
    out->text = text;
    out->hash = text_hash(text.ptr, text.n_bytes, class);
    out->slot = x->slots[(size_t)out->hash & (x->n_slots - 1)];
}

uint32_t text_index_resolve(const struct text_index *x, const struct text_probe *probe,
                            unsigned class)
{
    const struct text_slot *slot = &probe->slot;
    if (slot->entry == 0)
        return NOT_FOUND;
    if (slot->tag == tag_of(probe->hash, class) && slot->n_bytes == probe->text.n_bytes &&
        memcmp(x->pool + slot->start, probe->text.ptr, slot->n_bytes) == 0)
        return slot->entry - 1;
    return text_index_find(x, probe->text, class); /* the first slot holds another string */
}
