/*
 * Lookup of keys, tensors and values in a parsed file.
 *
 * Names are found by binary search in an index that is sorted once. Unlike a hash table, it stays
 * fast for hostile names, and sorting puts duplicates next to each other.
 */
#include "engine/gguf/gguf.h"

#include "engine/base/fp16.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/gguf/gguf_le.h"

#include <stdlib.h>

/* A number of any kind of the file; NONE: not a number. */
struct number {
    enum { NUMBER_NONE, NUMBER_UNSIGNED, NUMBER_NEGATIVE, NUMBER_FLOAT } kind;
    uint64_t u; /* UNSIGNED: the value; NEGATIVE: the value in two's complement */
    double f;   /* the value, rounded if necessary */
};

struct name_at {
    struct bn_str name;
    uint32_t at; /* index in file order */
};

size_t gguf_kind_bytes(uint32_t kind)
{
    /* in the order of enum gguf_kind */
    static const uint8_t kind_bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return kind < sizeof(kind_bytes) ? kind_bytes[kind] : 0;
}

/* Any total order is good enough; shorter strings come first. */
static int compare_str(struct bn_str a, struct bn_str b)
{
    if (a.n_bytes != b.n_bytes)
        return a.n_bytes < b.n_bytes ? -1 : 1;
    return a.n_bytes == 0 ? 0 : memcmp(a.ptr, b.ptr, a.n_bytes);
}

/* Equal names stay in file order, so that the message has their numbers in ascending order. */
static int compare_name_at(const void *a, const void *b)
{
    const struct name_at *x = a, *y = b;
    const int c = compare_str(x->name, y->name);
    return c != 0 ? c : (x->at > y->at) - (x->at < y->at);
}

/* Sort `names` (n) and write the order to `index`; `label` names the entries in messages. */
static bool sort_index(struct name_at *names, size_t n, uint32_t *index, const char *label,
                       struct bn_error *err)
{
    qsort(names, n, sizeof(*names), compare_name_at);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && bn_str_equal(names[i - 1].name, names[i].name))
            return bn_fail(err, BN_EFORMAT, "%s '%.*s' occurs twice, as number %u and %u", label,
                           STR_ARG(names[i].name), names[i - 1].at, names[i].at);
        index[i] = names[i].at;
    }
    return true;
}

bool gguf_build_index(struct gguf *g, struct bn_error *err)
{
    bool ok = false;
    struct name_at *names = mem_alloc(size_max(g->n_kvs, g->n_tensors), sizeof(*names));
    g->kv_index = mem_alloc(g->n_kvs, sizeof(*g->kv_index));
    g->tensor_index = mem_alloc(g->n_tensors, sizeof(*g->tensor_index));
    if (!names || !g->kv_index || !g->tensor_index) {
        (void)bn_fail(err, BN_ENOMEM, "no memory for an index of %zu keys and %zu tensors",
                      g->n_kvs, g->n_tensors);
        goto done;
    }
    for (size_t i = 0; i < g->n_kvs; i++)
        names[i] = (struct name_at){g->kvs[i].key, (uint32_t)i};
    if (!sort_index(names, g->n_kvs, g->kv_index, "metadata key", err))
        goto done;
    for (size_t i = 0; i < g->n_tensors; i++)
        names[i] = (struct name_at){g->tensors[i].name, (uint32_t)i};
    ok = sort_index(names, g->n_tensors, g->tensor_index, "tensor", err);
done:
    mem_free(names);
    return ok;
}

/* Index in file order of the entry with this name, or n if there is none. Each entry has
 * `entry_bytes` and begins with its name, a struct bn_str. */
static size_t find_name(const void *entries, size_t entry_bytes, const uint32_t *index, size_t n,
                        struct bn_str key)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        struct bn_str at_mid;
        memcpy(&at_mid, (const char *)entries + index[mid] * entry_bytes, sizeof(at_mid));
        const int c = compare_str(at_mid, key);
        if (c == 0)
            return index[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return n;
}

const struct gguf_kv *gguf_find_kv(const struct gguf *g, const char *key)
{
    const size_t i = find_name(g->kvs, sizeof(*g->kvs), g->kv_index, g->n_kvs, bn_str_of(key));
    return i < g->n_kvs ? &g->kvs[i] : NULL;
}

const struct gguf_tensor *gguf_find_tensor_str(const struct gguf *g, struct bn_str name)
{
    const size_t i =
        find_name(g->tensors, sizeof(*g->tensors), g->tensor_index, g->n_tensors, name);
    return i < g->n_tensors ? &g->tensors[i] : NULL;
}

const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name)
{
    return gguf_find_tensor_str(g, bn_str_of(name));
}

static struct number unsigned_number(uint64_t v)
{
    return (struct number){NUMBER_UNSIGNED, v, (double)v};
}

static struct number signed_number(int64_t v)
{
    return (struct number){v < 0 ? NUMBER_NEGATIVE : NUMBER_UNSIGNED, (uint64_t)v, (double)v};
}

static struct number float_number(double v)
{
    return (struct number){NUMBER_FLOAT, 0, v};
}

static double f64_from_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* Load item i of an array, or a single value (i = 0). NUMBER_NONE past the end and for strings. */
static struct number load_number(const struct gguf_kv *kv, uint64_t i)
{
    const enum gguf_kind kind = kv->kind == GGUF_ARRAY ? kv->item_kind : kv->kind;
    if (i >= kv->n_items)
        return (struct number){.kind = NUMBER_NONE};
    const uint8_t *p = kv->value + i * gguf_kind_bytes(kind);
    switch (kind) {
    case GGUF_U8:
    case GGUF_BOOL:
        return unsigned_number(*p);
    case GGUF_I8:
        return signed_number((int8_t)*p);
    case GGUF_U16:
        return unsigned_number(le_u16(p));
    case GGUF_I16:
        return signed_number((int16_t)le_u16(p));
    case GGUF_U32:
        return unsigned_number(le_u32(p));
    case GGUF_I32:
        return signed_number((int32_t)le_u32(p));
    case GGUF_F32:
        return float_number((double)f32_from_bits(le_u32(p)));
    case GGUF_U64:
        return unsigned_number(le_u64(p));
    case GGUF_I64:
        return signed_number((int64_t)le_u64(p));
    case GGUF_F64:
        return float_number(f64_from_bits(le_u64(p)));
    case GGUF_STR:
    case GGUF_ARRAY:
        break;
    }
    return (struct number){.kind = NUMBER_NONE};
}

bool gguf_item_u64(const struct gguf_kv *kv, uint64_t i, uint64_t *out)
{
    const struct number n = load_number(kv, i);
    if (n.kind != NUMBER_UNSIGNED)
        return false;
    *out = n.u;
    return true;
}

bool gguf_item_i64(const struct gguf_kv *kv, uint64_t i, int64_t *out)
{
    const struct number n = load_number(kv, i);
    if (n.kind != NUMBER_NEGATIVE && (n.kind != NUMBER_UNSIGNED || n.u > INT64_MAX))
        return false;
    *out = (int64_t)n.u;
    return true;
}

bool gguf_item_f64(const struct gguf_kv *kv, uint64_t i, double *out)
{
    const struct number n = load_number(kv, i);
    if (n.kind == NUMBER_NONE)
        return false;
    *out = n.f;
    return true;
}

/* Find a key with a single value that is neither an array nor a bool. */
static const struct gguf_kv *find_scalar(const struct gguf *g, const char *key)
{
    const struct gguf_kv *kv = gguf_find_kv(g, key);
    return kv && kv->kind != GGUF_ARRAY && kv->kind != GGUF_BOOL ? kv : NULL;
}

struct bn_str gguf_next_str(const uint8_t **at)
{
    /* A string of GGUF is its length in 8 bytes, then its bytes. gguf_parse has checked both. */
    const struct bn_str s = {(const char *)*at + 8, (size_t)le_u64(*at)};
    *at += 8 + s.n_bytes;
    return s;
}

bool gguf_get_str(const struct gguf *g, const char *key, struct bn_str *out)
{
    const struct gguf_kv *kv = gguf_find_kv(g, key);
    if (!kv || kv->kind != GGUF_STR)
        return false;
    *out = (struct bn_str){(const char *)kv->value + 8, (size_t)le_u64(kv->value)};
    return true;
}

bool gguf_get_u64(const struct gguf *g, const char *key, uint64_t *out)
{
    const struct gguf_kv *kv = find_scalar(g, key);
    return kv && gguf_item_u64(kv, 0, out);
}

bool gguf_get_f64(const struct gguf *g, const char *key, double *out)
{
    const struct gguf_kv *kv = find_scalar(g, key);
    return kv && gguf_item_f64(kv, 0, out);
}

bool gguf_get_bool(const struct gguf *g, const char *key, bool *out)
{
    const struct gguf_kv *kv = gguf_find_kv(g, key);
    if (!kv || kv->kind != GGUF_BOOL)
        return false;
    *out = *kv->value != 0;
    return true;
}
