/*
 * Cases of check_kernels for the kernels that work on vectors: norms, quantising, gates, RoPE,
 * conversions, sums.
 */
#include "tests/engine/kernels/check_kernels.h"

#include <math.h>
#include <string.h>

#define MAX_N 300

/* Lengths from 1 to 300: all small ones, then steps that hit each remainder of 64. */
static size_t next_n(size_t n)
{
    return n < 70 ? n + 1 : n + 7;
}

static float *floats(struct check *c, enum pattern p, size_t n)
{
    float *x = guard_alloc(n * sizeof *x);
    fill_floats(&c->rng, p, x, n);
    return x;
}

static size_t any_offset(struct check *c)
{
    return rng_below(&c->rng, 16) * sizeof(float);
}

static void rms_norm_n(struct check *c, size_t n, enum pattern p)
{
    const float *x = floats(c, p, n), *w = floats(c, PATTERN_PLAIN, n);
    const struct outputs o = outputs_alloc(n * sizeof(float), any_offset(c));
    c->k->rms_norm(x, w, n, 1e-5f, o.p[0]);
    c->ref->rms_norm(x, w, n, 1e-5f, o.p[1]);
    outputs_compare(c, &o, true, "n %zu, pattern %d", n, (int)p);

    const struct outputs in_place = outputs_alloc(n * sizeof(float), any_offset(c));
    memcpy(in_place.p[0], x, n * sizeof(float));
    memcpy(in_place.p[1], x, n * sizeof(float));
    c->k->rms_norm(in_place.p[0], w, n, 1e-6f, in_place.p[0]);
    c->ref->rms_norm(in_place.p[1], w, n, 1e-6f, in_place.p[1]);
    outputs_compare(c, &in_place, true, "in place, n %zu, pattern %d", n, (int)p);
    guard_release();
}

/* The second transform is written over its input. */
static void rotate_n(struct check *c, size_t n, size_t block, enum pattern p)
{
    const float *x = floats(c, p, n), *const noise = floats(c, PATTERN_PLAIN, n);
    float *signs = guard_alloc(n * sizeof *signs);
    for (size_t i = 0; i < n; i++)
        signs[i] = noise[i] < 0.0f ? -1.0f : 1.0f;
    const float *const s = rng_next(&c->rng) & 1 ? signs : NULL;
    const struct outputs o = outputs_alloc(n * sizeof(float), any_offset(c));
    c->k->rotate(x, s, n, block, o.p[0]);
    c->ref->rotate(x, s, n, block, o.p[1]);
    outputs_compare(c, &o, true, "n %zu, block %zu, pattern %d", n, block, (int)p);

    const struct outputs in_place = outputs_alloc(n * sizeof(float), any_offset(c));
    memcpy(in_place.p[0], x, n * sizeof(float));
    memcpy(in_place.p[1], x, n * sizeof(float));
    c->k->rotate(in_place.p[0], s, n, block, in_place.p[0]);
    c->ref->rotate(in_place.p[1], s, n, block, in_place.p[1]);
    outputs_compare(c, &in_place, true, "in place, n %zu, block %zu", n, block);
    guard_release();
}

static void check_rotate(struct check *c)
{
    for (enum pattern p = 0; p < N_PATTERNS; p++)
        for (size_t block = ROTATION_MIN; block <= ROTATION_MAX; block *= 2)
            for (size_t i = 1; i <= 5; i++)
                if (block <= 256 || i <= 2 || check_selects(c))
                    rotate_n(c, i * block, block, p);
}

static void quantise_n(struct check *c, size_t n, enum pattern p)
{
    float *x = floats(c, p, n);
    if (rng_below(&c->rng, 4) == 0) /* a damaged model must not cause an undefined conversion */
        x[rng_below(&c->rng, n)] = rng_next(&c->rng) & 1 ? NAN : INFINITY;
    const float *const weights[] = {NULL, floats(c, PATTERN_PLAIN, n)};
    const size_t q_bytes = (n + LINE_COLS - 1) / LINE_COLS * LINE_COLS;
    for (size_t i = 0; i < 2; i++) { /* `ahead` may be any address */
        const struct act_in in = {.x = x,
                                  .w = weights[i],
                                  .n = n,
                                  .eps = 1e-5f,
                                  .ahead = rng_next(&c->rng) & 1 ? x : NULL};
        const struct outputs o = outputs_alloc(q_bytes, 0);
        const struct outputs s = outputs_alloc(sizeof(struct act_scale), 0);
        c->k->quantise(&in, o.p[0], s.p[0]);
        c->ref->quantise(&in, o.p[1], s.p[1]);
        outputs_compare(c, &o, false, "n %zu, pattern %d, %zu", n, (int)p, i);
        outputs_compare(c, &s, false, "scale and sum, n %zu, pattern %d, %zu", n, (int)p, i);
    }
    guard_release();
}

static void gate_n(struct check *c, gate_fn k, gate_fn ref, size_t n, enum pattern p)
{
    const float span = rng_next(&c->rng) & 1 ? 20.0f : 1.0f; /* exp0 cuts off before 4 * 20 */
    float *gate = floats(c, p, n);
    const float *up = floats(c, PATTERN_MIXED, n);
    for (size_t i = 0; i < n; i++)
        gate[i] *= span;
    const struct outputs o = outputs_alloc(n * sizeof(float), any_offset(c));
    k(gate, up, n, o.p[0]);
    ref(gate, up, n, o.p[1]);
    outputs_compare(c, &o, true, "n %zu, pattern %d", n, (int)p);

    memcpy(o.p[0], gate, n * sizeof(float));
    memcpy(o.p[1], gate, n * sizeof(float));
    k(o.p[0], up, n, o.p[0]);
    ref(o.p[1], up, n, o.p[1]);
    outputs_compare(c, &o, true, "in place, n %zu, pattern %d", n, (int)p);
    guard_release();
}

static void relu2_n(struct check *c, size_t n, enum pattern p)
{
    gate_n(c, c->k->relu2_gate, c->ref->relu2_gate, n, p);
}

static void silu_n(struct check *c, size_t n, enum pattern p)
{
    gate_n(c, c->k->silu_gate, c->ref->silu_gate, n, p);
}

static void sigmoid_n(struct check *c, size_t n, enum pattern p)
{
    gate_n(c, c->k->sigmoid_gate, c->ref->sigmoid_gate, n, p);
}

static void unit_norm_n(struct check *c, size_t n, enum pattern p)
{
    const float *x = floats(c, p, n);
    const float eps = rng_next(&c->rng) & 1 ? 1e-6f : 100.0f; /* below and above most lengths */
    const struct outputs o = outputs_alloc(n * sizeof(float), any_offset(c));
    c->k->unit_norm(x, n, eps, 0.125f, o.p[0]);
    c->ref->unit_norm(x, n, eps, 0.125f, o.p[1]);
    outputs_compare(c, &o, true, "n %zu, pattern %d", n, (int)p);

    memcpy(o.p[0], x, n * sizeof(float));
    memcpy(o.p[1], x, n * sizeof(float));
    c->k->unit_norm(o.p[0], n, eps, 1.0f, o.p[0]);
    c->ref->unit_norm(o.p[1], n, eps, 1.0f, o.p[1]);
    outputs_compare(c, &o, true, "in place, n %zu, pattern %d", n, (int)p);
    guard_release();
}

static void conv_silu_n(struct check *c, size_t n, enum pattern p)
{
    const float *w = floats(c, PATTERN_PLAIN, DELTA_TAPS * n);
    const float *x[DELTA_TAPS];
    for (size_t i = 0; i < DELTA_TAPS; i++)
        x[i] = floats(c, i % 2 == 0 ? p : PATTERN_MIXED, n);
    const struct outputs o = outputs_alloc(n * sizeof(float), any_offset(c));
    c->k->conv_silu(x, w, n, n, o.p[0]);
    c->ref->conv_silu(x, w, n, n, o.p[1]);
    outputs_compare(c, &o, true, "n %zu, pattern %d", n, (int)p);

    memcpy(o.p[0], x[DELTA_TAPS - 1], n * sizeof(float));
    memcpy(o.p[1], x[DELTA_TAPS - 1], n * sizeof(float));
    x[DELTA_TAPS - 1] = o.p[0];
    c->k->conv_silu(x, w, n, n, o.p[0]);
    x[DELTA_TAPS - 1] = o.p[1];
    c->ref->conv_silu(x, w, n, n, o.p[1]);
    outputs_compare(c, &o, true, "in place, n %zu, pattern %d", n, (int)p);
    guard_release();
}

/* n_tokens of one head through a state, in place and into another state. */
static void delta_run_of(struct check *c, size_t dim, size_t n_tokens, enum pattern p, bool moves)
{
    const size_t gap = rng_below(&c->rng, 3), stride = 3 * dim + gap;
    const size_t n_gates = rng_below(&c->rng, 2) + 1, out_stride = dim + gap;
    const float *x = floats(c, p, n_tokens * stride), *from = floats(c, PATTERN_PLAIN, dim * dim);
    struct delta_gate *gates = guard_alloc(n_tokens * n_gates * sizeof *gates);
    for (size_t i = 0; i < n_tokens * n_gates; i++)
        gates[i] = (struct delta_gate){(float)rng_below(&c->rng, 1001) / 1000.0f,
                                       (float)rng_below(&c->rng, 1001) / 1000.0f};
    const struct outputs o = outputs_alloc(n_tokens * out_stride * sizeof(float), any_offset(c));
    const struct outputs states = outputs_alloc(dim * dim * sizeof(float), 0);
    for (size_t i = 0; i < 2; i++) {
        memset(o.p[i], 0, n_tokens * out_stride * sizeof(float));
        memcpy(states.p[i], from, dim * dim * sizeof(float));
        (i == 0 ? c->k : c->ref)
            ->delta_run(&(struct delta_run){.q = x,
                                            .k = x + dim,
                                            .v = x + 2 * dim,
                                            .stride = stride,
                                            .gates = gates,
                                            .gate_stride = n_gates,
                                            .n_tokens = n_tokens,
                                            .dim = dim,
                                            .from = moves ? from : states.p[i],
                                            .to = states.p[i],
                                            .out = o.p[i],
                                            .out_stride = out_stride});
    }
    outputs_compare(c, &o, true, "results, dim %zu, tokens %zu, pattern %d", dim, n_tokens, (int)p);
    outputs_compare(c, &states, true, "state, dim %zu, tokens %zu, pattern %d", dim, n_tokens,
                    (int)p);
    guard_release();
}

static void check_delta_run(struct check *c)
{
    static const size_t dims[] = {16, 32, 48, 64, 80, 96, 128, 144, 256};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
        for (size_t n = 1; n <= 5; n += 2)
            for (enum pattern p = 0; p < N_PATTERNS; p++)
                if (check_selects(c))
                    delta_run_of(c, dims[i], n, p, n != 3);
}

static void add_n(struct check *c, size_t n, enum pattern p)
{
    const float *h = floats(c, PATTERN_MIXED, n), *y = floats(c, p, n);
    const struct outputs o = outputs_alloc(n * sizeof(float), any_offset(c));
    memcpy(o.p[0], h, n * sizeof(float));
    memcpy(o.p[1], h, n * sizeof(float));
    c->k->add(o.p[0], y, n);
    c->ref->add(o.p[1], y, n);
    outputs_compare(c, &o, true, "n %zu, pattern %d", n, (int)p);
    guard_release();
}

static void scale_acc_n(struct check *c, size_t n, enum pattern p)
{
    int32_t *acc = guard_alloc(n * sizeof *acc);
    float d;
    fill_floats(&c->rng, p, &d, 1);
    for (size_t i = 0; i < n; i++)
        acc[i] = (int32_t)rng_next(&c->rng) >> rng_below(&c->rng, 32);
    const struct outputs o = outputs_alloc(n * sizeof(float), any_offset(c));
    c->k->scale_acc(acc, n, d, o.p[0]);
    c->ref->scale_acc(acc, n, d, o.p[1]);
    outputs_compare(c, &o, true, "n %zu, pattern %d", n, (int)p);
    guard_release();
}

/* Sums of up to 40 tokens, n rows each, with or without a bias. */
static struct acc_tile acc_tile_of(struct check *c, size_t n_tokens, size_t n, enum pattern p)
{
    const size_t stride = n + rng_below(&c->rng, 5), n_acc = (n_tokens - 1) * stride + n;
    int32_t *acc = guard_alloc(n_acc * sizeof *acc);
    for (size_t i = 0; i < n_acc; i++)
        acc[i] = (int32_t)rng_next(&c->rng) >> rng_below(&c->rng, 32);
    struct acc_tile a = {.acc = acc,
                         .acc_stride = stride,
                         .n_tokens = n_tokens,
                         .n_rows = n,
                         .d = floats(c, p, n_tokens),
                         .extra = rng_next(&c->rng) & 1 ? 1.0f : 0.37f};
    if (rng_next(&c->rng) & 1)
        a.bias = floats(c, PATTERN_MIXED, n);
    return a;
}

/* Both outputs start equal, for acc_add. Rows are `gap` elements apart, and the gaps must not
 * change. */
static struct outputs acc_outputs(struct check *c, const struct acc_tile *a, size_t gap)
{
    const size_t n = (a->n_tokens - 1) * (a->n_rows + gap) + a->n_rows;
    const struct outputs o = outputs_alloc(n * sizeof(float), any_offset(c));
    const float *start = floats(c, PATTERN_MIXED, n);
    memcpy(o.p[0], start, n * sizeof *start);
    memcpy(o.p[1], start, n * sizeof *start);
    return o;
}

static void acc_out_n(struct check *c, acc_out_fn k, acc_out_fn ref, size_t n, enum pattern p)
{
    const size_t gap = rng_below(&c->rng, 3);
    const struct acc_tile a = acc_tile_of(c, 1 + rng_below(&c->rng, 40), n, p);
    const struct outputs o = acc_outputs(c, &a, gap);
    k(&a, o.p[0], n + gap);
    ref(&a, o.p[1], n + gap);
    outputs_compare(c, &o, true, "n %zu, %zu tokens, pattern %d", n, a.n_tokens, (int)p);
    guard_release();
}

static void acc_gate_n(struct check *c, acc_gate_fn k, acc_gate_fn ref, size_t n, enum pattern p)
{
    const size_t n_tokens = 1 + rng_below(&c->rng, 40), gap = rng_below(&c->rng, 3);
    const struct acc_tile gate = acc_tile_of(c, n_tokens, n, p);
    const struct acc_tile up = acc_tile_of(c, n_tokens, n, PATTERN_PLAIN);
    const struct outputs o = acc_outputs(c, &gate, gap);
    k(&gate, &up, o.p[0], n + gap);
    ref(&gate, &up, o.p[1], n + gap);
    outputs_compare(c, &o, true, "n %zu, %zu tokens, pattern %d", n, n_tokens, (int)p);
    guard_release();
}

static void acc_store_n(struct check *c, size_t n, enum pattern p)
{
    acc_out_n(c, c->k->acc_store, c->ref->acc_store, n, p);
}

static void acc_add_n(struct check *c, size_t n, enum pattern p)
{
    acc_out_n(c, c->k->acc_add, c->ref->acc_add, n, p);
}

static void acc_relu2_n(struct check *c, size_t n, enum pattern p)
{
    acc_gate_n(c, c->k->acc_relu2, c->ref->acc_relu2, n, p);
}

static void acc_silu_n(struct check *c, size_t n, enum pattern p)
{
    acc_gate_n(c, c->k->acc_silu, c->ref->acc_silu, n, p);
}

static void rope_n(struct check *c, rope_fn k, rope_fn ref, size_t n, enum pattern p)
{
    const size_t n_rot = 2 * n;
    const float *x = floats(c, p, n_rot), *cosines = floats(c, PATTERN_PLAIN, n);
    const float *sines = floats(c, PATTERN_PLAIN, n);
    const struct outputs o = outputs_alloc(n_rot * sizeof(float), any_offset(c));
    memcpy(o.p[0], x, n_rot * sizeof(float));
    memcpy(o.p[1], x, n_rot * sizeof(float));
    k(o.p[0], cosines, sines, n_rot);
    ref(o.p[1], cosines, sines, n_rot);
    outputs_compare(c, &o, true, "n_rot %zu, pattern %d", n_rot, (int)p);
    guard_release();
}

static void rope_neox_n(struct check *c, size_t n, enum pattern p)
{
    rope_n(c, c->k->rope_neox, c->ref->rope_neox, n, p);
}

static void rope_norm_n(struct check *c, size_t n, enum pattern p)
{
    rope_n(c, c->k->rope_norm, c->ref->rope_norm, n, p);
}

static void to_f16_n(struct check *c, size_t n, enum pattern p)
{
    float *x = floats(c, p, n);
    for (size_t i = 0; i < n; i++)
        if (rng_below(&c->rng, 4) == 0) /* near the largest F16, and where F16 is subnormal */
            x[i] =
                rng_next(&c->rng) & 1 ? 65490.0f + (float)rng_below(&c->rng, 40) : x[i] * 0x1p-20f;
    const struct outputs o = outputs_alloc(n * sizeof(uint16_t), 2 * rng_below(&c->rng, 16));
    c->k->to_f16(x, n, o.p[0]);
    c->ref->to_f16(x, n, o.p[1]);
    outputs_compare(c, &o, false, "n %zu, pattern %d", n, (int)p);
    guard_release();
}

static void attn_finish_n(struct check *c, size_t n, enum pattern p)
{
    const float *big_o = floats(c, p, n);
    const float l = 0.5f + (float)rng_below(&c->rng, 1000) / 7;
    const struct outputs o = outputs_alloc(n * sizeof(float), any_offset(c));
    c->k->attn_finish(big_o, l, n, o.p[0]);
    c->ref->attn_finish(big_o, l, n, o.p[1]);
    outputs_compare(c, &o, true, "n %zu, pattern %d", n, (int)p);
    guard_release();
}

/* M, L and O are in one output, in this order. */
static void attn_merge_n(struct check *c, size_t n, enum pattern p)
{
    const size_t n_bytes = (n + 2) * sizeof(float);
    float *start = floats(c, p, n + 2);
    const float *o_block = floats(c, PATTERN_MIXED, n);
    float m, l = 1 + (float)rng_below(&c->rng, 64);
    fill_floats(&c->rng, rng_next(&c->rng) & 1 ? p : PATTERN_MIXED, &m, 1);
    if (rng_next(&c->rng) & 1)
        m = start[0] + (float)(int32_t)rng_next(&c->rng) * 0x1p-25f; /* at most 64 from start[0] */
    m += 0.0f; /* never -0, as the contract of attn_block requires */
    start[0] += 0.0f;
    const struct outputs o = outputs_alloc(n_bytes, any_offset(c));
    const attn_merge_fn merge[2] = {c->k->attn_merge, c->ref->attn_merge};
    for (size_t i = 0; i < 2; i++) {
        float *out = o.p[i];
        memcpy(out, start, n_bytes);
        merge[i](out, out + 1, out + 2, &m, &l, o_block, n);
    }
    outputs_compare(c, &o, true, "n %zu, pattern %d, m %g into %g", n, (int)p, (double)m,
                    (double)start[0]);
    guard_release();
}

#define OVER_N(kernel)                                                                             \
    static void check_##kernel(struct check *c)                                                    \
    {                                                                                              \
        for (enum pattern p = 0; p < N_PATTERNS; p++) {                                            \
            for (size_t n = 1; n <= MAX_N; n = next_n(n))                                          \
                if (check_selects(c))                                                              \
                    kernel##_n(c, n, p);                                                           \
            kernel##_n(c, 2560, p);                                                                \
            kernel##_n(c, 6912, p);                                                                \
        }                                                                                          \
    }

OVER_N(rms_norm)
OVER_N(quantise)
OVER_N(relu2)
OVER_N(silu)
OVER_N(sigmoid)
OVER_N(unit_norm)
OVER_N(conv_silu)
OVER_N(add)
OVER_N(scale_acc)
OVER_N(acc_store)
OVER_N(acc_add)
OVER_N(acc_relu2)
OVER_N(acc_silu)
OVER_N(rope_neox)
OVER_N(rope_norm)
OVER_N(to_f16)
OVER_N(attn_finish)
OVER_N(attn_merge)

const struct check_case vector_cases[] = {
    {"rms_norm", check_rms_norm},
    {"rotate", check_rotate},
    {"quantise", check_quantise},
    {"relu2_gate", check_relu2},
    {"silu_gate", check_silu},
    {"sigmoid_gate", check_sigmoid},
    {"unit_norm", check_unit_norm},
    {"conv_silu", check_conv_silu},
    {"delta_run", check_delta_run},
    {"add", check_add},
    {"scale_acc", check_scale_acc},
    {"acc_store", check_acc_store},
    {"acc_add", check_acc_add},
    {"acc_relu2", check_acc_relu2},
    {"acc_silu", check_acc_silu},
    {"rope_neox", check_rope_neox},
    {"rope_norm", check_rope_norm},
    {"to_f16", check_to_f16},
    {"attn_finish", check_attn_finish},
    {"attn_merge", check_attn_merge},
    {NULL, NULL},
};
