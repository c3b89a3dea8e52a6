/*
 * The GGUF writer. Metadata and tensor infos are collected in memory; tensor data is passed to the
 * sink at once, so the file may be larger than memory.
 */
#include "tests/support/gguf_write.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "tests/support/le_put.h"

#define ALIGNMENT 32 /* of tensors, in a file without the key general.alignment */

struct gguf_writer {
    struct gguf_buffer kvs, infos;
    uint64_t n_kvs, n_tensors;
    uint64_t data_bytes; /* size of all tensors so far, with padding */
    uint64_t *sizes;     /* (n_tensors) size of each tensor */
    size_t sizes_cap;
    uint64_t at, n_written; /* index of the tensor being written, and its bytes so far */
    bool failed;            /* a put had no memory */
};

static const uint8_t zeros[ALIGNMENT];

static bool memory_write(void *ud, const void *bytes, size_t n_bytes)
{
    struct gguf_buffer *b = ud;
    size_t need;
    if (!size_add(&need, b->n_bytes, n_bytes) || !mem_grow(&b->bytes, &b->cap, need, 1))
        return false;
    if (n_bytes > 0)
        memcpy(b->bytes + b->n_bytes, bytes, n_bytes);
    b->n_bytes = need;
    return true;
}

static bool file_write(void *ud, const void *bytes, size_t n_bytes)
{
    return fwrite(bytes, 1, n_bytes, ud) == n_bytes;
}

struct gguf_sink gguf_sink_memory(struct gguf_buffer *buffer)
{
    return (struct gguf_sink){memory_write, buffer};
}

struct gguf_sink gguf_sink_file(FILE *file)
{
    return (struct gguf_sink){file_write, file};
}

bool gguf_writer_open(struct gguf_writer **out, struct bn_error *err)
{
    struct gguf_writer *w = mem_alloc(1, sizeof(*w));
    if (!w)
        return bn_fail(err, BN_ENOMEM, "no memory to write a file");
    *out = w;
    return true;
}

void gguf_writer_close(struct gguf_writer *w)
{
    if (!w)
        return;
    mem_free(w->kvs.bytes);
    mem_free(w->infos.bytes);
    mem_free(w->sizes);
    mem_free(w);
}

static void append(struct gguf_writer *w, struct gguf_buffer *b, const void *bytes, size_t n_bytes)
{
    if (!memory_write(b, bytes, n_bytes))
        w->failed = true;
}

static void append_u32(struct gguf_writer *w, struct gguf_buffer *b, uint32_t v)
{
    uint8_t bytes[4];
    le_put_u32(bytes, v);
    append(w, b, bytes, sizeof(bytes));
}

static void append_u64(struct gguf_writer *w, struct gguf_buffer *b, uint64_t v)
{
    uint8_t bytes[8];
    le_put_u64(bytes, v);
    append(w, b, bytes, sizeof(bytes));
}

static void append_str(struct gguf_writer *w, struct gguf_buffer *b, struct bn_str s)
{
    append_u64(w, b, s.n_bytes);
    append(w, b, s.ptr, s.n_bytes);
}

static void begin_kv(struct gguf_writer *w, const char *key, enum gguf_kind kind)
{
    append_str(w, &w->kvs, bn_str_of(key));
    append_u32(w, &w->kvs, kind);
    w->n_kvs++;
}

void gguf_put_raw(struct gguf_writer *w, const char *key, enum gguf_kind kind, const void *value)
{
    begin_kv(w, key, kind);
    append(w, &w->kvs, value, gguf_kind_bytes(kind));
}

void gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t v)
{
    uint8_t bytes[4];
    le_put_u32(bytes, v);
    gguf_put_raw(w, key, GGUF_U32, bytes);
}

void gguf_put_f32(struct gguf_writer *w, const char *key, float v)
{
    uint8_t bytes[4];
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    le_put_u32(bytes, bits);
    gguf_put_raw(w, key, GGUF_F32, bytes);
}

void gguf_put_bool(struct gguf_writer *w, const char *key, bool v)
{
    const uint8_t byte = v;
    gguf_put_raw(w, key, GGUF_BOOL, &byte);
}

void gguf_put_str(struct gguf_writer *w, const char *key, struct bn_str v)
{
    begin_kv(w, key, GGUF_STR);
    append_str(w, &w->kvs, v);
}

static void begin_array(struct gguf_writer *w, const char *key, enum gguf_kind kind,
                        uint64_t n_items)
{
    begin_kv(w, key, GGUF_ARRAY);
    append_u32(w, &w->kvs, kind);
    append_u64(w, &w->kvs, n_items);
}

void gguf_put_array(struct gguf_writer *w, const char *key, enum gguf_kind kind, const void *items,
                    uint64_t n_items)
{
    begin_array(w, key, kind, n_items);
    append(w, &w->kvs, items, (size_t)n_items * gguf_kind_bytes(kind));
}

void gguf_put_strs(struct gguf_writer *w, const char *key, const struct bn_str *items,
                   uint64_t n_items)
{
    begin_array(w, key, GGUF_STR, n_items);
    for (uint64_t i = 0; i < n_items; i++)
        append_str(w, &w->kvs, items[i]);
}

static size_t padding_after(uint64_t n_bytes)
{
    return (size_t)((ALIGNMENT - n_bytes % ALIGNMENT) % ALIGNMENT);
}

void gguf_put_tensor(struct gguf_writer *w, const char *name, uint32_t type_id, uint32_t n_dims,
                     const uint64_t *dims, uint64_t n_bytes)
{
    if (!mem_grow(&w->sizes, &w->sizes_cap, (size_t)w->n_tensors + 1, sizeof(*w->sizes))) {
        w->failed = true;
        return;
    }
    append_str(w, &w->infos, bn_str_of(name));
    append_u32(w, &w->infos, n_dims);
    for (uint32_t d = 0; d < n_dims; d++)
        append_u64(w, &w->infos, dims[d]);
    append_u32(w, &w->infos, type_id);
    append_u64(w, &w->infos, w->data_bytes);
    w->sizes[w->n_tensors++] = n_bytes;
    w->data_bytes += n_bytes + padding_after(n_bytes);
}

static bool write_bytes(const struct gguf_sink *sink, const void *bytes, size_t n_bytes,
                        struct bn_error *err)
{
    if (n_bytes == 0 || sink->write(sink->ud, bytes, n_bytes))
        return true;
    return bn_fail(err, BN_EIO, "%zu bytes could not be written", n_bytes);
}

bool gguf_write_header(struct gguf_writer *w, const struct gguf_sink *sink, struct bn_error *err)
{
    uint8_t header[24] = "GGUF"; /* then version, number of tensors, number of keys */
    le_put_u32(header + 4, 3);
    le_put_u64(header + 8, w->n_tensors);
    le_put_u64(header + 16, w->n_kvs);
    if (w->failed)
        return bn_fail(err, BN_ENOMEM, "no memory for metadata of %zu bytes", w->kvs.n_bytes);
    const size_t n_bytes = sizeof(header) + w->kvs.n_bytes + w->infos.n_bytes;
    return write_bytes(sink, header, sizeof(header), err) &&
           write_bytes(sink, w->kvs.bytes, w->kvs.n_bytes, err) &&
           write_bytes(sink, w->infos.bytes, w->infos.n_bytes, err) &&
           write_bytes(sink, zeros, padding_after(n_bytes), err);
}

bool gguf_write_data(struct gguf_writer *w, const struct gguf_sink *sink, const void *bytes,
                     size_t n_bytes, struct bn_error *err)
{
    if (w->at >= w->n_tensors || n_bytes > w->sizes[w->at] - w->n_written)
        return bn_fail(err, BN_EARG, "tensor %llu gets more data than declared",
                       (unsigned long long)w->at);
    w->n_written += n_bytes;
    return write_bytes(sink, bytes, n_bytes, err);
}

bool gguf_write_end(struct gguf_writer *w, const struct gguf_sink *sink, struct bn_error *err)
{
    if (w->at >= w->n_tensors || w->n_written != w->sizes[w->at])
        return bn_fail(err, BN_EARG,
                       "tensor %llu has %llu bytes, which differs from its declaration",
                       (unsigned long long)w->at, (unsigned long long)w->n_written);
    const size_t padding = padding_after(w->n_written);
    w->at++;
    w->n_written = 0;
    return write_bytes(sink, zeros, padding, err);
}
