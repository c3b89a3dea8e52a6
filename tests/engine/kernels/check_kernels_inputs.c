/*
 * Guarded memory, inputs and comparison for check_kernels.
 */
#include "tests/engine/kernels/check_kernels.h"

#include "engine/base/fp16.h"
#include "engine/base/size.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_GUARDS 64
#define GUARD_BYTES 64

/* All allocations. The list is global, because this test program has a single thread. */
static struct {
    void *base;
    size_t n_bytes;
} guards[MAX_GUARDS];
static size_t n_guards;
static size_t slack_bytes;

void guard_slack(size_t n_bytes)
{
    slack_bytes = n_bytes;
}

void *guard_alloc(size_t n_bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t body = size_round_up(n_bytes + slack_bytes + (n_bytes == 0), page);
    void *base = NULL;
    if (n_guards == MAX_GUARDS || posix_memalign(&base, page, body + page) != 0 ||
        mprotect((uint8_t *)base + body, page, PROT_NONE) != 0) {
        (void)fprintf(stderr, "no guarded memory\n");
        exit(1);
    }
    memset(base, 0, body);
    guards[n_guards].base = base;
    guards[n_guards++].n_bytes = body;
    return (uint8_t *)base + body - slack_bytes - n_bytes;
}

void guard_release(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    while (n_guards > 0) {
        n_guards--;
        uint8_t *base = guards[n_guards].base;
        (void)mprotect(base + guards[n_guards].n_bytes, page, PROT_READ | PROT_WRITE);
        free(base);
    }
}

uint32_t rng_next(struct rng *r)
{
    /* splitmix64 */
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

size_t rng_below(struct rng *r, size_t n)
{
    return rng_next(r) % n;
}

/* -1 .. 1 */
static float unit(struct rng *r)
{
    return (float)(int32_t)rng_next(r) * 0x1p-31f;
}

static float one_float(struct rng *r, enum pattern pattern, size_t i)
{
    switch (pattern) {
    case PATTERN_ZERO:
        return rng_next(r) & 1 ? -0.0f : 0.0f;
    case PATTERN_TINY:
        return f32_from_bits(rng_next(r) & 0x80ffffffu); /* exponent 0 or 1 */
    case PATTERN_HUGE:
        return unit(r) * 1e18f;
    case PATTERN_MIXED:
        return rng_below(r, 8) == 0 ? 0.0f : ldexpf(unit(r), (int)rng_below(r, 60) - 40);
    case PATTERN_SAME:
        return i % 2 ? -2.5f : 2.5f;
    default:
        return 4 * unit(r);
    }
}

void fill_floats(struct rng *r, enum pattern pattern, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = one_float(r, pattern, i);
}

void fill_f16(struct rng *r, enum pattern pattern, uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float f = one_float(r, pattern, i);
        if (pattern == PATTERN_TINY)
            x[i] = (uint16_t)(rng_next(r) & 0x87ffu); /* subnormal halves */
        else
            x[i] = f32_to_f16(fabsf(f) > 65504.0f ? copysignf(65504.0f, f) : f);
    }
}

/* Clear the top bit of the exponent: a scale below 2 keeps sums of products finite. */
static void make_finite(uint8_t *half)
{
    half[1] &= 0xbf;
}

void fill_table(struct rng *r, enum tensor_type type, uint8_t *row, size_t n_bytes)
{
    /* Offsets of the two scales in a block; both are the same for a type with one scale. The types
     * F32, F16 and BF16 have no scale: this is the offset of the half with the exponent. */
    static const size_t scales[TENSOR_N_TYPES][2] = {
        [TENSOR_F32] = {2, 2}, [TENSOR_Q4_K] = {0, 2}, [TENSOR_Q6_K] = {208, 208}};
    const size_t block = tensor_geometries[type].block_bytes;
    for (size_t i = 0; i < n_bytes; i++)
        row[i] = (uint8_t)rng_next(r);
    for (size_t i = 0; i + block <= n_bytes; i += block) {
        make_finite(row + i + scales[type][0]);
        make_finite(row + i + scales[type][1]);
    }
}

void fill_lines(struct rng *r, enum ternary_pattern p, uint8_t *row, size_t n_lines, size_t n)
{
    memset(row, 0, n_lines * LINE_BYTES);
    for (size_t c = 0; c < n_lines * LINE_COLS; c++) {
        /* The padding has code 1: the weight 0. */
        const uint32_t code = c >= n ? 1 : p == TERNARY_PLAIN ? (uint32_t)rng_below(r, 3) : 2;
        /* Byte b of a line has the columns b, b + 64, b + 128 and b + 192, two bits each. */
        const size_t shift = c % LINE_COLS / LINE_BYTES * 2;
        row[c / LINE_COLS * LINE_BYTES + c % LINE_BYTES] |= (uint8_t)(code << shift);
    }
}

int32_t fill_activations(struct rng *r, enum ternary_pattern p, int8_t *q, size_t n_lines, size_t n)
{
    int32_t sum = 0;
    for (size_t c = 0; c < n_lines * LINE_COLS; c++) {
        const int any = (int)rng_below(r, 255) - 127;
        const int value[N_TERNARY_PATTERNS] = {[TERNARY_PLAIN] = any,
                                               [TERNARY_MAX] = 127,
                                               [TERNARY_MIN] = -127,
                                               [TERNARY_SIGNED] = any < 0 ? -127 : 127};
        q[c] = (int8_t)(c < n ? value[p] : 0);
        sum += q[c];
    }
    return sum;
}

struct outputs outputs_alloc(size_t n_bytes, size_t offset_bytes)
{
    struct outputs o = {.n_bytes = n_bytes};
    for (size_t i = 0; i < 2; i++) {
        o.whole[i] = guard_alloc(size_round_up(n_bytes + offset_bytes, 64) + 2 * GUARD_BYTES);
        memset(o.whole[i], 0xa5, n_bytes + offset_bytes + 2 * GUARD_BYTES);
        o.p[i] = o.whole[i] + GUARD_BYTES + offset_bytes;
    }
    return o;
}

/* Index of the first byte that differs, SIZE_MAX if none. */
static size_t first_difference(const struct outputs *o, bool floats)
{
    float *x = o->p[0];
    const float *y = o->p[1];
    for (size_t i = 0; floats && i < o->n_bytes / sizeof *x; i++)
        if (isnan(x[i]) && isnan(y[i]))
            x[i] = y[i];
    const size_t whole = (size_t)((uint8_t *)o->p[0] - o->whole[0]) + o->n_bytes + GUARD_BYTES;
    if (memcmp(o->whole[0], o->whole[1], whole) == 0)
        return SIZE_MAX;
    size_t i = 0;
    while (o->whole[0][i] == o->whole[1][i])
        i++;
    return i;
}

void outputs_compare(struct check *c, const struct outputs *o, bool floats, const char *format, ...)
{
    char words[200];
    va_list args;
    const size_t at = first_difference(o, floats);
    c->n_calls++;
    if (at == SIZE_MAX)
        return;
    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    if (c->n_failed++ < 20) /* enough to see a pattern */
        printf("  %s, %s: differs from ref at byte %ld of %zu (%s)\n", c->isa, c->kernel,
               (long)at - (long)((uint8_t *)o->p[0] - o->whole[0]), o->n_bytes, words);
}
