/*
 * A model file, opened far enough to ask what is in it. PUBLIC, part of engine.h.
 *
 * Opening reads header, metadata and tensor infos (milliseconds), never tensor data; a
 * vocabulary-only file of any architecture opens. Everything returned points into the mapping and
 * lives until bn_file_close. A file is immutable and may be read by several threads.
 */
#ifndef ENGINE_FILE_H
#define ENGINE_FILE_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bn_file;

/* BN_EIO: missing, a directory, not readable, cannot be mapped. BN_EFORMAT: not GGUF, cut short,
 * broken (the sentence names what and where). BN_EUNSUPPORTED: GGUF v1, big-endian, a part of a
 * split model. */
bool bn_file_open(const char *path, struct bn_file **out, struct bn_error *err);
/* The same from memory, which must outlive the file: fuzzers and the model linked into the program.
 */
bool bn_file_open_memory(const void *bytes, size_t n_bytes, struct bn_file **out,
                         struct bn_error *err);
void bn_file_close(struct bn_file *file); /* NULL is fine */

const char *bn_file_path(const struct bn_file *file); /* "" for a file in memory */
size_t bn_file_bytes(const struct bn_file *file);

/* What tells models apart: SHA-256 of everything before the tensors' data and of the first 4 kB of
 * each tensor. Reads a page of each, so milliseconds once they are in memory. */
#define BN_FINGERPRINT_BYTES 32
void bn_file_fingerprint(const struct bn_file *file, uint8_t out[BN_FINGERPRINT_BYTES]);

/* Metadata by key. False: no such key, or its value is of another kind or does not fit. */
bool bn_file_get_str(const struct bn_file *file, const char *key, struct bn_str *out);
bool bn_file_get_u64(const struct bn_file *file, const char *key,
                     uint64_t *out); /* any integer >= 0 */
bool bn_file_get_f64(const struct bn_file *file, const char *key, double *out); /* any number */
bool bn_file_get_bool(const struct bn_file *file, const char *key, bool *out);
bool bn_file_has(const struct bn_file *file, const char *key);

/* Arrays. bn_file_get_array gives the number of elements; element i is then asked for by kind.
 * String arrays are walked in order, since their elements differ in length. */
bool bn_file_get_array(const struct bn_file *file, const char *key, size_t *n_items);
bool bn_file_array_f32(const struct bn_file *file, const char *key, float *out, size_t n_items);
bool bn_file_array_i32(const struct bn_file *file, const char *key, int32_t *out, size_t n_items);

struct bn_str_walk {
    const uint8_t *at;
    size_t n_left;
};
bool bn_file_walk_strs(const struct bn_file *file, const char *key, struct bn_str_walk *walk,
                       size_t *n_items);
bool bn_str_walk_next(struct bn_str_walk *walk, struct bn_str *out); /* false after the last */

#endif
