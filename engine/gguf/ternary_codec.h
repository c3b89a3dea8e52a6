/*
 * Decodes every ternary layout of model files. Tests compare the packing for the kernels with it.
 *
 * A ternary tensor consists of codes 0, 1, 2 for -1, 0, +1 and of scales: value = (code - 1) *
 * scale. Q1_0 is binary: its codes are 0 and 2, or 1 where the scale is 0. All functions are pure;
 * several threads may decode rows of one tensor.
 */
#ifndef ENGINE_GGUF_TERNARY_CODEC_H
#define ENGINE_GGUF_TERNARY_CODEC_H

#include "engine/base/error.h"
#include "engine/gguf/gguf_types.h"
#include "engine/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ternary_source {
    const char *name;      /* name of the tensor, for messages */
    enum tensor_type type; /* a type with tensor_is_linear; float types must hold ternary values */
    enum bn_i2s_layout layout; /* only for I2_S */
    const uint8_t *bytes;      /* (n_bytes) with any alignment */
    size_t n_bytes;
    size_t file_offset; /* offset of bytes[0], for messages */
    size_t n_cols, n_rows;
};

/* Which weights share a scale, from coarse to fine. */
enum ternary_scaling { SCALE_TENSOR, SCALE_ROW, SCALE_BLOCK };

struct ternary_scales {
    enum ternary_scaling scaling;
    float tensor_scale; /* only for SCALE_TENSOR, else 1 */
    size_t block_cols;  /* for SCALE_BLOCK: 64, 128 or 256 columns that share a scale; else 0 */
};

/* Check that the type can hold ternary weights and that the shape fits the type and the layout.
 * ternary_scan, ternary_decode and ternary_verify call it first. BN_EUNSUPPORTED: not a type with
 * tensor_is_linear. BN_EFORMAT: there are too few bytes, a row is not a whole number of blocks,
 * n_cols * n_rows is not a multiple of 128 (I2_S layout A) or 64 (B), or n_rows is not a multiple
 * of 4 (C and IQ2_BN_R4). */
bool ternary_check(const struct ternary_source *src, struct bn_error *err);

/* Find the coarsest class that represents the scales exactly. A scale of 0 fits any class. If the
 * scales of blocks of 64 columns are equal in pairs in the whole tensor, the class is blocks of
 * 128. I2_S has SCALE_TENSOR. Float tensors are ternary if each run of 64 columns of a row holds
 * only 0 and one magnitude, which is the scale of the run. If all scales or floats are 0, the
 * class is SCALE_TENSOR with the scale 0. Reads no codes: only 4 bytes of I2_S, the scales of all
 * rows, the scales of blocks up to the first row that settles the class, and all elements of
 * floats. BN_EUNSUPPORTED: floats are not ternary, or have a magnitude per block that F16 cannot
 * represent; the message names the element. BN_EFORMAT: a scale or float is not finite; some scales
 * of blocks are tested only by ternary_block_scales. */
bool ternary_scan(const struct ternary_source *src, struct ternary_scales *out,
                  struct bn_error *err);

/* Number of scales in a row of a tensor with SCALE_BLOCK. */
size_t ternary_row_blocks(const struct ternary_source *src, const struct ternary_scales *s);

/* Copy the scales of rows row0 .. row1 - 1 to out (row1 - row0, ternary_row_blocks) as F16 bits.
 * `s` is the result of ternary_scan, with SCALE_BLOCK. BN_EFORMAT: a scale is not finite; the
 * message has its byte offset. */
bool ternary_block_scales(const struct ternary_source *src, const struct ternary_scales *s,
                          size_t row0, size_t row1, uint16_t *out, struct bn_error *err);

/* The scales of rows row0 .. row1 - 1 of a tensor with SCALE_ROW: out (row1 - row0). ternary_scan
 * has read all of them, so they are finite. */
void ternary_row_scales(const struct ternary_source *src, size_t row0, size_t row1, float *out);

/* Decode rows row0 .. row1 - 1 to codes (row1 - row0, n_cols), one byte each with value 0 to 2. All
 * weights of a block or row with scale 0 have code 1. BN_EFORMAT: code 3; the message has its byte
 * offset. BN_EARG: the tensor does not have these rows. */
bool ternary_decode(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                    struct bn_error *err);

/* Check all scales and codes of a tensor, as ternary_scan, ternary_block_scales and ternary_decode
 * do. Only for types with a scale per block, the ternary types of tables. */
bool ternary_verify(const struct ternary_source *src, struct bn_error *err);

/* Decode a row of a table to values (n_cols): (code - 1) * scale. The table must have passed
 * ternary_verify, and row < n_rows. */
void ternary_row_decode(const struct ternary_source *src, size_t row, float *values);

#endif
