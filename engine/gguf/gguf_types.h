/*
 * Tensor types: one geometry table. Ids clash between the projects that write GGUF files, so the
 * table is asked with the byte span a tensor has, never with the id alone.
 */
#ifndef ENGINE_GGUF_GGUF_TYPES_H
#define ENGINE_GGUF_GGUF_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tensor_type {
    TENSOR_F32,
    TENSOR_F16,
    TENSOR_BF16,
    TENSOR_Q8_0,
    TENSOR_Q4_0,
    TENSOR_Q4_K,
    TENSOR_Q6_K,
    TENSOR_I2_S,
    TENSOR_TQ1_0,
    TENSOR_TQ2_0,
    TENSOR_OTHER, /* everything else: named, never read */
    TENSOR_N_TYPES
};

struct tensor_geometry {
    const char *name;   /* "TQ2_0" */
    uint32_t file_id;   /* as upstream (I2_S: as bitnet.cpp) numbers it */
    size_t block_cols;  /* elements a block */
    size_t block_bytes; /* bytes a block; I2_S: see tensor_bytes */
    bool ternary;       /* a container of ternary weights */
};
extern const struct tensor_geometry tensor_geometries[TENSOR_N_TYPES];

/* Bytes of n_rows rows of n_cols elements; false on overflow or a row that is no whole number of
 * blocks, and for TENSOR_OTHER. I2_S: n / 4 + 32 for the whole tensor, n a multiple of 4 (layout A
 * needs one of 128: the codec checks that, since the layout is not known here). */
bool tensor_bytes(enum tensor_type type, size_t n_cols, size_t n_rows, size_t *out);

/* Our type of a tensor with this id. `span` is the distance to the next tensor or the end of the
 * file: it may hold padding, but an id that means something else at exactly this span is
 * TENSOR_OTHER. */
enum tensor_type tensor_type_decide(uint32_t file_id, size_t n_cols, size_t n_rows, size_t span,
                                    size_t alignment);

/* Name of a file's type id for messages, whatever project it is from: "TL2 or MXFP4 (39)"; NULL
 * for one that nobody is known to use. */
const char *tensor_type_id_name(uint32_t file_id);

/* The same when the bytes are known, which tells clashing ids apart, and what a user can do about
 * it. */
struct tensor_verdict {
    const char *name;   /* "TL2 (39)"; NULL: nobody is known to use the id */
    const char *advice; /* "its tiling is not in the file: convert the original model to i2_s" */
};
struct tensor_verdict tensor_type_judge(uint32_t file_id, size_t n_cols, size_t n_rows, size_t span,
                                        size_t alignment);

#endif
