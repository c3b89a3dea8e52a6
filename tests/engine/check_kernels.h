/*
 * What the parts of check_kernels share: guarded memory, inputs biased to extremes, and the record
 * of what differed.
 */
#ifndef TESTS_ENGINE_CHECK_KERNELS_H
#define TESTS_ENGINE_CHECK_KERNELS_H

#include "engine/base/error.h"
#include "engine/cpu/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- memory: all of it is given back by guard_release -------------------------------------------
 */

/* n_bytes that end where an unreadable page begins: reading past the end is a crash. The start is
 * aligned as far as n_bytes is (64 for whole lines). */
void *guard_alloc(size_t n_bytes);
void guard_release(void);
/* Leave n_bytes (a multiple of 64) readable behind each: emulators read the lanes that masks
 * exclude. */
void guard_slack(size_t n_bytes);

/* --- inputs ------------------------------------------------------------------------------------
 */

struct rng {
    uint64_t state;
};
uint32_t rng_next(struct rng *r);
size_t rng_below(struct rng *r, size_t n);

enum pattern {
    PATTERN_PLAIN, /* -4 .. 4 */
    PATTERN_ZERO,  /* +0 and -0 */
    PATTERN_TINY,  /* subnormal numbers and their neighbours */
    PATTERN_HUGE,  /* up to 1e18, a few infinities' neighbours after squaring */
    PATTERN_MIXED, /* any exponent from 2^-40 to 2^20, some zeros */
    PATTERN_SAME,  /* one value, its sign alternating */
    N_PATTERNS
};
void fill_floats(struct rng *r, enum pattern pattern, float *x, size_t n);
void fill_f16(struct rng *r, enum pattern pattern, uint16_t *x, size_t n);
/* A row of a table of this type; every scale in it is finite. */
void fill_table(struct rng *r, enum tensor_type type, uint8_t *row, size_t n_bytes);

enum ternary_pattern {
    TERNARY_PLAIN,
    TERNARY_MAX,
    TERNARY_MIN,
    TERNARY_SIGNED,
    N_TERNARY_PATTERNS
};
/* MAX: all codes 2, all activations 127; MIN: codes 2, activations -127; SIGNED: codes 2 and
 * activations +-127. Only n of the n_lines * LINE_COLS columns count; the rest is padding. */
void fill_lines(struct rng *r, enum ternary_pattern p, uint8_t *row, size_t n_lines, size_t n);
int32_t fill_activations(struct rng *r, enum ternary_pattern p, int8_t *q, size_t n_lines,
                         size_t n);

/* --- checks ------------------------------------------------------------------------------------
 */

struct check {
    const struct cpu_kernels *k, *ref;
    const char *isa, *kernel;
    struct rng rng;
    size_t thin; /* run one case of so many */
    size_t n_cases, n_calls, n_failed;
};

/* Whether this case runs; each case asks once. */
static inline bool check_selects(struct check *c)
{
    return c->n_cases++ % c->thin == 0;
}

/* Two equally filled outputs, [0] for the kernel and [1] for ref, n_bytes each with guards of 64
 * bytes before and after; offset_bytes shifts them from alignment. */
struct outputs {
    uint8_t *p[2];
    size_t n_bytes;
    uint8_t *whole[2];
};
struct outputs outputs_alloc(size_t n_bytes, size_t offset_bytes);
/* Guards and contents as bytes; two NaN are equal whatever their bits when `floats`. Prints what
 * differs with the formatted words of the case. */
void outputs_compare(struct check *c, const struct outputs *o, bool floats, const char *format, ...)
    BN_PRINTF(4, 5);

struct check_case {
    const char *name;
    void (*run)(struct check *c);
};
extern const struct check_case vector_cases[]; /* end with a NULL name */
extern const struct check_case matrix_cases[];
extern const struct check_case q8_cases[];

/* Times every kernel whose name contains `filter` on this rung, with n_threads threads. */
void bench_kernels(const struct cpu_kernels *k, const char *filter, size_t n_threads);

#endif
