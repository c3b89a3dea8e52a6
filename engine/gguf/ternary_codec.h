/*
 * Decodes every ternary layout of model files. Packing for the kernels is tested against it.
 *
 * A ternary tensor consists of codes 0, 1, 2 for -1, 0, +1 and one scale: value = (code - 1) *
 * scale. All functions are pure; several threads may decode rows of one tensor.
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

/* Check that the type can hold ternary weights and that the shape fits the type and the layout. The
 * functions below call it first. BN_EUNSUPPORTED: the type is dense or unknown. BN_EFORMAT: there
 * are too few bytes, or n_cols * n_rows is not a multiple of 128 (layout A) or 64 (B), or n_rows
 * not of 4 (C). */
bool ternary_check(const struct ternary_source *src, struct bn_error *err);

/* The scale of the tensor. An all-zero tensor has scale 0, except for I2_S, which stores its scale.
 * Reads 4 bytes of I2_S and the whole tensor of other types. BN_EUNSUPPORTED: TQ blocks have
 * different non-zero scales, or floats are not ternary; the message names the block or element.
 * BN_EFORMAT: the scale is not finite. */
bool ternary_scale(const struct ternary_source *src, float *scale, struct bn_error *err);

/* Decode rows row0 .. row1 - 1 to codes (row1 - row0, n_cols), one byte each with value 0 to 2. A
 * TQ block with scale 0 gives code 1. BN_EFORMAT: code 3; the message has its byte offset. */
bool ternary_decode(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                    struct bn_error *err);

#endif
