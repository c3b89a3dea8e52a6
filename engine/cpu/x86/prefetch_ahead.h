/*
 * Prefetches memory that is read next, a few cache lines per step of a computation.
 *
 * The bytes are prefetched in two streams, one for each half of the range: a core reads memory in
 * one stream at four fifths of the speed of two streams. Addresses need not be valid, since a
 * prefetch cannot fault.
 */
#ifndef ENGINE_CPU_X86_PREFETCH_AHEAD_H
#define ENGINE_CPU_X86_PREFETCH_AHEAD_H

#include "engine/base/force_inline.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/* Call this in each step of a loop; `step` counts from 0. Every `period` steps it prefetches the
 * next cache line of each half of the n_bytes at `at`. Steps after the end of a half prefetch lines
 * behind it, which is harmless. period is a constant power of two, so that the division is a shift.
 */
BN_FORCE_INLINE void prefetch_ahead(const void *at, size_t n_bytes, size_t step, size_t period)
{
    const uintptr_t line = (uintptr_t)at + step / period * 64;
    if (step % period != 0)
        return;
    _mm_prefetch((const char *)line, _MM_HINT_T0);
    _mm_prefetch((const char *)(line + n_bytes / 2), _MM_HINT_T0);
}

/* A prefetch that continues across several loops: each call of prefetch_step prefetches one line of
 * each half, until the range is done. If `at` is NULL, nothing is prefetched. */
struct prefetch {
    uintptr_t at, end; /* next line of the first half, and the end of this half */
    size_t half;       /* bytes of a half */
};

BN_FORCE_INLINE struct prefetch prefetch_of(const void *at, size_t n_bytes)
{
    const size_t half = at ? n_bytes / 2 : 0;
    return (struct prefetch){(uintptr_t)at, (uintptr_t)at + half, half};
}

BN_FORCE_INLINE void prefetch_step(struct prefetch *f)
{
    if (f->at >= f->end)
        return;
    _mm_prefetch((const char *)f->at, _MM_HINT_T0);
    _mm_prefetch((const char *)(f->at + f->half), _MM_HINT_T0);
    f->at += 64;
}

#endif
