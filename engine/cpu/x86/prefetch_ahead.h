/*
 * Prefetching what is read next while something else is computed, a few lines a step.
 *
 * In two streams: from one a core reads four fifths as fast. Addresses need not exist, prefetching
 * nothing is no error.
 */
#ifndef ENGINE_CPU_X86_PREFETCH_AHEAD_H
#define ENGINE_CPU_X86_PREFETCH_AHEAD_H

#include "engine/base/force_inline.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/* Step `step` of some: every `every`th (a power of two) fetches a line of each half of n_bytes at
 * `at`. */
BN_FORCE_INLINE void prefetch_ahead(const void *at, size_t n_bytes, size_t step, size_t every)
{
    const uintptr_t line = (uintptr_t)at + step / every * 64;
    if (step % every != 0)
        return;
    _mm_prefetch((const char *)line, _MM_HINT_T0);
    _mm_prefetch((const char *)(line + n_bytes / 2), _MM_HINT_T0);
}

/* The same over several loops: two lines a step until all of n_bytes are fetched; of NULL nothing
 * is. */
struct prefetch {
    uintptr_t at, end; /* in the first half */
    size_t half;
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
