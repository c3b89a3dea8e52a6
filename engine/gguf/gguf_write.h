/*
 * Writes a GGUF v3 file, to anything that takes bytes. For the converter, generators and tests.
 *
 * Use: gguf_writer_open; gguf_put_... each key and gguf_put_tensor each tensor, in file order;
 * gguf_write_head; then for each tensor, in that order, gguf_write_data as often as it takes and
 * gguf_write_end, which pads; gguf_writer_close. Puts cannot fail: running out of memory is
 * remembered and reported by gguf_write_head. Keys and names are not checked for duplicates.
 */
#ifndef ENGINE_GGUF_GGUF_WRITE_H
#define ENGINE_GGUF_GGUF_WRITE_H

#include "engine/base/error.h"
#include "engine/base/str.h"
#include "engine/gguf/gguf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct gguf_writer;

/* Where the bytes go. write returns false to refuse them. */
struct gguf_sink {
    bool (*write)(void *ud, const void *bytes, size_t n_bytes);
    void *ud;
};

/* A sink that grows in memory; free bytes with mem_free. Start all zero. */
struct gguf_buffer {
    uint8_t *bytes; /* (n_bytes) */
    size_t n_bytes, cap;
};
struct gguf_sink gguf_sink_memory(struct gguf_buffer *buffer);
struct gguf_sink gguf_sink_file(FILE *file); /* the caller opens, checks fclose */

bool gguf_writer_open(struct gguf_writer **out, struct bn_error *err);
void gguf_writer_close(struct gguf_writer *w); /* NULL is fine */

void gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t v);
void gguf_put_f32(struct gguf_writer *w, const char *key, float v);
void gguf_put_bool(struct gguf_writer *w, const char *key, bool v);
void gguf_put_str(struct gguf_writer *w, const char *key, struct bn_str v);
/* A single value of any kind but STR and ARRAY: its little-endian bytes, gguf_kind_bytes(kind) of
 * them. */
void gguf_put_raw(struct gguf_writer *w, const char *key, enum gguf_kind kind, const void *value);
/* An array of any such kind; strings one by one. */
void gguf_put_array(struct gguf_writer *w, const char *key, enum gguf_kind kind, const void *items,
                    uint64_t n_items);
void gguf_put_strs(struct gguf_writer *w, const char *key, const struct bn_str *items,
                   uint64_t n_items);

/* n_bytes is what gguf_write_data will be given; dims[0] is contiguous. Tensors of n_bytes are
 * placed in order, each padded to 32 bytes. */
void gguf_put_tensor(struct gguf_writer *w, const char *name, uint32_t type_id, uint32_t n_dims,
                     const uint64_t *dims, uint64_t n_bytes);

/* BN_ENOMEM: a put failed. BN_EIO: the sink refused. BN_EARG: more or less data than was announced.
 */
bool gguf_write_head(struct gguf_writer *w, const struct gguf_sink *sink, struct bn_error *err);
bool gguf_write_data(struct gguf_writer *w, const struct gguf_sink *sink, const void *bytes,
                     size_t n_bytes, struct bn_error *err);
bool gguf_write_end(struct gguf_writer *w, const struct gguf_sink *sink, struct bn_error *err);

#endif
