/*
 * Cases of check_kernels for attention, with an F16 and with a Q8 cache: ragged heads and blocks,
 * all patterns of numbers, the largest bytes, scales of any size, and NaN at unseen positions.
 */
#include "engine/base/size.h"
#include "tests/engine/kernels/check_kernels.h"

#include <math.h>
#include <string.h>

#define F16_NAN 0x7e00

enum cache_type { CACHE_F16, CACHE_Q8 };
enum bytes { BYTES_ANY, BYTES_MAX, BYTES_MIN, N_BYTES };

/* The cache of one position block. */
struct cache {
    void *k, *v;
    float *scales; /* NULL for F16 */
};

/* Scale the queries so that scores cover the whole range of exp0 instead of one peak. With tiny
 * numbers, sometimes make all scores -0. */
static void spread_scores(struct check *c, enum pattern p, float *q, size_t n, uint16_t *k,
                          size_t n_k)
{
    const int shift = (int)rng_below(&c->rng, 9);
    for (size_t i = 0; i < n && p != PATTERN_TINY; i++)
        q[i] = ldexpf(q[i], -shift);
    if (p != PATTERN_TINY || shift < 4)
        return;
    for (size_t i = 0; i < n; i++)
        q[i] = -fabsf(q[i]);
    for (size_t i = 0; i < n_k; i++)
        k[i] &= 0x00ff;
}

/* Sometimes a seen position, often the first, whose score becomes NaN; else KV_BLOCK. */
static size_t bad_position(struct check *c, size_t n_seen)
{
    if (rng_below(&c->rng, 8) > 0)
        return KV_BLOCK;
    return rng_next(&c->rng) & 1 ? rng_below(&c->rng, n_seen) : 0;
}

/* A cache of n_seen random positions, the others NaN. Also scales the queries q (n_q). */
static struct cache f16_cache(struct check *c, size_t head_dim, size_t n_seen, enum pattern p,
                              float *q, size_t n_q)
{
    const size_t v_stride = size_round_up(head_dim, V_UNIT), n_k = head_dim * KV_BLOCK;
    uint16_t *k = guard_alloc(n_k * sizeof *k), *v = guard_alloc(KV_BLOCK * v_stride * sizeof *v);
    fill_f16(&c->rng, rng_next(&c->rng) & 1 ? p : PATTERN_MIXED, k, n_k);
    fill_f16(&c->rng, rng_next(&c->rng) & 1 ? p : PATTERN_PLAIN, v, KV_BLOCK * v_stride);
    spread_scores(c, p, q, n_q, k, n_k);
    const size_t bad = bad_position(c, n_seen);
    if (bad < KV_BLOCK)
        k[rng_below(&c->rng, head_dim) * KV_BLOCK + bad] = F16_NAN;
    for (size_t j = n_seen; j < KV_BLOCK; j++) {
        for (size_t i = 0; i < head_dim; i++)
            k[i * KV_BLOCK + j] = F16_NAN;
        for (size_t i = 0; i < v_stride; i++)
            v[j * v_stride + i] = F16_NAN;
    }
    return (struct cache){k, v, NULL};
}

static void fill_bytes(struct check *c, enum bytes kind, int8_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = kind == BYTES_MAX   ? 127
               : kind == BYTES_MIN ? -127
                                   : (int8_t)((int)rng_below(&c->rng, 255) - 127);
}

static struct cache q8_cache(struct check *c, size_t head_dim, size_t n_seen, float *q, size_t n_q)
{
    const enum bytes kind = rng_below(&c->rng, 4) ? BYTES_ANY : rng_below(&c->rng, N_BYTES);
    const size_t k_bytes = size_round_up(head_dim, ATTN_QUAD) * KV_BLOCK;
    const size_t v_bytes = size_round_up(head_dim, V_UNIT) * KV_BLOCK;
    int8_t *k = guard_alloc(k_bytes), *v = guard_alloc(v_bytes);
    float *scales = guard_alloc(2 * KV_BLOCK * sizeof *scales);
    fill_bytes(c, kind, k, k_bytes);
    fill_bytes(c, kind, v, v_bytes);
    for (size_t i = head_dim; i % ATTN_QUAD; i++)
        for (size_t j = 0; j < KV_BLOCK; j++)
            k[(i / ATTN_QUAD * KV_BLOCK + j) * ATTN_QUAD + i % ATTN_QUAD] = 0;
    const size_t spread = 1 + rng_below(&c->rng, 30);
    for (size_t j = 0; j < 2 * KV_BLOCK; j++)
        scales[j] = j % KV_BLOCK < n_seen ? ldexpf(1.0f + (float)rng_below(&c->rng, 1000) / 1000.0f,
                                                   -(int)rng_below(&c->rng, spread))
                                          : NAN;
    const size_t bad = bad_position(c, n_seen);
    if (bad < KV_BLOCK)
        scales[bad] = NAN; /* of a key */
    if (rng_below(&c->rng, 8) == 0)
        q[rng_below(&c->rng, n_q)] = NAN; /* is treated as 0 */
    return (struct cache){k, v, scales};
}

static float *make_queries(struct check *c, enum pattern p, size_t n)
{
    float *q = guard_alloc(n * sizeof *q);
    fill_floats(&c->rng, p, q, n);
    return q;
}

static void block_of(struct check *c, enum cache_type type, size_t head_dim, size_t n_q,
                     size_t n_seen, enum pattern p)
{
    if (!check_selects(c))
        return;
    float *q = make_queries(c, p, n_q * head_dim);
    const struct cache cache = type == CACHE_Q8
                                   ? q8_cache(c, head_dim, n_seen, q, n_q * head_dim)
                                   : f16_cache(c, head_dim, n_seen, p, q, n_q * head_dim);
    struct attn_block b = {.q = q,
                           .k = cache.k,
                           .v = cache.v,
                           .scales = cache.scales,
                           .ahead = cache.k,
                           .n_q = n_q,
                           .head_dim = head_dim,
                           .v_stride = size_round_up(head_dim, V_UNIT),
                           .first_seen = rng_next(&c->rng) & 1 ? rng_below(&c->rng, n_seen) : 0,
                           .n_seen = n_seen};
    if (type == CACHE_F16) /* values before the window are not read */
        for (size_t i = 0; i < b.first_seen * b.v_stride; i++)
            ((uint16_t *)cache.v)[i] = F16_NAN;
    const struct outputs o =
        outputs_alloc(n_q * (head_dim + 2) * sizeof(float), 4 * rng_below(&c->rng, 16));
    const struct cpu_kernels *k[2] = {c->k, c->ref};
    for (size_t i = 0; i < 2; i++) {
        b.m = o.p[i];
        b.l = b.m + n_q;
        b.o = b.l + n_q;
        (type == CACHE_Q8 ? k[i]->attn_block_q8 : k[i]->attn_block)(&b);
    }
    outputs_compare(c, &o, true, "head_dim %zu, n_q %zu, positions %zu to %zu, pattern %d",
                    head_dim, n_q, b.first_seen, n_seen, (int)p);
    guard_release();
}

static void check_blocks(struct check *c, enum cache_type type)
{
    static const size_t head_dims[] = {2,  4,  6,  16, 30, 32,  34,  48,  62,  64,
                                       66, 80, 96, 98, 99, 100, 112, 128, 256, Q8_DIM_MOST};
    for (enum pattern p = 0; p < N_PATTERNS; p++) {
        for (size_t i = 0; i < sizeof head_dims / sizeof *head_dims; i++)
            for (size_t n_q = 1; n_q <= (head_dims[i] > 256 ? 1 : 9); n_q++)
                block_of(c, type, head_dims[i], n_q, 1 + rng_below(&c->rng, KV_BLOCK), p);
        for (size_t n_seen = 1; n_seen <= KV_BLOCK; n_seen++)
            for (size_t round = 0; round < 4; round++)
                block_of(c, type, 64, 4, n_seen, p);
    }
}

/* m, l and o of all queries are in one output, in this order. */
static void tile_of(struct check *c, enum cache_type type, struct attn_tile t, enum pattern p)
{
    const size_t n_queries = t.n_tokens * t.n_q, n_floats = n_queries * (t.head_dim + 2);
    const size_t n_q = (t.n_tokens - 1) * t.q_stride + t.n_q * t.head_dim;
    const size_t n_seen = size_min(t.n_seen + t.n_tokens - 1, KV_BLOCK);
    float *q = make_queries(c, p, n_q), *start = guard_alloc(n_floats * sizeof *start);
    const struct cache cache = type == CACHE_Q8 ? q8_cache(c, t.head_dim, n_seen, q, n_q)
                                                : f16_cache(c, t.head_dim, n_seen, p, q, n_q);
    /* The kernel reads the last position also for tokens that do not see it. */
    for (size_t i = 0; type == CACHE_F16 && i < t.head_dim && n_seen > t.n_seen; i++)
        ((uint16_t *)cache.v)[(n_seen - 1) * t.v_stride + i] = F16_NAN;
    t.q = q, t.k = t.ahead = cache.k, t.v = cache.v, t.scales = cache.scales;
    t.scratch = guard_alloc(attn_tile_floats(t.n_q, t.v_stride) * sizeof *t.scratch);
    t.out = rng_next(&c->rng) & 1 ? q : NULL; /* only prefetched */
    t.out_stride = rng_below(&c->rng, 100000);
    fill_floats(&c->rng, PATTERN_PLAIN, start, n_floats);
    for (size_t i = 0; i < n_queries; i++)
        start[i] += 0.0f; /* never -0, as the contract of attn_block requires */
    const struct outputs o = outputs_alloc(n_floats * sizeof(float), 4 * rng_below(&c->rng, 16));
    const struct cpu_kernels *k[2] = {c->k, c->ref};
    for (size_t i = 0; i < 2; i++) {
        t.m = o.p[i];
        t.l = t.m + n_queries;
        t.o = t.l + n_queries;
        if (!t.is_first)
            memcpy(t.m, start, n_floats * sizeof *start);
        (type == CACHE_Q8 ? k[i]->attn_tile_q8 : k[i]->attn_tile)(&t);
    }
    outputs_compare(c, &o, true,
                    "%zu tokens, head_dim %zu, n_q %zu, n_seen %zu, n_hidden %zu, %s, pattern %d",
                    t.n_tokens, t.head_dim, t.n_q, t.n_seen, t.n_hidden,
                    t.is_first ? "first" : "later", (int)p);
    guard_release();
}

/* Every kind of tile: all tokens see the whole block, or some do, or none. */
static void check_tiles(struct check *c, enum cache_type type)
{
    static const size_t head_dims[] = {2, 16, 34, 64, 80, 100, 128};
    for (enum pattern p = 0; p < N_PATTERNS; p++)
        for (size_t i = 0; i < sizeof head_dims / sizeof *head_dims; i++)
            for (size_t n_q = 1; n_q <= 6; n_q++)
                for (size_t round = 0; round < 4; round++) {
                    const size_t n_tokens = 1 + rng_below(&c->rng, round == 3 ? ATTN_TILE : 7);
                    const struct attn_tile t = {
                        .q_stride = n_q * head_dims[i] + rng_below(&c->rng, 4),
                        .n_tokens = n_tokens,
                        .n_q = n_q,
                        .head_dim = head_dims[i],
                        .v_stride = size_round_up(head_dims[i], 32),
                        .n_seen = round == 0 ? KV_BLOCK : 1 + rng_below(&c->rng, KV_BLOCK),
                        .n_hidden = rng_below(&c->rng, 4) ? 0 : rng_below(&c->rng, 100),
                        .is_first = rng_next(&c->rng) & 1};
                    if (check_selects(c))
                        tile_of(c, type, t, p);
                }
}

static void check_attn_block(struct check *c)
{
    check_blocks(c, CACHE_F16);
}

static void check_attn_block_q8(struct check *c)
{
    check_blocks(c, CACHE_Q8);
}

static void check_attn_tile(struct check *c)
{
    check_tiles(c, CACHE_F16);
}

static void check_attn_tile_q8(struct check *c)
{
    check_tiles(c, CACHE_Q8);
}

const struct check_case attn_cases[] = {
    {"attn_block", check_attn_block},
    {"attn_block_q8", check_attn_block_q8},
    {"attn_tile", check_attn_tile},
    {"attn_tile_q8", check_attn_tile_q8},
    {NULL, NULL},
};
