/*
 * A parsed GGUF file: metadata, tensor infos, and where the bytes are.
 *
 * gguf_map is the only thing in the engine that opens a file. gguf_parse trusts nothing: see
 * docs/formats.md for the checks. Everything points into the bytes, which outlive the struct; a
 * parsed file is immutable and may be read by several threads.
 */
#ifndef ENGINE_GGUF_GGUF_H
#define ENGINE_GGUF_GGUF_H

#include "engine/base/error.h"
#include "engine/base/str.h"
#include "engine/gguf/gguf_types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gguf_kind { /* value types as the file numbers them */
                 GGUF_U8,
                 GGUF_I8,
                 GGUF_U16,
                 GGUF_I16,
                 GGUF_U32,
                 GGUF_I32,
                 GGUF_F32,
                 GGUF_BOOL,
                 GGUF_STR,
                 GGUF_ARRAY,
                 GGUF_U64,
                 GGUF_I64,
                 GGUF_F64
};

struct gguf_kv {
    struct bn_str key;
    enum gguf_kind kind;
    enum gguf_kind item_kind; /* ARRAY */
    uint64_t n_items;         /* ARRAY; 1 otherwise */
    const uint8_t *value;     /* first byte of the value (ARRAY: of the first element) */
};

struct gguf_tensor {
    struct bn_str name;
    uint32_t type_id;      /* as in the file */
    enum tensor_type type; /* decided by type_id and byte span; TENSOR_OTHER if not one of ours */
    uint32_t n_dims;
    uint64_t dims[4];      /* dims[0] contiguous; unused ones are 1 */
    size_t n_cols, n_rows; /* dims[0], product of the others */
    size_t offset;         /* from the start of the file */
    size_t n_bytes;        /* its own bytes; for TENSOR_OTHER the span up to the next tensor */
};

struct gguf {
    const uint8_t *bytes; /* (n_bytes) the whole file */
    size_t n_bytes;
    uint32_t version;
    size_t alignment;
    size_t data_start;
    struct gguf_kv *kvs; /* (n_kvs) in file order */
    size_t n_kvs;
    struct gguf_tensor *tensors; /* (n_tensors) in file order */
    size_t n_tensors;
    /* lookup tables in order of name, private to gguf_query.c */
    uint32_t *kv_index, *tensor_index; /* (n_kvs), (n_tensors) */
};

/* BN_EFORMAT: broken or cut short, with the place; BN_EUNSUPPORTED: GGUF v1, newer than v3,
 * big-endian; BN_ENOMEM. Memory grows with what was read, never with what the header claims. */
bool gguf_parse(const void *bytes, size_t n_bytes, struct gguf **out, struct bn_error *err);
void gguf_close(struct gguf *g); /* NULL is fine; does not unmap */

const struct gguf_kv *gguf_find_kv(const struct gguf *g, const char *key);
const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name);

/* Typed values; false if absent, of another kind, or not fitting. u64 takes any integer kind
 * holding a value >= 0, f64 any number. */
bool gguf_get_str(const struct gguf *g, const char *key, struct bn_str *out);
bool gguf_get_u64(const struct gguf *g, const char *key, uint64_t *out);
bool gguf_get_f64(const struct gguf *g, const char *key, double *out);
bool gguf_get_bool(const struct gguf *g, const char *key, bool *out);

/* Item i of an array of numbers or bools (or i = 0 of a single value), as above; false past the
 * end, for strings, and where it does not fit. */
bool gguf_item_u64(const struct gguf_kv *kv, uint64_t i, uint64_t *out);
bool gguf_item_i64(const struct gguf_kv *kv, uint64_t i, int64_t *out);
bool gguf_item_f64(const struct gguf_kv *kv, uint64_t i, double *out);

/* Bytes of a value of this kind; 0 for strings, arrays and kinds that do not exist. */
size_t gguf_kind_bytes(uint32_t kind);

/* For gguf_parse: fill the two lookup tables. BN_EFORMAT: a name stands twice; BN_ENOMEM. */
bool gguf_build_index(struct gguf *g, struct bn_error *err);

#endif
