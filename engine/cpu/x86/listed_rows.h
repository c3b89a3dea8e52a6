/*
 * Prefetching rows of a list, for rungs that multiply two rows at a time and walk four parts of the
 * list in turn.
 */
#ifndef ENGINE_CPU_X86_LISTED_ROWS_H
#define ENGINE_CPU_X86_LISTED_ROWS_H

#include "engine/base/force_inline.h"
#include "engine/cpu/kernels.h"

#include <immintrin.h>

/* Rows numbered rows[0], rows[step], ... of so many streams. */
BN_FORCE_INLINE void prefetch_listed(const struct ternary_mat *w, const int32_t *rows, size_t step,
                                     int n_streams)
{
    for (int i = 0; i < n_streams; i++) {
        const uint8_t *row = w->lines + (size_t)rows[(size_t)i * step] * w->n_lines * LINE_BYTES;
        for (size_t l = 0; l < w->n_lines; l++)
            _mm_prefetch((const char *)(row + l * LINE_BYTES), _MM_HINT_T0);
    }
}

#endif
