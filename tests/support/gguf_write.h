/*
 * Writes a GGUF file (version 3) to a sink.
 *
 * Call gguf_writer_open; gguf_put_... for each key and gguf_put_tensor for each tensor, in file
 * order; gguf_write_header; then for each tensor in the same order gguf_write_data, once or more,
 * and gguf_write_end, which adds padding; gguf_writer_close. Puts return no error:
 * gguf_write_header reports a lack of memory. Keys and names are not checked for duplicates.
 */
#ifndef TESTS_SUPPORT_GGUF_WRITE_H
#define TESTS_SUPPORT_GGUF_WRITE_H

#include "engine/base/error.h"
#include "engine/base/str.h"
#include "engine/gguf/gguf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct gguf_writer;

/* Receives the bytes. `write` returns false if it cannot write them. */
struct gguf_sink {
    bool (*write)(void *ud, const void *bytes, size_t n_bytes);
    void *ud;
};

/* A sink in memory. Zero-initialise; free `bytes` with mem_free. */
struct gguf_buffer {
    uint8_t *bytes; /* (n_bytes) */
    size_t n_bytes, cap;
};
struct gguf_sink gguf_sink_memory(struct gguf_buffer *buffer);
struct gguf_sink gguf_sink_file(FILE *file); /* the caller opens the file and checks fclose */

bool gguf_writer_open(struct gguf_writer **out, struct bn_error *err);
void gguf_writer_close(struct gguf_writer *w); /* accepts NULL */

void gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t v);
void gguf_put_f32(struct gguf_writer *w, const char *key, float v);
void gguf_put_bool(struct gguf_writer *w, const char *key, bool v);
void gguf_put_str(struct gguf_writer *w, const char *key, struct bn_str v);
/* A single value of any kind except STR and ARRAY, as gguf_kind_bytes(kind) little-endian bytes. */
void gguf_put_raw(struct gguf_writer *w, const char *key, enum gguf_kind kind, const void *value);
/* An array of such values, and an array of strings. */
void gguf_put_array(struct gguf_writer *w, const char *key, enum gguf_kind kind, const void *items,
                    uint64_t n_items);
void gguf_put_strs(struct gguf_writer *w, const char *key, const struct bn_str *items,
                   uint64_t n_items);

/* Declare a tensor for which gguf_write_data will get n_bytes; dims[0] is contiguous. Tensors are
 * placed in order, each padded to 32 bytes. */
void gguf_put_tensor(struct gguf_writer *w, const char *name, uint32_t type_id, uint32_t n_dims,
                     const uint64_t *dims, uint64_t n_bytes);

/* BN_ENOMEM: a put had no memory. BN_EIO: the sink failed. BN_EARG: more or less data than
 * declared. */
bool gguf_write_header(struct gguf_writer *w, const struct gguf_sink *sink, struct bn_error *err);
bool gguf_write_data(struct gguf_writer *w, const struct gguf_sink *sink, const void *bytes,
                     size_t n_bytes, struct bn_error *err);
bool gguf_write_end(struct gguf_writer *w, const struct gguf_sink *sink, struct bn_error *err);

#endif
