/*
 * Where table rows are read from: four distant places in turn, as a core reads faster from several
 * places than from one. AVX2 and AVX-512 alike.
 */
#ifndef ENGINE_CPU_X86_ROW_STREAMS_H
#define ENGINE_CPU_X86_ROW_STREAMS_H

#include "engine/base/force_inline.h"
#include "engine/cpu/kernels.h"

#define ROW_STREAMS 4
#define ROW_PREFETCH_BYTES 2560

/* Four rows, and what is to be prefetched while they are read: further along the row, or the same
 * place of the next one where rows lie anywhere. */
struct row_streams {
    const uint8_t *row[ROW_STREAMS];
    uintptr_t ahead[ROW_STREAMS];
};

/* The rows from number r, `step` apart. */
BN_FORCE_INLINE struct row_streams row_streams(const struct table_rows *rows, size_t r, size_t step)
{
    struct row_streams s;
#pragma GCC unroll 4
    for (size_t i = 0; i < ROW_STREAMS; i++) {
        const size_t at = r + i * step;
        s.row[i] = table_row(rows, at);
        s.ahead[i] = rows->ids ? (uintptr_t)table_row(rows, r + 1 < step ? at + 1 : at)
                               : (uintptr_t)s.row[i] + ROW_PREFETCH_BYTES;
    }
    return s;
}

#endif
