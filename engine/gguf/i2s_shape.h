/*
 * Which shapes the packings of I2_S hold. Private to the ternary codec.
 */
#ifndef ENGINE_GGUF_I2S_SHAPE_H
#define ENGINE_GGUF_I2S_SHAPE_H

#include "engine/base/size.h"
#include "engine/gguf/ternary_codec.h"

/* Elements that must come together, in I2_S of this layout. */
static inline size_t i2s_unit(enum bn_i2s_layout layout)
{
    return layout == BN_I2S_A ? 128 : 64;
}

static inline bool i2s_holds(enum bn_i2s_layout layout, size_t n_cols, size_t n_rows)
{
    if (layout == BN_I2S_C)
        return n_rows % 4 == 0;
    size_t n;
    return size_mul(&n, n_cols, n_rows) && n % i2s_unit(layout) == 0;
}

#endif
