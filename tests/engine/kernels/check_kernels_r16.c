/*
 * Cases of check_kernels for activations in blocks and for ternary weights in R16.
 */
#include "tests/engine/kernels/check_kernels.h"

#include "engine/base/size.h"

#include <math.h>
#include <string.h>

static void quantise_blocks_n(struct check *c, size_t n, size_t block_cols, enum pattern p)
{
    if (!check_selects(c))
        return;
    float *x = guard_alloc(n * sizeof *x);
    fill_floats(&c->rng, p, x, n);
    if (rng_below(&c->rng, 4) == 0) /* a damaged model must not cause an undefined conversion */
        x[rng_below(&c->rng, n)] = rng_next(&c->rng) & 1 ? NAN : INFINITY;
    if (rng_below(&c->rng, 4) == 0) /* a block of zeros, or of numbers too small to quantise */
        for (size_t i = 0; i < size_min(n, block_cols); i++)
            x[i] = rng_next(&c->rng) & 1 ? 0.0f : 1e-31f;
    const size_t n_cols = size_round_up(n, R16_PAD_COLS), n_blocks = n_cols / block_cols;
    const struct outputs q = outputs_alloc(n_cols, 0);
    const struct outputs units = outputs_alloc(n_blocks * sizeof(float), 4);
    const struct outputs sums = outputs_alloc(n_blocks * sizeof(int32_t), 4);
    c->k->quantise_blocks(x, n, block_cols, q.p[0], units.p[0], sums.p[0]);
    c->ref->quantise_blocks(x, n, block_cols, q.p[1], units.p[1], sums.p[1]);
    outputs_compare(c, &q, false, "q, n %zu in %zu, pattern %d", n, block_cols, (int)p);
    outputs_compare(c, &units, true, "units, n %zu in %zu, pattern %d", n, block_cols, (int)p);
    outputs_compare(c, &sums, false, "sums, n %zu in %zu, pattern %d", n, block_cols, (int)p);
    guard_release();
}

static void check_quantise_blocks(struct check *c)
{
    for (enum pattern p = 0; p < N_PATTERNS; p++)
        for (size_t block_cols = 32; block_cols <= 128; block_cols *= 2)
            for (size_t n = 1; n < 700; n += 1 + n / 8)
                quantise_blocks_n(c, n, block_cols, p);
}

/* A matrix in R16 and the activations of some tokens. */
struct r16_case {
    struct r16_mat w;
    size_t group0, group1;
    struct r16_batch batch; /* without panel and y */
};

static uint8_t any_codes(struct check *c, enum ternary_pattern p)
{
    uint8_t byte = 0;
    for (int i = 0; i < 8; i += 2)
        byte |= (uint8_t)((p == TERNARY_PLAIN ? rng_below(&c->rng, 3) : 2) << i);
    return byte;
}

static int8_t any_q(struct check *c, enum ternary_pattern p)
{
    const int8_t q = (int8_t)((int)rng_below(&c->rng, 255) - 127);
    switch (p) {
    case TERNARY_MAX:
        return 127;
    case TERNARY_MIN:
        return -127;
    case TERNARY_SIGNED:
        return q < 0 ? -127 : 127;
    default:
        return q;
    }
}

static struct r16_mat make_weights(struct check *c, size_t n_groups, size_t n_spans128,
                                   enum ternary_pattern p)
{
    const bool is_wide = rng_next(&c->rng) & 1, has_scales = rng_below(&c->rng, 4) > 0;
    struct r16_mat w = {.n_groups = n_groups,
                        .n_lines = n_spans128 * R16_PAD_COLS / R16_LINE_COLS,
                        .span_cols = is_wide ? 128 : 64,
                        .scale_step = has_scales ? R16_ROWS : 0};
    const size_t n_spans = w.n_lines * R16_LINE_COLS / w.span_cols;
    const size_t n_scales = (has_scales ? n_groups * n_spans : 1) * R16_ROWS;
    uint8_t *lines = guard_alloc(n_groups * w.n_lines * LINE_BYTES);
    uint16_t *scales = guard_alloc(n_scales * sizeof *scales);
    for (size_t i = 0; i < n_groups * w.n_lines * LINE_BYTES; i++)
        lines[i] = any_codes(c, p);
    for (size_t i = 0; i < n_scales; i++) /* positive and negative, subnormal and large */
        scales[i] = (uint16_t)((rng_next(&c->rng) & 0x8000) | rng_below(&c->rng, 0x7800));
    w.lines = lines;
    w.scales = scales;
    return w;
}

static struct r16_batch make_tokens(struct check *c, const struct r16_mat *w, size_t n_tokens,
                                    enum ternary_pattern p)
{
    const size_t most = w->span_cols == 128 ? 3 : 2, n_cols = w->n_lines * R16_LINE_COLS;
    const size_t block_cols = (size_t)32 << rng_below(&c->rng, most);
    const size_t n_blocks = n_cols / block_cols, q_stride = n_cols + 64 * rng_below(&c->rng, 2);
    int8_t *q = guard_alloc(size_round_up(n_tokens, 16) * q_stride);
    float *units = guard_alloc(n_tokens * n_blocks * sizeof *units);
    int32_t *q_sums = guard_alloc(n_tokens * n_blocks * sizeof *q_sums);
    fill_floats(&c->rng, rng_below(&c->rng, 3) ? PATTERN_PLAIN : PATTERN_MIXED, units,
                n_tokens * n_blocks);
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t i = 0; i < n_cols; i++) {
            q[t * q_stride + i] = any_q(c, p);
            q_sums[t * n_blocks + i / block_cols] += q[t * q_stride + i];
        }
    return (struct r16_batch){.q = q,
                              .units = units,
                              .q_sums = q_sums,
                              .q_stride = q_stride,
                              .block_stride = n_blocks,
                              .block_cols = block_cols,
                              .n_tokens = n_tokens};
}

static void fill_both(struct check *c, const struct outputs *o)
{
    fill_floats(&c->rng, PATTERN_PLAIN, o->p[0], o->n_bytes / sizeof(float));
    memcpy(o->p[1], o->p[0], o->n_bytes);
}

static void matvec_of(struct check *c, size_t n_groups, size_t n_spans, enum ternary_pattern p)
{
    if (!check_selects(c))
        return;
    const struct r16_mat w = make_weights(c, n_groups, n_spans, p);
    const struct r16_batch b = make_tokens(c, &w, 1, p);
    const struct block_acts x = {b.q, b.units, b.q_sums, b.block_cols};
    const size_t group0 = rng_below(&c->rng, n_groups);
    const struct outputs o =
        outputs_alloc((n_groups - group0) * R16_ROWS * sizeof(float), 4 * rng_below(&c->rng, 16));
    fill_both(c, &o);
    c->k->r16_matvec(&w, group0, n_groups, &x, o.p[0]);
    c->ref->r16_matvec(&w, group0, n_groups, &x, o.p[1]);
    outputs_compare(c, &o, true, "groups %zu to %zu, %zu spans of %zu, blocks of %zu, pattern %d",
                    group0, n_groups, n_spans, w.span_cols, x.block_cols, (int)p);
    guard_release();
}

static void check_r16_matvec(struct check *c)
{
    for (enum ternary_pattern p = 0; p < N_TERNARY_PATTERNS; p++) {
        for (size_t n_groups = 1; n_groups <= 13; n_groups++)
            for (size_t n_spans = 1; n_spans <= 20; n_spans += 1 + n_spans / 3)
                matvec_of(c, n_groups, n_spans, p);
        matvec_of(c, 5, 96, p);
    }
}

static void matmul_of(struct check *c, size_t n_groups, size_t n_spans, size_t n_tokens,
                      enum ternary_pattern p)
{
    if (!check_selects(c))
        return;
    const struct r16_mat w = make_weights(c, n_groups, n_spans, p);
    const struct r16_batch b = make_tokens(c, &w, n_tokens, p);
    const size_t group0 = rng_below(&c->rng, n_groups);
    const size_t group1 = size_min(group0 + 1 + rng_below(&c->rng, R16_PANEL), n_groups);
    const size_t stride = R16_ROWS * (group1 - group0 + rng_below(&c->rng, 2));
    const size_t n_bytes = ((n_tokens - 1) * stride + R16_ROWS * (group1 - group0)) * sizeof(float);
    const struct outputs o = outputs_alloc(n_bytes, 64 * rng_below(&c->rng, 2));
    uint8_t *panel = guard_alloc(R16_PANEL * w.n_lines * 4 * LINE_BYTES);
    fill_both(c, &o);
    for (size_t i = 0; i < 2; i++) {
        const struct r16_gemm *gemm = i == 0 ? &c->k->r16 : &c->ref->r16;
        struct r16_batch batch = b;
        batch.panel = panel;
        batch.y = o.p[i];
        batch.y_stride = stride;
        gemm->unpack(&w, group0, group1, panel);
        gemm->matmul(&w, group0, group1, &batch);
    }
    outputs_compare(c, &o, true,
                    "groups %zu to %zu, %zu spans of %zu, blocks of %zu, %zu tokens, pattern %d",
                    group0, group1, n_spans, w.span_cols, b.block_cols, n_tokens, (int)p);
    guard_release();
}

static void check_r16_matmul(struct check *c)
{
    for (enum ternary_pattern p = 0; p < N_TERNARY_PATTERNS; p++) {
        for (size_t n_tokens = 1; n_tokens <= R16_TOKENS; n_tokens++)
            for (size_t n_spans = 1; n_spans <= 9; n_spans += 2)
                matmul_of(c, 1 + rng_below(&c->rng, 4), n_spans, n_tokens, p);
        matmul_of(c, 2, 40, R16_TOKENS, p);
    }
}

const struct check_case r16_cases[] = {
    {"quantise_blocks", check_quantise_blocks},
    {"r16_matvec", check_r16_matvec},
    {"r16_matmul", check_r16_matmul},
    {NULL, NULL},
};
