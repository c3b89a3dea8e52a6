/*
 * Every on-disk ternary layout, decoded and encoded: the plain definition that packing is checked
 * against. A ternary tensor is codes 0, 1, 2 for -1, 0, +1 and one scale: value = (code - 1) *
 * scale. All functions are pure; rows of one tensor may be decoded on several threads.
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
    const char *name;      /* of the tensor, for messages */
    enum tensor_type type; /* I2_S, TQ1_0, TQ2_0, or F32, F16, BF16 holding ternary values */
    enum bn_i2s_layout layout;
    const uint8_t *bytes; /* (n_bytes), any alignment */
    size_t n_bytes;
    size_t file_offset; /* of bytes[0], for messages */
    size_t n_cols, n_rows;
};

/* Can this type hold ternary weights here, and does the shape fit it and the layout?
 * BN_EUNSUPPORTED: the type is dense or foreign. BN_EFORMAT: layout A needs n_cols * n_rows % 128
 * == 0, B 64, C n_rows % 4 == 0; fewer bytes than the shape needs. The functions below ask this
 * first. */
bool ternary_check(const struct ternary_source *src, struct bn_error *err);

/* The one scale of the tensor. BN_EUNSUPPORTED: TQ blocks with different non-zero scales, named
 * with block and byte offset; floats that are not ternary, named with the first offending element.
 * BN_EFORMAT: the scale is not a finite number. An all-zero tensor has scale 0 (I2_S: what it
 * says). I2_S reads 4 bytes, the others the whole tensor. */
bool ternary_scale(const struct ternary_source *src, float *scale, struct bn_error *err);

/* Codes of rows row0 .. row1 - 1 into codes (row1 - row0, n_cols), one byte each, 0..2; the scale
 * is what ternary_scale said. A zero-scale TQ block gives code 1. BN_EFORMAT: code 3, with the byte
 * offset. */
bool ternary_decode(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                    struct bn_error *err);

/* The reverse for I2_S (each layout), TQ1_0, TQ2_0: whole tensor from codes (n_rows, n_cols). `out`
 * holds tensor_bytes(). TQ types keep the scale as F16. BN_EARG: a shape the type cannot hold. */
bool ternary_encode(enum tensor_type type, enum bn_i2s_layout layout, const uint8_t *codes,
                    size_t n_cols, size_t n_rows, float scale, uint8_t *out, struct bn_error *err);

#endif
