/*
 * Float tensors whose values are ternary: each run of 64 columns of a row holds only 0 and one
 * magnitude.
 *
 * The magnitudes are found run by run, so that they fall into the same classes as the scales of
 * blocks. Magnitudes are compared as bits: equal bits mean equal magnitudes, and 0 is zero of
 * either sign.
 */
#include "engine/gguf/ternary_layout.h"

#include "engine/base/fp16.h"
#include "engine/base/size.h"
#include "engine/gguf/gguf_le.h"
#include "engine/gguf/refusal.h"

#include <math.h>

static float float_at(const struct ternary_source *src, size_t i)
{
    if (src->type == TENSOR_F16)
        return f16_to_f32(le_u16(src->bytes + 2 * i));
    if (src->type == TENSOR_BF16)
        return bf16_to_f32(le_u16(src->bytes + 2 * i));
    return f32_from_bits(le_u32(src->bytes + 4 * i));
}

static uint32_t magnitude_bits(const struct ternary_source *src, size_t i)
{
    if (src->type == TENSOR_F32)
        return le_u32(src->bytes + 4 * i) & 0x7fffffff;
    return le_u16(src->bytes + 2 * i) & 0x7fff;
}

/* Whether each of the n elements from i on is zero or has this magnitude. There is no branch per
 * element, so that the compiler can vectorise the loops: float models read all weights here. */
static bool all_of_magnitude(const struct ternary_source *src, size_t i, size_t n, uint32_t bits)
{
    unsigned other = 0;
    if (src->type == TENSOR_F32) {
        for (size_t k = 0; k < n; k++) {
            const uint32_t m = le_u32(src->bytes + 4 * (i + k)) & 0x7fffffff;
            other |= (unsigned)(m != 0) & (unsigned)(m != bits);
        }
    } else {
        for (size_t k = 0; k < n; k++) {
            const unsigned m = le_u16(src->bytes + 2 * (i + k)) & 0x7fff;
            other |= (unsigned)(m != 0) & (unsigned)(m != bits);
        }
    }
    return other == 0;
}

/* The first of n elements from i on that is not zero; i + n if there is none. */
static size_t first_nonzero(const struct ternary_source *src, size_t i, size_t n)
{
    const size_t end = i + n;
    while (i < end && magnitude_bits(src, i) == 0)
        i++;
    return i;
}

/* Report the first of n elements from i on that is not finite or has another magnitude than element
 * `first`, the first one that is not zero. Zeros are permitted. */
static bool refuse_element(const struct ternary_source *src, size_t i, size_t n, size_t first,
                           struct bn_error *err)
{
    const uint32_t bits = isfinite(float_at(src, first)) ? magnitude_bits(src, first) : 0;
    size_t k = i;
    while (k + 1 < i + n && (magnitude_bits(src, k) == 0 || magnitude_bits(src, k) == bits))
        k++;
    if (!isfinite(float_at(src, k)))
        return bn_fail(err, BN_EFORMAT, "tensor '%s': element %zu (row %zu) is not finite",
                       src->name, k, k / src->n_cols);
    return refusal_fail(err, REFUSED_DENSE, BN_EUNSUPPORTED,
                        "tensor '%s' (%s) is dense, not ternary: "
                        "element %zu (row %zu) is %g, its neighbours are 0 or %g in magnitude",
                        src->name, tensor_geometries[src->type].name, k, k / src->n_cols,
                        (double)float_at(src, k), (double)fabsf(float_at(src, first)));
}

/* Add the magnitudes of a row to the classes (scale_classes_add). *inexact becomes the index of an
 * element that F16 cannot represent, if there is one. */
static bool scan_row(const struct ternary_source *src, size_t row, struct scale_classes *c,
                     size_t *inexact, struct bn_error *err)
{
    const size_t row_end = (row + 1) * src->n_cols;
    size_t i = row * src->n_cols; /* first element of a block of PAIR_COLS columns (last: fewer) */
    for (size_t block = 0; i < row_end; block++, i += PAIR_COLS) {
        const size_t n = size_min(PAIR_COLS, row_end - i), first = first_nonzero(src, i, n);
        if (first == i + n) {
            scale_classes_add(c, block, 0);
            continue;
        }
        const uint32_t bits = magnitude_bits(src, first);
        const float v = float_at(src, first);
        if (!isfinite(v) || !all_of_magnitude(src, i, n, bits))
            return refuse_element(src, i, n, first, err);
        if (f16_to_f32(f32_to_f16(v)) != v)
            *inexact = first;
        scale_classes_add(c, block, bits);
    }
    scale_classes_end_row(c);
    return true;
}

bool floats_scan(const struct ternary_source *src, struct ternary_scales *out, struct bn_error *err)
{
    struct scale_classes c = {.is_tensor = true, .is_row = true, .in_pairs = true};
    const size_t none = SIZE_MAX;
    size_t inexact = none;
    for (size_t row = 0; row < src->n_rows; row++) {
        if (all_of_magnitude(src, row * src->n_cols, src->n_cols, c.of_tensor))
            continue; /* only 0 and c.of_tensor: the row changes no class */
        if (!scan_row(src, row, &c, &inexact, err))
            return false;
    }
    const float tensor_scale = src->type == TENSOR_F32   ? f32_from_bits(c.of_tensor)
                               : src->type == TENSOR_F16 ? f16_to_f32((uint16_t)c.of_tensor)
                                                         : bf16_to_f32((uint16_t)c.of_tensor);
    *out = scale_classes_result(&c, PAIR_COLS, tensor_scale);
    if (out->scaling == SCALE_BLOCK && inexact != none)
        return bn_fail(err, BN_EUNSUPPORTED,
                       "tensor '%s' (%s) has a magnitude per block, and that of element %zu (row "
                       "%zu), %g, cannot be stored as F16",
                       src->name, tensor_geometries[src->type].name, inexact, inexact / src->n_cols,
                       (double)fabsf(float_at(src, inexact)));
    return true;
}

static float magnitude_of(const struct ternary_source *src, size_t i, size_t n)
{
    const size_t first = first_nonzero(src, i, n);
    return first == i + n ? 0.0f : fabsf(float_at(src, first));
}

bool floats_block_scales(const struct ternary_source *src, size_t block_cols, size_t row,
                         uint16_t *out, struct bn_error *err)
{
    (void)err; /* the scan has read all elements */
    const size_t end = (row + 1) * src->n_cols;
    for (size_t i = row * src->n_cols; i < end; i += block_cols)
        *out++ = f32_to_f16(magnitude_of(src, i, size_min(block_cols, end - i)));
    return true;
}

float floats_row_scale(const struct ternary_source *src, size_t row)
{
    return magnitude_of(src, row * src->n_cols, src->n_cols);
}

/* Code of a float; +0 and -0 have code 1. There is no branch, so that the compiler can vectorise
 * loops. */
static uint8_t float_code(unsigned is_nonzero, unsigned is_negative)
{
    return (uint8_t)(1 + is_nonzero - 2 * (is_nonzero & is_negative));
}

bool floats_decode(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                   struct bn_error *err)
{
    (void)err; /* every float has a code */
    const size_t unit = src->type == TENSOR_F32 ? 4 : 2, n = (row1 - row0) * src->n_cols;
    const uint8_t *bytes = src->bytes + row0 * src->n_cols * unit;
    if (unit == 4) {
        for (size_t i = 0; i < n; i++) {
            const uint32_t bits = le_u32(bytes + 4 * i);
            codes[i] = float_code((bits & 0x7fffffff) != 0, bits >> 31);
        }
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        const unsigned bits = le_u16(bytes + 2 * i);
        codes[i] = float_code((bits & 0x7fff) != 0, bits >> 15);
    }
    return true;
}
