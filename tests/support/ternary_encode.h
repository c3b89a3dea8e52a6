/*
 * Encodes ternary tensors, the reverse of ternary_decode.
 */
#ifndef TESTS_SUPPORT_TERNARY_ENCODE_H
#define TESTS_SUPPORT_TERNARY_ENCODE_H

#include "engine/gguf/ternary_codec.h"

/* Encode codes (n_rows, n_cols) as a whole tensor of type I2_S, TQ1_0 or TQ2_0. `out` has
 * tensor_bytes() bytes. TQ types store the scale as F16. BN_EARG: the type cannot hold the shape.
 */
bool ternary_encode(enum tensor_type type, enum bn_i2s_layout layout, const uint8_t *codes,
                    size_t n_cols, size_t n_rows, float scale, uint8_t *out, struct bn_error *err);

#endif
