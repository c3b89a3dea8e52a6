/*
 * A parsed GGUF file: metadata, tensor infos (name, type, shape) and the places of the tensors'
 * bytes.
 *
 * gguf_parse checks all input; docs/formats.md lists the checks. Names, values and tensors point
 * into the bytes of the file, which must outlive the struct. A parsed file is immutable and several
 * threads may read it.
 */
#ifndef ENGINE_GGUF_GGUF_H
#define ENGINE_GGUF_GGUF_H

#include "engine/base/error.h"
#include "engine/base/str.h"
#include "engine/gguf/gguf_types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types of metadata values, with the numbers that files use. */
enum gguf_kind {
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
    struct bn_str key; /* must be the first member, as find_name in gguf_query.c expects */
    enum gguf_kind kind;
    enum gguf_kind item_kind; /* only for ARRAY */
    uint64_t n_items;         /* length of an ARRAY, else 1 */
    /* first byte of the value, or of the first item of an ARRAY. A STR is its length (u64) and its
     * bytes. */
    const uint8_t *value;
};

struct gguf_tensor {
    struct bn_str name;    /* must be the first member, too */
    uint32_t type_id;      /* type id in the file */
    enum tensor_type type; /* follows from type_id and sizes, see gguf_place_tensors */
    uint32_t n_dims;
    uint64_t dims[4];      /* dims[0] is contiguous; unused ones are 1 */
    size_t n_cols, n_rows; /* dims[0], and the product of the others */
    size_t offset;         /* from the start of the file, or of its part of a split model */
    const uint8_t *bytes;  /* (n_bytes) */
    /* without padding; for TENSOR_OTHER the distance to the next tensor or the end of the file */
    size_t n_bytes;
};

/* Unused bytes behind a tensor, at least as many as the alignment. n_bytes is 0 without any. */
struct gguf_gap {
    struct bn_str name; /* of the tensor */
    size_t n_bytes;
};

struct gguf {
    const uint8_t *bytes; /* the file; of a split model its first part */
    size_t n_bytes;       /* of the file, or of all parts */
    uint32_t version;     /* of the GGUF format: 2 or 3 */
    size_t alignment;
    size_t header_bytes; /* data_start, or less if a file without tensors ends before it */
    size_t data_start;   /* offset of the tensor data */
    struct gguf_kv *kvs; /* (n_kvs) in file order */
    size_t n_kvs;
    struct gguf_tensor *tensors; /* (n_tensors) in file order, those of part 1 first */
    size_t n_tensors;
    size_t n_gaps;       /* between two tensors; the type of the tensor before one may be wrong */
    struct gguf_gap gap; /* the first of them */
    struct gguf_gap end; /* behind the last tensor; of a split model, in the first part with one */
    /* indices sorted by name, which only gguf_query.c reads */
    uint32_t *kv_index, *tensor_index; /* (n_kvs), (n_tensors) */
};

/* BN_EFORMAT: not a model file, broken or truncated; the message names the byte, key or tensor.
 * BN_EUNSUPPORTED: GGUF version 1, a version above 3, big-endian, an array of arrays, 2^32 or more
 * keys or tensors, or another format (refusal_of_file). BN_ENOMEM. Memory is proportional to the
 * data read and does not depend on the counts in the header. */
bool gguf_parse(const void *bytes, size_t n_bytes, struct gguf **out, struct bn_error *err);
void gguf_close(struct gguf *g); /* accepts NULL; does not free the bytes */

/* The place of a file in a split model: part number *number (from 0) of *count. A file that is not
 * split is part 0 of 1. BN_EFORMAT: the keys have wrong values; *number is then 0 and *count 1. */
#define GGUF_MAX_PARTS 99999 /* five digits in the name of a part */
bool gguf_split_of(const struct gguf *g, size_t *number, size_t *count, struct bn_error *err);

/* Make parts[0] the whole model: it gets the tensors of all parts (n_parts >= 2, in order). The
 * bytes of all parts must outlive parts[0]; the other parts may be closed. After an error parts[0]
 * may only be closed. BN_EFORMAT: the parts do not belong together, split.tensors.count is not
 * their number of tensors, a type id has two meanings, or a tensor is in two parts. BN_ENOMEM. */
bool gguf_join(struct gguf *const *parts, size_t n_parts, struct bn_error *err);

/* NULL if there is no such key or tensor. */
const struct gguf_kv *gguf_find_kv(const struct gguf *g, const char *key);
const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name);
/* The same with a name without terminator. */
const struct gguf_tensor *gguf_find_tensor_str(const struct gguf *g, struct bn_str name);

/* Read a typed value. False if it is absent, of another kind, or does not fit. u64 accepts any
 * integer kind with a value >= 0, f64 any number. */
bool gguf_get_str(const struct gguf *g, const char *key, struct bn_str *out);
bool gguf_get_u64(const struct gguf *g, const char *key, uint64_t *out);
bool gguf_get_f64(const struct gguf *g, const char *key, double *out);
bool gguf_get_bool(const struct gguf *g, const char *key, bool *out);

/* Read item i of an array of numbers or bools, or a single value with i = 0. False past the end,
 * for strings, and if the value does not fit. u64 and i64 do not accept floats. */
bool gguf_item_u64(const struct gguf_kv *kv, uint64_t i, uint64_t *out);
bool gguf_item_i64(const struct gguf_kv *kv, uint64_t i, int64_t *out);
bool gguf_item_f64(const struct gguf_kv *kv, uint64_t i, double *out);

/* Return the string at *at, an item of an array of strings, and move *at behind it. The items begin
 * at gguf_kv.value; the caller counts them. */
struct bn_str gguf_next_str(const uint8_t **at);

/* Size of a value of this kind in bytes; 0 for strings, arrays and unknown kinds. */
size_t gguf_kind_bytes(uint32_t kind);

/* Build the two indices; only for gguf_parse and gguf_join. BN_EFORMAT: a name occurs twice.
 * BN_ENOMEM. Also after an error gguf_close frees them. */
bool gguf_build_index(struct gguf *g, struct bn_error *err);

/* Decide the type of each tensor by its id, its distance to the next tensor, and the types that
 * these prove for other tensors with this id. Make its offset absolute and set its bytes. Only for
 * gguf_parse. data_start and alignment must be set and data_start <= n_bytes. BN_EFORMAT: the
 * tensor is not inside the file, overlaps another one, has a wrong shape or alignment, or the sizes
 * of two tensors prove different meanings of one type id. BN_ENOMEM. */
bool gguf_place_tensors(struct gguf *g, struct bn_error *err);
/* tensors[type]: a tensor of this type, or NULL. BN_EFORMAT: two types in use have the same id. */
bool gguf_check_type_ids(const struct gguf_tensor *const tensors[TENSOR_N_TYPES],
                         struct bn_error *err);

#endif
