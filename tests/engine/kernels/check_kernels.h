/*
 * Shared by the files of check_kernels: guarded memory, inputs biased to extremes, and the
 * comparison of outputs.
 */
#ifndef TESTS_ENGINE_CHECK_KERNELS_H
#define TESTS_ENGINE_CHECK_KERNELS_H

#include "engine/base/error.h"
#include "engine/cpu/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory of n_bytes that ends at an unreadable page, so that a read past the end crashes. The
 * beginning is aligned to the largest power of two that divides n_bytes. */
void *guard_alloc(size_t n_bytes);
/* Free all memory of guard_alloc. */
void guard_release(void);
/* Leave n_bytes (a multiple of 64) readable behind each allocation, because emulators read lanes
 * that masks exclude. */
void guard_slack(size_t n_bytes);

struct rng {
    uint64_t state;
};
uint32_t rng_next(struct rng *r);
size_t rng_below(struct rng *r, size_t n);

enum pattern {
    PATTERN_PLAIN, /* -4 .. 4 */
    PATTERN_ZERO,  /* +0 and -0 */
    PATTERN_TINY,  /* subnormal numbers and their neighbours */
    PATTERN_HUGE,  /* up to 1e18; some squares are near infinity */
    PATTERN_MIXED, /* random numbers times 2^-40 to 2^19, some zeros */
    PATTERN_SAME,  /* one value with alternating sign */
    N_PATTERNS
};
void fill_floats(struct rng *r, enum pattern pattern, float *x, size_t n);
void fill_f16(struct rng *r, enum pattern pattern, uint16_t *x, size_t n);
/* A row of a table of this type. Every scale in it is finite. */
void fill_table(struct rng *r, enum tensor_type type, uint8_t *row, size_t n_bytes);

enum ternary_pattern {
    TERNARY_PLAIN,
    TERNARY_MAX,
    TERNARY_MIN,
    TERNARY_SIGNED,
    N_TERNARY_PATTERNS
};
/* PLAIN: random codes and activations. MAX: codes 2, activations 127. MIN: codes 2, activations
 * -127. SIGNED: codes 2, activations +-127. Only the first n of the n_lines * LINE_COLS columns are
 * used; the others are padding. fill_activations returns the sum of q. */
void fill_lines(struct rng *r, enum ternary_pattern p, uint8_t *row, size_t n_lines, size_t n);
int32_t fill_activations(struct rng *r, enum ternary_pattern p, int8_t *q, size_t n_lines,
                         size_t n);

struct check {
    const struct cpu_kernels *k, *ref;
    const char *isa, *kernel;
    struct rng rng;
    size_t thin; /* run only one case in this many */
    size_t n_cases, n_calls, n_failed;
};

/* Whether this case runs. Call it once per case. */
static inline bool check_selects(struct check *c)
{
    return c->n_cases++ % c->thin == 0;
}

/* Two outputs of n_bytes with equal contents: p[0] for the kernel, p[1] for ref. Each has guards of
 * 64 bytes before and after, and begins offset_bytes behind a multiple of 64. */
struct outputs {
    void *p[2];
    size_t n_bytes;
    uint8_t *whole[2];
};
struct outputs outputs_alloc(size_t n_bytes, size_t offset_bytes);
/* Compare guards and contents as bytes; if `floats`, all NaN are equal. A difference is printed
 * with the formatted description of the case, and counted. */
void outputs_compare(struct check *c, const struct outputs *o, bool floats, const char *format, ...)
    BN_PRINTF(4, 5);

struct check_case {
    const char *name;
    void (*run)(struct check *c);
};
extern const struct check_case vector_cases[]; /* ends with a NULL name */
extern const struct check_case matrix_cases[];
extern const struct check_case attn_cases[];
extern const struct check_case r16_cases[];

/* Measure every kernel of this table whose name contains `filter`, with n_threads threads. */
void bench_kernels(const struct cpu_kernels *k, const char *filter, size_t n_threads);

#endif
