/*
 * Parses header, metadata and tensor infos of a GGUF file (versions 2 and 3, little-endian).
 *
 * Names, strings and arrays are not copied, and no number from the file is trusted. Counts are
 * compared with the number of bytes left, the tables of keys and tensors grow while entries are
 * read, and lengths and offsets are checked before use. Tensor data is located (gguf_place.c) but
 * not read. engine/model interprets the result.
 */
#include "engine/gguf/gguf.h"

#include "engine/base/memory.h"
#include "engine/base/reader.h"
#include "engine/base/size.h"
#include "engine/gguf/gguf_le.h"
#include "engine/gguf/refusal.h"

#include <stdlib.h>

#define KV_MIN_BYTES 14     /* key length, a key of one byte, value type, a value of one byte */
#define INFO_MIN_BYTES 24   /* name length, n_dims, type, offset */
#define KEY_MAX_BYTES 65535 /* of the GGUF format */
#define NAME_MAX_BYTES 63   /* GGML_MAX_NAME of llama.cpp without the terminator */
#define STRING_MAX_BYTES ((uint64_t)1 << 30) /* far above any real string */
#define DEFAULT_ALIGNMENT 32                 /* of the GGUF format */

struct parse {
    struct gguf *g;
    struct reader in;
    uint64_t n_kvs, n_tensors; /* from the header */
    size_t kv_cap, tensor_cap; /* of g->kvs and g->tensors */
};

/* Fail because the file ends inside this part of an entry, for example "metadata key" 7. */
static bool fail_truncated(const struct parse *p, const char *part, uint64_t number,
                           struct bn_error *err)
{
    return refusal_of_cut(err, "it ends at byte %zu inside %s %llu", p->in.n_bytes, part,
                          (unsigned long long)number);
}

static bool parse_header(struct parse *p, struct bn_error *err)
{
    struct reader *in = &p->in;
    const uint8_t *magic = reader_bytes(in, 4);
    if (!magic || memcmp(magic, "GGUF", 4) != 0)
        return refusal_of_file(in->bytes, in->n_bytes, err);
    p->g->version = reader_u32(in);
    p->n_tensors = reader_u64(in);
    p->n_kvs = reader_u64(in);
    /* a small number in the other byte order */
    if (p->g->version != 0 && (p->g->version & 0xffff) == 0)
        return refusal_fail(err, REFUSED_OTHER_GGUF, BN_EUNSUPPORTED,
                            "the file is GGUF for big-endian machines");
    if (in->failed)
        return refusal_of_cut(err, "it ends inside the GGUF header, at byte %zu", in->n_bytes);
    if (p->g->version == 0)
        return bn_fail(err, BN_EFORMAT, "GGUF version 0 does not exist");
    if (p->g->version == 1 || p->g->version > 3)
        return refusal_fail(err, REFUSED_OTHER_GGUF, BN_EUNSUPPORTED,
                            "GGUF version %u is not supported, only 2 and 3", p->g->version);
    const size_t left = reader_left(in);
    if (p->n_kvs > left / KV_MIN_BYTES)
        return refusal_of_cut(err,
                              "the header claims %llu metadata keys, but only %zu bytes are left",
                              (unsigned long long)p->n_kvs, left);
    if (p->n_tensors > left / INFO_MIN_BYTES)
        return refusal_of_cut(err, "the header claims %llu tensors, but only %zu bytes are left",
                              (unsigned long long)p->n_tensors, left);
    if (p->n_kvs > UINT32_MAX || p->n_tensors > UINT32_MAX) /* struct gguf has 32-bit indices */
        return bn_fail(err, BN_EUNSUPPORTED, "more than %u metadata keys or tensors", UINT32_MAX);
    return true;
}

/* Skip one string. False if it is too long or the file ends inside it. */
static bool skip_string(struct reader *in)
{
    if (reader_left(in) < 8)
        return false;
    const uint64_t n_bytes = le_u64(in->bytes + in->pos);
    if (n_bytes > STRING_MAX_BYTES || n_bytes > reader_left(in) - 8)
        return false;
    in->pos += 8 + (size_t)n_bytes;
    return true;
}

static bool parse_array(struct parse *p, struct gguf_kv *kv, struct bn_error *err)
{
    struct reader *in = &p->in;
    const uint32_t item_kind = reader_u32(in);
    kv->n_items = reader_u64(in);
    if (in->failed)
        return refusal_of_cut(err, "it ends inside the array of key '%.*s'", STR_ARG(kv->key));
    if (item_kind > GGUF_F64)
        return bn_fail(err, BN_EFORMAT, "key '%.*s': value type %u of its array does not exist",
                       STR_ARG(kv->key), item_kind);
    if (item_kind == GGUF_ARRAY)
        return bn_fail(err, BN_EUNSUPPORTED, "key '%.*s': arrays of arrays are not supported",
                       STR_ARG(kv->key));
    kv->item_kind = (enum gguf_kind)item_kind;
    kv->value = in->bytes + in->pos;
    const size_t left = reader_left(in);
    const size_t item_bytes = kv->item_kind == GGUF_STR ? 8 : gguf_kind_bytes(item_kind);
    if (kv->n_items > left / item_bytes)
        return refusal_of_cut(
            err, "key '%.*s': an array of %llu items does not fit into the last %zu bytes",
            STR_ARG(kv->key), (unsigned long long)kv->n_items, left);
    if (kv->item_kind != GGUF_STR) {
        (void)reader_bytes(in, kv->n_items * item_bytes); /* cannot fail: checked above */
        return true;
    }
    for (uint64_t i = 0; i < kv->n_items; i++) {
        if (!skip_string(in))
            return refusal_of_cut(err, "key '%.*s': string %llu of %llu is too long or truncated",
                                  STR_ARG(kv->key), (unsigned long long)i,
                                  (unsigned long long)kv->n_items);
    }
    return true;
}

static bool parse_kv(struct parse *p, uint64_t number, struct bn_error *err)
{
    struct reader *in = &p->in;
    struct gguf_kv kv = {.n_items = 1};
    kv.key = reader_string(in);
    const uint32_t kind = reader_u32(in);
    if (in->failed)
        return fail_truncated(p, "metadata key", number, err);
    if (kv.key.n_bytes == 0 || kv.key.n_bytes > KEY_MAX_BYTES)
        return bn_fail(err, BN_EFORMAT, "metadata key %llu is %zu bytes long, not 1 to %d",
                       (unsigned long long)number, kv.key.n_bytes, KEY_MAX_BYTES);
    if (kind > GGUF_F64)
        return bn_fail(err, BN_EFORMAT, "key '%.*s': value type %u does not exist", STR_ARG(kv.key),
                       kind);
    kv.kind = (enum gguf_kind)kind;
    kv.value = in->bytes + in->pos;
    if (kv.kind == GGUF_ARRAY) {
        if (!parse_array(p, &kv, err))
            return false;
    } else if (kv.kind == GGUF_STR) {
        if (!skip_string(in))
            return refusal_of_cut(err, "key '%.*s': its string is too long or truncated",
                                  STR_ARG(kv.key));
    } else if (!reader_bytes(in, gguf_kind_bytes(kind))) {
        return fail_truncated(p, "the value of metadata key", number, err);
    }
    if (kv.kind == GGUF_BOOL && *kv.value > 1)
        return bn_fail(err, BN_EFORMAT, "key '%.*s': the value of a bool is %u, not 0 or 1",
                       STR_ARG(kv.key), *kv.value);
    if (!mem_grow(&p->g->kvs, &p->kv_cap, p->g->n_kvs + 1, sizeof(kv)))
        return bn_fail(err, BN_ENOMEM, "no memory for %llu metadata keys",
                       (unsigned long long)p->n_kvs);
    p->g->kvs[p->g->n_kvs++] = kv;
    return true;
}

/* Each dimension and the number of elements must fit into a signed 64-bit number, as in the parser
 * of llama.cpp. */
static bool parse_dims(struct reader *in, struct gguf_tensor *t, struct bn_error *err)
{
    size_t n_elements = 1;
    t->n_rows = 1;
    for (uint32_t d = 0; d < 4; d++) {
        t->dims[d] = d < t->n_dims ? reader_u64(in) : 1;
        if (t->dims[d] > INT64_MAX)
            return bn_fail(err, BN_EFORMAT, "tensor '%.*s': dimension %u is %llu, too large",
                           STR_ARG(t->name), d, (unsigned long long)t->dims[d]);
        if (!size_mul(&n_elements, n_elements, (size_t)t->dims[d]) || n_elements > INT64_MAX)
            return bn_fail(err, BN_EFORMAT, "tensor '%.*s' has too many elements",
                           STR_ARG(t->name));
        /* Without columns, the number of rows can overflow although that of elements is 0. */
        if (d > 0 && !size_mul(&t->n_rows, t->n_rows, (size_t)t->dims[d]))
            return bn_fail(err, BN_EFORMAT, "tensor '%.*s' has too many rows", STR_ARG(t->name));
    }
    t->n_cols = (size_t)t->dims[0];
    return true;
}

/* Parse one tensor info; t->offset is still relative to the data section. */
static bool parse_info(struct parse *p, uint64_t number, struct bn_error *err)
{
    struct reader *in = &p->in;
    struct gguf_tensor t = {0};
    t.name = reader_string(in);
    t.n_dims = reader_u32(in);
    if (in->failed)
        return fail_truncated(p, "the info of tensor", number, err);
    if (t.name.n_bytes == 0 || t.name.n_bytes > NAME_MAX_BYTES)
        return bn_fail(err, BN_EFORMAT, "tensor %llu has a name of %zu bytes, not 1 to %d",
                       (unsigned long long)number, t.name.n_bytes, NAME_MAX_BYTES);
    if (t.n_dims > 4)
        return bn_fail(err, BN_EFORMAT, "tensor '%.*s' has %u dimensions, at most 4 are possible",
                       STR_ARG(t.name), t.n_dims);
    if (!parse_dims(in, &t, err))
        return false;
    t.type_id = reader_u32(in);
    const uint64_t offset = reader_u64(in);
    if (in->failed)
        return fail_truncated(p, "the info of tensor", number, err);
    if (offset > SIZE_MAX)
        return bn_fail(err, BN_EFORMAT, "tensor '%.*s' begins past the end of the file",
                       STR_ARG(t.name));
    t.offset = (size_t)offset;
    if (!mem_grow(&p->g->tensors, &p->tensor_cap, p->g->n_tensors + 1, sizeof(t)))
        return bn_fail(err, BN_ENOMEM, "no memory for %llu tensor infos",
                       (unsigned long long)p->n_tensors);
    p->g->tensors[p->g->n_tensors++] = t;
    return true;
}

static bool read_alignment(struct gguf *g, struct bn_error *err)
{
    g->alignment = DEFAULT_ALIGNMENT;
    const struct gguf_kv *kv = gguf_find_kv(g, "general.alignment");
    if (!kv)
        return true;
    if (kv->kind != GGUF_U32)
        return bn_fail(err, BN_EFORMAT, "general.alignment has value type %d, not u32", kv->kind);
    const uint32_t alignment = le_u32(kv->value);
    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
        return bn_fail(err, BN_EFORMAT, "general.alignment is %u, not a power of two", alignment);
    g->alignment = alignment;
    return true;
}

static bool parse_all(struct parse *p, struct bn_error *err)
{
    struct gguf *g = p->g;
    if (!parse_header(p, err))
        return false;
    for (uint64_t i = 0; i < p->n_kvs; i++) {
        if (!parse_kv(p, i, err))
            return false;
    }
    for (uint64_t i = 0; i < p->n_tensors; i++) {
        if (!parse_info(p, i, err))
            return false;
    }
    if (!gguf_build_index(g, err) || !read_alignment(g, err))
        return false;
    g->data_start = size_round_up(p->in.pos, g->alignment);
    g->header_bytes = size_min(g->data_start, g->n_bytes);
    if (g->n_tensors == 0)
        return true; /* a vocabulary-only file may end before the padded data section */
    if (g->data_start > g->n_bytes)
        return refusal_of_cut(err, "its data would begin at byte %zu, but it has %zu bytes",
                              g->data_start, g->n_bytes);
    return gguf_place_tensors(g, err);
}

bool gguf_parse(const void *bytes, size_t n_bytes, struct gguf **out, struct bn_error *err)
{
    struct gguf *g = mem_alloc(1, sizeof(*g));
    if (!g)
        return bn_fail(err, BN_ENOMEM, "no memory to open a file");
    g->bytes = bytes;
    g->n_bytes = n_bytes;
    struct parse p = {.g = g};
    reader_init(&p.in, bytes, n_bytes);
    if (!parse_all(&p, err)) {
        gguf_close(g);
        return false;
    }
    *out = g;
    return true;
}

void gguf_close(struct gguf *g)
{
    if (!g)
        return;
    mem_free(g->kvs);
    mem_free(g->tensors);
    mem_free(g->kv_index);
    mem_free(g->tensor_index);
    mem_free(g);
}
