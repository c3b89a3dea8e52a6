/*
 * Encodes and decodes rows of an embedding or output head: F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q6_K.
 * The encoder does not search for the best scales, because tests only need known values.
 */
#ifndef TESTS_SUPPORT_TABLE_ENCODE_H
#define TESTS_SUPPORT_TABLE_ENCODE_H

#include "engine/gguf/gguf_types.h"

/* Encode x (n), where n is a whole number of blocks. `out` has tensor_bytes(type, n, 1) bytes. */
void table_encode(enum tensor_type type, const float *x, size_t n, uint8_t *out);

/* Decode a row to out (n) by the formulas of docs/formats.md. */
void table_decode(enum tensor_type type, const uint8_t *row, size_t n, double *out);

#endif
