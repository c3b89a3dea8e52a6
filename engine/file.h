/*
 * A model file: its metadata and its identity. Public header; engine.h includes it.
 *
 * Opening a file parses the header, the metadata and the tensor descriptions, which takes
 * milliseconds. It reads no tensor data. A file with only a vocabulary opens too, whatever its
 * architecture.
 *
 * A file never changes after opening, so several threads may read it. Strings point into the
 * file's memory and are valid until bn_file_close.
 */
#ifndef ENGINE_FILE_H
#define ENGINE_FILE_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bn_file;

/* Open a model file. The path may name any part of a split model; the other parts are found by
 * their names, PREFIX-00001-of-00003.gguf. BN_EIO: a path is missing, a directory, pipe or device,
 * not readable, or cannot be mapped. BN_EFORMAT: not a model file, incomplete or damaged, or parts
 * that do not belong together; the message names the place or the part. BN_EUNSUPPORTED: GGUF
 * version 1 or above 3, big-endian, with arrays of arrays, or another format (safetensors, PyTorch,
 * GGML). BN_ENOMEM. */
bool bn_file_open(const char *path, struct bn_file **out, struct bn_error *err);

/* As bn_file_open, for a file in memory. The bytes must outlive *out. BN_EUNSUPPORTED also for a
 * part of a split model. */
bool bn_file_open_memory(const void *bytes, size_t n_bytes, struct bn_file **out,
                         struct bn_error *err);
void bn_file_close(struct bn_file *file); /* file may be NULL */

const char *bn_file_path(const struct bn_file *file); /* "" for a file in memory */
size_t bn_file_n_parts(const struct bn_file *file);   /* 1 if the model is not split */
size_t bn_file_bytes(const struct bn_file *file);     /* size of all parts together */

/* Identify the model: SHA-256 of everything before the tensor data (of a split model, in its first
 * part) and of the first 4096 bytes of each tensor. This takes milliseconds if the file is in the
 * page cache. */
#define BN_FINGERPRINT_BYTES 32
void bn_file_fingerprint(const struct bn_file *file, uint8_t out[BN_FINGERPRINT_BYTES]);

/* These functions read metadata by key. They return false if the key is missing, or its value has
 * another type or does not fit; then *out is unchanged (an exception: bn_file_array_f32 and
 * bn_file_array_i32). bn_file_has tests only the key. */
bool bn_file_has(const struct bn_file *file, const char *key);
bool bn_file_get_str(const struct bn_file *file, const char *key, struct bn_str *out);
bool bn_file_get_u64(const struct bn_file *file, const char *key, uint64_t *out); /* integer >= 0 */
bool bn_file_get_f64(const struct bn_file *file, const char *key, double *out);   /* any number */
bool bn_file_get_bool(const struct bn_file *file, const char *key, bool *out);

/* Write the number of elements of an array of any type to *n_items. */
bool bn_file_get_array(const struct bn_file *file, const char *key, size_t *n_items);

/* Read the first n_items elements of an array of numbers or bools. Return false also if there are
 * fewer. If an element does not fit, the elements before it are in `out`. */
bool bn_file_array_f32(const struct bn_file *file, const char *key, float *out, size_t n_items);
bool bn_file_array_i32(const struct bn_file *file, const char *key, int32_t *out, size_t n_items);

/* Iterator over an array of strings. Strings have different lengths, so there is no access by
 * index. The members are private. bn_file_walk_strs starts a walk and writes the number of strings
 * to *n_items. */
struct bn_str_walk {
    const uint8_t *at;
    size_t n_left;
};
bool bn_file_walk_strs(const struct bn_file *file, const char *key, struct bn_str_walk *walk,
                       size_t *n_items);
bool bn_str_walk_next(struct bn_str_walk *walk, struct bn_str *out); /* false after the last */

#endif
