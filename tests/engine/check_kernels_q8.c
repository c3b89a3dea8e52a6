/*
 * Cases of check_kernels for attention with a Q8 cache: ragged heads and blocks, the largest bytes
 * and numbers, scales of any size, and NaN at unseen positions.
 */
#include "engine/base/size.h"
#include "tests/engine/check_kernels.h"

#include <math.h>
#include <string.h>

/* The cache of one position block. */
struct cache {
    int8_t *k, *v;
    float *scales;
    size_t k_bytes, v_bytes;
};

enum bytes { BYTES_ANY, BYTES_MOST, BYTES_LEAST, N_BYTES };

static void fill_bytes(struct check *c, enum bytes kind, int8_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = kind == BYTES_MOST    ? 127
               : kind == BYTES_LEAST ? -127
                                     : (int8_t)((int)rng_below(&c->rng, 255) - 127);
}

static struct cache cache_of(struct check *c, size_t head_dim, size_t v_stride, size_t n_seen,
                             enum bytes kind)
{
    struct cache b = {.k_bytes = size_round_up(head_dim, ATTN_QUAD) * ATTN_BLOCK,
                      .v_bytes = v_stride * ATTN_BLOCK};
    b.k = guard_alloc(b.k_bytes);
    b.v = guard_alloc(b.v_bytes);
    b.scales = guard_alloc(2 * ATTN_BLOCK * sizeof *b.scales);
    fill_bytes(c, kind, b.k, b.k_bytes);
    fill_bytes(c, kind, b.v, b.v_bytes);
    for (size_t i = head_dim; i % ATTN_QUAD; i++)
        for (size_t j = 0; j < ATTN_BLOCK; j++)
            b.k[(i / ATTN_QUAD * ATTN_BLOCK + j) * ATTN_QUAD + i % ATTN_QUAD] = 0;
    const int spread = (int)rng_below(&c->rng, 30);
    for (size_t j = 0; j < 2 * ATTN_BLOCK; j++)
        b.scales[j] = j % ATTN_BLOCK < n_seen
                          ? ldexpf(1.0f + (float)rng_below(&c->rng, 1000) / 1000.0f,
                                   -(int)rng_below(&c->rng, 1 + (size_t)spread))
                          : NAN; /* unseen positions must not matter */
    return b;
}

static float *queries_of(struct check *c, enum pattern p, size_t n)
{
    float *q = guard_alloc(n * sizeof *q);
    fill_floats(&c->rng, p, q, n);
    if (rng_below(&c->rng, 8) == 0) /* is treated as 0 */
        q[rng_below(&c->rng, n)] = NAN;
    return q;
}

static void block_of(struct check *c, size_t head_dim, size_t n_q, size_t n_seen, enum pattern p)
{
    if (!check_selects(c))
        return;
    struct attn_block b = {.n_q = n_q,
                           .head_dim = head_dim,
                           .v_stride = size_round_up(head_dim, 32),
                           .n_seen = n_seen};
    const enum bytes kind = rng_below(&c->rng, 4) ? BYTES_ANY : rng_below(&c->rng, N_BYTES);
    const struct cache cache = cache_of(c, head_dim, b.v_stride, n_seen, kind);
    b.q = queries_of(c, p, n_q * head_dim);
    b.k = b.ahead = cache.k, b.v = cache.v, b.scales = cache.scales;
    const struct outputs o =
        outputs_alloc(n_q * (head_dim + 2) * sizeof(float), 4 * rng_below(&c->rng, 16));
    const attn_block_fn run[2] = {c->k->attn_block_q8, c->ref->attn_block_q8};
    for (size_t i = 0; i < 2; i++) {
        b.m = (float *)(void *)o.p[i];
        b.l = b.m + n_q;
        b.o = b.l + n_q;
        run[i](&b);
    }
    outputs_compare(c, &o, true, "head_dim %zu, n_q %zu, n_seen %zu, pattern %d, bytes %d",
                    head_dim, n_q, n_seen, (int)p, (int)kind);
    guard_release();
}

static void check_blocks(struct check *c)
{
    static const size_t head_dims[] = {2,  4,  6,  16, 30, 32,  34,  48,  62,  64,
                                       66, 80, 96, 98, 99, 100, 112, 128, 256, Q8_DIM_MOST};
    for (enum pattern p = 0; p < N_PATTERNS; p++) {
        for (size_t i = 0; i < sizeof head_dims / sizeof *head_dims; i++)
            for (size_t n_q = 1; n_q <= (head_dims[i] > 256 ? 1 : 7); n_q++)
                block_of(c, head_dims[i], n_q, 1 + rng_below(&c->rng, ATTN_BLOCK), p);
        for (size_t n_seen = 1; n_seen <= ATTN_BLOCK; n_seen++)
            block_of(c, 64, 4, n_seen, p);
    }
}

static void tile_of(struct check *c, struct attn_tile t, enum pattern p)
{
    const size_t n_queries = t.n_tokens * t.n_q, n_floats = n_queries * (t.head_dim + 2);
    const size_t n_seen = size_min(t.n_seen + t.n_tokens - 1, ATTN_BLOCK);
    const struct cache cache = cache_of(c, t.head_dim, t.v_stride, n_seen, BYTES_ANY);
    float *start = guard_alloc(n_floats * sizeof *start);
    t.q = queries_of(c, p, (t.n_tokens - 1) * t.q_stride + t.n_q * t.head_dim);
    t.scratch = guard_alloc(attn_tile_floats(t.n_q, t.v_stride) * sizeof *t.scratch);
    fill_floats(&c->rng, PATTERN_PLAIN, start, n_floats);
    for (size_t i = 0; i < n_queries; i++)
        start[i] += 0.0f; /* never -0, as the contract of attn_block requires */
    t.k = t.ahead = cache.k, t.v = cache.v, t.scales = cache.scales;
    const struct outputs o = outputs_alloc(n_floats * sizeof(float), 4 * rng_below(&c->rng, 16));
    const attn_tile_fn run[2] = {c->k->attn_tile_q8, c->ref->attn_tile_q8};
    for (size_t i = 0; i < 2; i++) {
        t.m = (float *)(void *)o.p[i];
        t.l = t.m + n_queries;
        t.o = t.l + n_queries;
        memcpy(t.m, start, n_floats * sizeof *start);
        run[i](&t);
    }
    outputs_compare(c, &o, true, "%zu tokens, head_dim %zu, n_q %zu, n_seen %zu, pattern %d",
                    t.n_tokens, t.head_dim, t.n_q, t.n_seen, (int)p);
    guard_release();
}

static void check_tiles(struct check *c)
{
    static const size_t head_dims[] = {2, 34, 64, 100, 128};
    for (enum pattern p = 0; p < N_PATTERNS; p++)
        for (size_t i = 0; i < sizeof head_dims / sizeof *head_dims; i++)
            for (size_t n_q = 1; n_q <= 6; n_q++) {
                const struct attn_tile t = {.q_stride = n_q * head_dims[i] + rng_below(&c->rng, 4),
                                            .n_tokens = 1 + rng_below(&c->rng, 7),
                                            .n_q = n_q,
                                            .head_dim = head_dims[i],
                                            .v_stride = size_round_up(head_dims[i], 32),
                                            .n_seen = 1 + rng_below(&c->rng, ATTN_BLOCK),
                                            .is_first = rng_next(&c->rng) & 1};
                if (check_selects(c))
                    tile_of(c, t, p);
            }
}

const struct check_case q8_cases[] = {
    {"attn_block_q8", check_blocks},
    {"attn_tile_q8", check_tiles},
    {NULL, NULL},
};
