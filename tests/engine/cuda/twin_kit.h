/*
 * Helpers for the tests of the CUDA kernels: launches by name on the twin (the kernels compiled for
 * the host), random numbers with some extreme values, comparison of bytes.
 */
#ifndef TESTS_ENGINE_CUDA_TWIN_KIT_H
#define TESTS_ENGINE_CUDA_TWIN_KIT_H

#include "engine/base/memory.h"
#include "engine/cuda/kernels/args/cuda_args.h"
#include "tests/engine/cuda/twin_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline void launch(const char *name, uint32_t x, uint32_t y, uint32_t z, uint32_t n_threads,
                          const void *args, enum twin_order order)
{
    const struct twin_kernel *k = twin_find(name);
    assert_non_null(k);
    twin_launch(k, (struct twin_grid){{x, y, z}, n_threads ? n_threads : k->max_threads}, args,
                order);
}

static inline void *zeros(size_t n, size_t unit_bytes)
{
    void *p = mem_alloc(n, unit_bytes);
    assert_non_null(p);
    return p;
}

#define FREE_ALL(...) free_all((void *const[]){__VA_ARGS__, NULL})
static inline void free_all(void *const *all)
{
    for (; *all; all++)
        mem_free(*all);
}

struct random {
    uint64_t state;
};
static inline uint32_t next_u32(struct random *r)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(r->state >> 33);
}
/* Between -1 and 1, sometimes larger, tiny or -0. */
static inline float next_float(struct random *r)
{
    const uint32_t u = next_u32(r);
    const float x = (float)(u % 65536) / 32768.0f - 1.0f;
    return u % 61 == 0 ? x * 1e4f : u % 67 == 0 ? -0.0f : u % 71 == 0 ? x * 1e-38f : x;
}
static inline float *floats(struct random *r, size_t n)
{
    float *x = zeros(n, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = next_float(r);
    return x;
}

/* Lines of LINE_BYTES bytes with codes 0 .. 2. */
static inline uint8_t *random_lines(struct random *r, size_t n_lines)
{
    uint8_t *lines = zeros(n_lines, LINE_BYTES);
    for (size_t i = 0; i < n_lines * LINE_BYTES; i++)
        for (uint32_t f = 0; f < 8; f += 2)
            lines[i] |= (uint8_t)(next_u32(r) % 3 << f);
    return lines;
}

static inline void assert_same(const void *a, const void *b, size_t n, const char *what)
{
    if (memcmp(a, b, n) != 0)
        fail_msg("%s differs from the reference", what);
}

#endif
