/*
 * Encodes rows of an embedding or head: F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q6_K. Plain rounding, no
 * search for the best scales: for tests, where what matters is what the bytes decode to.
 */
#ifndef TESTS_SUPPORT_TABLE_ENCODE_H
#define TESTS_SUPPORT_TABLE_ENCODE_H

#include "engine/gguf/gguf_types.h"

/* x (n), n a whole number of the type's blocks; out holds tensor_bytes(type, n, 1). */
void table_encode(enum tensor_type type, const float *x, size_t n, uint8_t *out);

/* The definition of each table type in plain arithmetic (docs/formats.md): out (n). */
void table_decode(enum tensor_type type, const uint8_t *row, size_t n, double *out);

#endif
