/*
 * Arithmetic on sizes. The functions with `out` are for sizes from untrusted input: if the result,
 * or the product of the first two factors, overflows, they return false and leave *out unchanged.
 */
#ifndef ENGINE_BASE_SIZE_H
#define ENGINE_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool size_add(size_t *out, size_t a, size_t b)
{
    if (b > SIZE_MAX - a)
        return false;
    *out = a + b;
    return true;
}

static inline bool size_mul(size_t *out, size_t a, size_t b)
{
    if (a != 0 && b > SIZE_MAX / a)
        return false;
    *out = a * b;
    return true;
}

static inline bool size_mul3(size_t *out, size_t a, size_t b, size_t c)
{
    size_t ab;
    return size_mul(&ab, a, b) && size_mul(out, ab, c);
}

/* Round `a` up to a multiple of `unit`, a power of two. `a` is at most SIZE_MAX - unit. */
static inline size_t size_round_up(size_t a, size_t unit)
{
    return (a + unit - 1) & ~(unit - 1);
}

static inline size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

#endif
