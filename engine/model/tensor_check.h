/*
 * Checks of a tensor before weights.c uses it: its type, its shape and, for small tensors, its
 * values. Private to engine/model.
 *
 * Each function returns true, or writes a message that names the tensor and returns false.
 */
#ifndef ENGINE_MODEL_TENSOR_CHECK_H
#define ENGINE_MODEL_TENSOR_CHECK_H

#include "engine/base/error.h"
#include "engine/gguf/gguf.h"

#include <stdbool.h>
#include <stddef.h>

/* The types that a tensor may have: F32 only; F32, F16 or BF16; is_table; tensor_is_linear. */
enum tensor_use { USE_F32, USE_FLOAT, USE_TABLE, USE_LINEAR };

/* The dimensions of a tensor in a file. n_matrices is 1 for all but those of experts. */
struct tensor_shape {
    size_t n_cols, n_rows, n_matrices;
};

/* Check that `use` permits the type of t, a tensor of g. BN_EUNSUPPORTED. */
bool tensor_check_type(const struct gguf *g, const struct gguf_tensor *t, enum tensor_use use,
                       struct bn_error *err);

/* Check that t has exactly these dimensions. BN_EFORMAT. */
bool tensor_check_shape(const struct gguf_tensor *t, const struct tensor_shape *want,
                        struct bn_error *err);

/* Check that all elements of t, a tensor of USE_F32 or USE_FLOAT, are finite. Quantisation to int8
 * can turn a NaN into 0, so an evaluation would not notice it. BN_EFORMAT. */
bool tensor_check_finite(const struct gguf_tensor *t, struct bn_error *err);

#endif
