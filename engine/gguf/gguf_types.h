/*
 * Tensor types: one geometry table. Ids clash between the projects that write GGUF files, so the table
 * is asked with the byte span a tensor has, never with the id alone.
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
    const char *name;    /* "TQ2_0" */
    uint32_t file_id;    /* as upstream (I2_S: as bitnet.cpp) numbers it */
    size_t block_cols;   /* elements a block */
    size_t block_bytes;  /* bytes a block; I2_S: see tensor_bytes */
    bool ternary;        /* a container of ternary weights */
};
extern const struct tensor_geometry tensor_geometries[TENSOR_N_TYPES];

/* Bytes of n_rows rows of n_cols elements; false on overflow or a row that is no whole number of blocks.
 * I2_S: n / 4 + 32 for the whole tensor, which needs n % 128 == 0 for layout A. */
bool tensor_bytes(enum tensor_type type, size_t n_cols, size_t n_rows, size_t *out);

/* Name of a file's type id for messages, whatever project it is from: "TL2 or MXFP4 (39)". */
const char *tensor_type_id_name(uint32_t file_id);

#endif
