/*
 * Encodes ternary tensors, the reverse of ternary_decode.
 */
#ifndef TESTS_SUPPORT_TERNARY_ENCODE_H
#define TESTS_SUPPORT_TERNARY_ENCODE_H

#include "engine/gguf/ternary_codec.h"

/* Encode codes (n_rows, n_cols) as a whole tensor of a type with is_ternary. `out` has
 * tensor_bytes() bytes. I2_S, IQ2_BN and IQ2_BN_R4 store the scale as F32, all others as F16, the
 * same one in each block or row. BN_EARG: the type cannot hold the shape, or Q1_0 a code 1. */
bool ternary_encode(enum tensor_type type, enum bn_i2s_layout layout, const uint8_t *codes,
                    size_t n_cols, size_t n_rows, float scale, uint8_t *out, struct bn_error *err);

/* Overwrite the scale of a block, counted from the start of the tensor, with F16 bits. Only
 * for types with a scale per block. */
void ternary_put_scale(enum tensor_type type, uint8_t *bytes, size_t block, uint16_t scale);

/* Overwrite the scale of a row. Only for types with a scale per row. */
void ternary_put_row_scale(enum tensor_type type, uint8_t *bytes, size_t n_cols, size_t row,
                           float scale);

#endif
