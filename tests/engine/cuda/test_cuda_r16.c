/*
 * Compares the kernels for weights in R16 with engine/cpu/ref, byte for byte, on the twin (the
 * kernels compiled for the host). The twin runs the threads of a block in ascending or in
 * descending order, and no result may depend on this order. Shapes are small and irregular.
 */
#include "engine/base/fp16.h"
#include "engine/base/size.h"
#include "engine/cpu/ref/kernels_ref.h"
#include "tests/engine/cuda/twin_kit.h"

#include <math.h>

#define UNTOUCHED 77 /* initial value of bytes that a kernel must overwrite */

/* Inputs of n_tokens tokens, as a pass has them. Free with free_inputs. */
static struct block_inputs make_inputs(size_t n_cols, uint32_t block_cols, uint32_t n_planes,
                                       size_t n_tokens)
{
    const size_t q_stride = size_round_up(n_cols, LINE_COLS), n_blocks = q_stride / 32;
    struct block_inputs in = {.q_stride = (uint32_t)q_stride,
                              .block_stride = (uint32_t)n_blocks,
                              .block_cols = block_cols,
                              .n_planes = n_planes};
    in.x = zeros(n_tokens * q_stride, sizeof(float));
    for (size_t p = 0; p < MAX_PLANES; p++) {
        in.q[p] = zeros(n_tokens, q_stride);
        in.units[p] = zeros(n_tokens * n_blocks, sizeof(float));
        in.q_sums[p] = zeros(n_tokens * n_blocks, sizeof(int32_t));
        memset(in.q[p], UNTOUCHED, n_tokens * q_stride);
    }
    return in;
}

static void free_inputs(const struct block_inputs *in)
{
    mem_free(in->x);
    for (size_t p = 0; p < MAX_PLANES; p++) {
        mem_free(in->q[p]);
        mem_free(in->units[p]);
        mem_free(in->q_sums[p]);
    }
}

/* The planes of one token, quantised by the reference. */
static void reference_blocks(const float *x, size_t n, const struct block_inputs *to)
{
    struct block_plane planes[MAX_PLANES];
    for (size_t p = 0; p < MAX_PLANES; p++)
        planes[p] = (struct block_plane){to->q[p], to->units[p], to->q_sums[p]};
    if (to->n_planes == 2)
        quantise_planes_ref(x, n, to->block_cols, planes);
    else
        quantise_blocks_ref(x, n, to->block_cols, to->q[0], to->units[0], to->q_sums[0]);
}

static void check_quantise(size_t n, uint32_t block_cols, uint32_t n_planes, bool normed,
                           enum twin_order order)
{
    enum { TOKENS = 3 };
    struct random r = {n + block_cols};
    const size_t stride = size_round_up(n, 16), n_cols = size_round_up(n, R16_PAD_COLS);
    const size_t n_blocks = n_cols / block_cols;
    float *x = floats(&r, TOKENS * stride), *w = floats(&r, n), *y = zeros(n, sizeof *y);
    x[stride] = normed ? 1.0f : NAN; /* in token 1 */
    for (size_t i = 0; i < size_min(n, block_cols); i++)
        x[2 * stride + i] = 1e-31f; /* a block that is too small to quantise */
    const struct block_inputs out = make_inputs(n, block_cols, n_planes, TOKENS);
    const struct block_inputs ref = make_inputs(n, block_cols, n_planes, 1);
    const struct blocks_args a = {.x = x,
                                  .w = normed ? w : NULL,
                                  .out = out,
                                  .eps = 1e-5f,
                                  .n = (uint32_t)n,
                                  .x_stride = (uint32_t)stride};
    /* one to three thread blocks share a row */
    launch("blocks_quantise", TOKENS, 1 + n_planes, 1, 0, &a, order);
    for (size_t t = 0; t < TOKENS; t++) {
        memcpy(y, x + t * stride, n * sizeof *y);
        if (normed)
            rms_norm_ref(x + t * stride, w, n, 1e-5f, y);
        reference_blocks(y, n, &ref);
        if (n_planes == 0)
            assert_same(out.x + t * out.q_stride, y, n * sizeof *y,
                        "an input that is not quantised");
        for (size_t p = 0; p < n_planes; p++) {
            assert_same(out.q[p] + t * out.q_stride, ref.q[p], n_cols, "q");
            assert_same(out.units[p] + t * out.block_stride, ref.units[p], n_blocks * sizeof(float),
                        "a unit");
            assert_same(out.q_sums[p] + t * out.block_stride, ref.q_sums[p],
                        n_blocks * sizeof(int32_t), "a sum of q");
        }
    }
    free_inputs(&out);
    free_inputs(&ref);
    FREE_ALL(x, w, y);
}

static void quantisation_in_blocks_matches_the_reference(void **state)
{
    (void)state;
    static const size_t widths[] = {1, 31, 128, 129, 300, 1024, 8200};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        for (uint32_t block_cols = 32; block_cols <= 128; block_cols *= 2)
            for (uint32_t n_planes = 0; n_planes <= MAX_PLANES; n_planes++)
                for (int normed = 0; normed < 2; normed++)
                    check_quantise(widths[i], block_cols, n_planes, normed,
                                   (i + block_cols) % 3 ? TWIN_ASCENDING : TWIN_DESCENDING);
}

/* One scale for the whole row: q is that of quantise_ref, and all units are 1 / s. */
static void quantisation_per_token_matches_the_reference(void **state)
{
    (void)state;
    enum { N = 300, COLS = 384 };
    struct random r = {5};
    struct act_scale scale;
    int8_t q[LINE_COLS * 2];
    float *x = floats(&r, N), *w = floats(&r, N);
    const struct block_inputs out = make_inputs(N, 64, 1, 1);
    const struct act_in in = {.x = x, .w = w, .n = N, .eps = 1e-5f};
    const struct blocks_args a = {
        .x = x, .w = w, .out = out, .eps = 1e-5f, .n = N, .x_stride = N, .per_token = 1};
    launch("blocks_quantise", 1, 1, 1, 0, &a, TWIN_ASCENDING);
    quantise_ref(&in, q, &scale);
    assert_same(out.q[0], q, COLS, "q");
    for (size_t b = 0; b < COLS / 64; b++) {
        int32_t sum = 0;
        for (size_t i = 0; i < 64; i++)
            sum += q[64 * b + i];
        assert_int_equal(out.q_sums[0][b], sum);
        assert_true(out.units[0][b] == 1.0f / scale.s);
    }
    free_inputs(&out);
    FREE_ALL(x, w);
}

/* A matrix: section i has n_rows[i] rows; the second one exists only if it has any. */
struct r16_case {
    uint32_t n_rows[2], n_cols, n_tokens, block_cols, n_planes;
    uint32_t span_cols[2];
    int32_t kind;
    bool block_scales, row_scales, bias;
};

static struct r16_section make_section(const struct r16_case *c, size_t i, size_t n_lines,
                                       struct random *r)
{
    const size_t n_groups = size_round_up(c->n_rows[i], R16_ROWS) / R16_ROWS;
    const size_t n_scales = n_groups * (n_lines * R16_LINE_COLS / c->span_cols[i]) * R16_ROWS;
    uint16_t *scales = c->block_scales ? zeros(n_scales, sizeof *scales) : NULL;
    for (size_t k = 0; scales && k < n_scales; k++)
        scales[k] = (uint16_t)(0x2c00 + next_u32(r) % 0x1000); /* about 0.06 .. 1 */
    return (struct r16_section){.lines = random_lines(r, n_groups * n_lines),
                                .scales = scales,
                                .row_scales = c->row_scales ? floats(r, c->n_rows[i]) : NULL,
                                .n_groups = (uint32_t)n_groups,
                                .n_rows = c->n_rows[i],
                                .span_cols = c->span_cols[i],
                                .scale = 0.37f + (float)i,
                                .extra = 0.81f - (float)i};
}

/* W x of token t by the reference, in row order of all sections. */
static void reference_product(const struct r16_args *a, size_t t, float *y)
{
    static const uint16_t ones[R16_ROWS] = {0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00,
                                            0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00,
                                            0x3c00, 0x3c00, 0x3c00, 0x3c00};
    for (size_t i = 0; i < 2; i++) {
        const struct r16_section *s = &a->sections[i];
        const struct r16_mat w = {s->lines,
                                  s->scales ? s->scales : ones,
                                  s->scales ? R16_ROWS : 0,
                                  s->n_groups,
                                  a->n_lines,
                                  s->span_cols,
                                  0};
        float *sums = zeros((size_t)s->n_groups * R16_ROWS + 1, sizeof *sums);
        if (a->in.n_planes == 0 && s->n_groups > 0)
            r16_float_ref(&w, 0, s->n_groups, a->in.x + t * a->in.q_stride, a->n_cols, sums);
        for (size_t p = 0; p < a->in.n_planes && s->n_groups > 0; p++)
            r16_matvec_ref(&w, 0, s->n_groups,
                           &(struct block_acts){a->in.q[p] + t * a->in.q_stride,
                                                a->in.units[p] + t * a->in.block_stride,
                                                a->in.q_sums[p] + t * a->in.block_stride,
                                                a->in.block_cols},
                           sums);
        for (size_t row = 0; row < s->n_rows; row++) {
            if (s->row_scales)
                sums[row] = sums[row] * s->row_scales[row];
            sums[row] = (sums[row] * s->scale) * s->extra;
            y[s->row0 + row] = a->bias ? sums[row] + a->bias[s->row0 + row] : sums[row];
        }
        mem_free(sums);
    }
}

/* The output of token t, whose old contents are in y. */
static void reference_output(const struct r16_args *a, size_t t, float *y)
{
    const size_t n = a->sections[0].n_rows, n_all = n + a->sections[1].n_rows;
    float *product = zeros(n_all, sizeof *product);
    reference_product(a, t, product);
    if (a->kind == LINEAR_STORE)
        memcpy(y, product, n_all * sizeof *y);
    else if (a->kind == LINEAR_ADD)
        add_ref(y, product, n_all);
    else if (a->kind == LINEAR_RELU2)
        relu2_gate_ref(product, product + n, n, y);
    else
        silu_gate_ref(product, product + n, n, y);
    mem_free(product);
}

static void launch_product(const struct r16_args *a, enum twin_order order)
{
    const bool gated = a->kind >= LINEAR_RELU2;
    const uint32_t n_groups = gated ? a->sections[0].n_groups : a->n_groups;
    if (a->in.n_planes == 0)
        launch("r16_float", (n_groups + 7) / 8, a->n_tokens, 1, 0, a, order);
    else if (a->n_tokens == 1)
        launch("r16_one", gated ? n_groups : (n_groups + 1) / 2, 1, 1, 0, a, order);
    else
        launch("r16_many", (n_groups + 3) / 4,
               (a->n_tokens + R16_WARP_TOKENS - 1) / R16_WARP_TOKENS, 1, 0, a, order);
}

static void check_product(const struct r16_case *c, uint32_t seed, enum twin_order order)
{
    struct random r = {seed};
    const size_t n_all = c->n_rows[0] + c->n_rows[1], stride = size_round_up(n_all, 16);
    const size_t n_cols = size_round_up(c->n_cols, R16_PAD_COLS), n_lines = n_cols / R16_LINE_COLS;
    const size_t x_stride = size_round_up(c->n_cols, 4); /* aligns each row for loads of four */
    float *x = floats(&r, c->n_tokens * x_stride), *bias = floats(&r, n_all);
    float *y = floats(&r, c->n_tokens * stride), *ref = zeros(c->n_tokens * stride, sizeof *ref);
    const struct block_inputs in = make_inputs(c->n_cols, c->block_cols, c->n_planes, c->n_tokens);
    const struct blocks_args blocks = {
        .x = x, .out = in, .n = c->n_cols, .x_stride = (uint32_t)x_stride};
    launch("blocks_quantise", c->n_tokens, 1, 1, 0, &blocks, order);
    struct r16_args a = {.in = in,
                         .bias = c->bias ? bias : NULL,
                         .y = y,
                         .n_lines = (uint32_t)n_lines,
                         .n_cols = c->n_cols,
                         .n_tokens = c->n_tokens,
                         .y_stride = (uint32_t)stride,
                         .kind = c->kind};
    a.sections[1].group0 = a.sections[2].group0 = UINT32_MAX;
    for (size_t i = 0; i < 2 && c->n_rows[i] > 0; i++) {
        a.sections[i] = make_section(c, i, n_lines, &r);
        a.sections[i].group0 = a.n_groups;
        a.sections[i].row0 = i == 0 ? 0 : c->n_rows[0];
        a.n_groups += a.sections[i].n_groups;
    }
    memcpy(ref, y, c->n_tokens * stride * sizeof *y);
    for (size_t t = 0; t < c->n_tokens; t++)
        reference_output(&a, t, ref + t * stride);
    launch_product(&a, order);
    assert_same(y, ref, c->n_tokens * stride * sizeof *y, "a product");
    for (size_t i = 0; i < 2; i++) {
        mem_free((void *)(uintptr_t)a.sections[i].lines);
        mem_free((void *)(uintptr_t)a.sections[i].scales);
        mem_free((void *)(uintptr_t)a.sections[i].row_scales);
    }
    free_inputs(&in);
    FREE_ALL(x, bias, y, ref);
}

static void products_match_the_reference(void **state)
{
    (void)state;
    static const struct r16_case cases[] = {
        {.n_rows = {16}, .n_cols = 128, .block_cols = 128, .span_cols = {128, 128}},
        {.n_rows = {37},
         .n_cols = 300,
         .block_cols = 32,
         .span_cols = {128, 128},
         .kind = LINEAR_ADD,
         .row_scales = true},
        {.n_rows = {33, 50},
         .n_cols = 200,
         .block_cols = 64,
         .span_cols = {128, 64},
         .block_scales = true,
         .bias = true},
        {.n_rows = {70, 70},
         .n_cols = 384,
         .block_cols = 64,
         .span_cols = {64, 128},
         .kind = LINEAR_SILU,
         .block_scales = true},
        {.n_rows = {20, 20},
         .n_cols = 130,
         .block_cols = 128,
         .span_cols = {128, 128},
         .kind = LINEAR_RELU2,
         .row_scales = true,
         .bias = true},
        {.n_rows = {19},
         .n_cols = 8300,
         .block_cols = 128,
         .span_cols = {128, 128},
         .kind = LINEAR_ADD,
         .block_scales = true},
    };
    static const uint32_t n_tokens[] = {1, 2, 17};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint32_t n_planes = 0; n_planes <= MAX_PLANES; n_planes++)
            for (size_t t = 0; t < sizeof n_tokens / sizeof n_tokens[0]; t++) {
                struct r16_case c = cases[i];
                c.n_planes = n_planes;
                c.n_tokens = n_tokens[t];
                check_product(&c, (uint32_t)i + 1, TWIN_ASCENDING);
                check_product(&c, (uint32_t)i + 1, TWIN_DESCENDING);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantisation_in_blocks_matches_the_reference),
        cmocka_unit_test(quantisation_per_token_matches_the_reference),
        cmocka_unit_test(products_match_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
