/*
 * Compares the kernels of layers and table rows with engine/cpu/ref, byte for byte, on the twin
 * (the kernels compiled for the host). The twin runs the threads of a block in ascending or in
 * descending order, and no result may depend on this order. Shapes are small and irregular.
 */
#include "engine/base/fp16.h"
#include "engine/base/size.h"
#include "engine/cpu/ref/kernels_ref.h"
#include "engine/cuda/kernels/args/cuda_args.h"
#include "tests/engine/cuda/attn_kit.h"
#include "tests/support/table_encode.h"

#include <math.h>

static void check_norm(size_t n, bool normed, struct random *r, enum twin_order order)
{
    enum { TOKENS = 5 };
    const size_t stride = size_round_up(n, 16), q_stride = size_round_up(n, LINE_COLS);
    float *x = floats(r, TOKENS * stride), *w = floats(r, n);
    int8_t *q = zeros(TOKENS, q_stride), *q_ref = zeros(1, q_stride);
    float s[TOKENS];
    int32_t sum[TOKENS];
    x[stride] = NAN;               /* in token 1 */
    x[2 * stride] = INFINITY;      /* in token 2 */
    for (size_t i = 0; i < n; i++) /* token 3: without a norm each value is halfway between two */
        x[3 * stride + i] = i == n / 2 ? -127.0f : (float)(i % 253) - 126.5f;
    memset(x + 4 * stride, 0, n * sizeof *x);
    const struct norm_args a = {.x = x,
                                .w = normed ? w : NULL,
                                .q = q,
                                .q_s = s,
                                .q_sum = sum,
                                .eps = 1e-5f,
                                .n = (uint32_t)n,
                                .x_stride = (uint32_t)stride,
                                .q_stride = (uint32_t)q_stride};
    memset(q, 77, TOKENS * q_stride); /* the kernel must also write the zeros past n */
    launch("norm_quantise", TOKENS, 1, 1, 0, &a, order);
    for (size_t t = 0; t < TOKENS; t++) {
        struct act_scale scale;
        const struct act_in in = {
            .x = x + t * stride, .w = normed ? w : NULL, .n = n, .eps = 1e-5f};
        quantise_ref(&in, q_ref, &scale);
        assert_same(q + t * q_stride, q_ref, q_stride, "q");
        assert_same(&s[t], &scale.s, sizeof scale.s, "the scale");
        assert_int_equal(sum[t], scale.q_sum);
    }
    FREE_ALL(x, w, q, q_ref);
}

static void norm_and_quantise_match_the_reference(void **state)
{
    (void)state;
    struct random r = {1};
    static const size_t widths[] = {1, 63, 64, 100, 256, 320, 1030, 2560, 6911, 8192, 9001};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        for (int normed = 0; normed < 2; normed++) {
            check_norm(widths[i], normed, &r, TWIN_ASCENDING);
            check_norm(widths[i], normed, &r, TWIN_DESCENDING);
        }
}

/* A linear layer by the reference kernels into y (n_tokens, stride), as struct linear_args
 * describes it. */
static void reference_linear(const struct linear_args *a, float *y)
{
    const struct ternary_mat w = {a->lines, a->n_rows, a->n_lines, 0};
    const size_t n = a->n_rows, n_out = a->kind >= LINEAR_RELU2 ? n / 2 : n;
    int32_t *acc = zeros(n, sizeof *acc);
    float *out = zeros(n, sizeof *out), *gate = zeros(n, sizeof *gate), *up = zeros(n, sizeof *up);
    for (size_t t = 0; t < a->n_tokens; t++) {
        ternary_matvec_ref(&w, 0, n, a->q + t * a->n_lines * LINE_COLS, a->q_sum[t], acc);
        for (size_t i = 0; i < n; i++) {
            const size_t s = a->kind >= LINEAR_RELU2 ? i % 2
                             : i < a->row_end[0]     ? 0
                             : i < a->row_end[1]     ? 1
                                                     : 2;
            scale_acc_ref(&acc[i], 1, a->scale[s] / a->q_s[t], &out[i]);
            if (a->extra[s] != 1.0f)
                out[i] = out[i] * a->extra[s];
            if (a->bias)
                add_ref(&out[i], &a->bias[i], 1);
            *(i % 2 ? &up[i / 2] : &gate[i / 2]) = out[i];
        }
        float *row = y + t * a->y_stride;
        if (a->kind == LINEAR_STORE)
            memcpy(row, out, n * sizeof *out);
        else if (a->kind == LINEAR_ADD)
            add_ref(row, out, n);
        else if (a->kind == LINEAR_RELU2)
            relu2_gate_ref(gate, up, n_out, row);
        else
            silu_gate_ref(gate, up, n_out, row);
    }
    FREE_ALL(acc, out, gate, up);
}

static void run_linear(const struct linear_args *a, const char *name, enum twin_order order)
{
    const uint32_t n = a->n_tokens;
    const uint32_t tile = strcmp(name, "linear_half") == 0 ? HALF_ROWS : MANY_ROWS;
    if (strcmp(name, "linear_few") == 0)
        launch(name, (a->n_rows + FEW_ROWS - 1) / FEW_ROWS, (n + FEW_TOKENS - 1) / FEW_TOKENS, 1, 0,
               a, order);
    else
        launch(name, (a->n_rows + tile - 1) / tile, (n + MANY_TOKENS - 1) / MANY_TOKENS, 1, 0, a,
               order);
}

static void check_linear(const char *name, uint32_t n_rows, uint32_t n_lines, uint32_t n_tokens,
                         int32_t kind, struct random *r)
{
    const uint32_t y_stride = (uint32_t)size_round_up(n_rows, 16);
    const size_t n_q = (size_t)n_tokens * n_lines * LINE_COLS;
    uint8_t *lines = random_lines(r, (size_t)n_rows * n_lines);
    int8_t *q = zeros(n_q, 1);
    float *s = floats(r, n_tokens), *bias = floats(r, n_rows);
    int32_t *sum = zeros(n_tokens, sizeof *sum);
    float *y = floats(r, (size_t)n_tokens * y_stride), *y_ref = zeros(n_tokens, y_stride * 4);
    memcpy(y_ref, y, (size_t)n_tokens * y_stride * sizeof *y);
    for (size_t i = 0; i < n_q; i++)
        q[i] = (int8_t)(next_u32(r) % 9 == 0 ? -127 : (int)(next_u32(r) % 255) - 127);
    for (uint32_t t = 0; t < n_tokens; t++) {
        s[t] = 3.0f + s[t] * 1e-4f;
        for (size_t i = 0; i < (size_t)n_lines * LINE_COLS; i++)
            sum[t] += q[(size_t)t * n_lines * LINE_COLS + i];
    }
    const struct linear_args a = {.lines = lines,
                                  .q = q,
                                  .q_s = s,
                                  .q_sum = sum,
                                  .bias = next_u32(r) % 2 ? bias : NULL,
                                  .y = y,
                                  .n_rows = n_rows,
                                  .n_lines = n_lines,
                                  .n_tokens = n_tokens,
                                  .y_stride = y_stride,
                                  /* three matrices, as q, k and v, with different scales */
                                  .row_end = {n_rows / 2, n_rows / 2 + n_rows / 4},
                                  .scale = {1.25f, 0.3f, 7.1f},
                                  .extra = {1.0f, 0.7f, 1.0f},
                                  .kind = kind};
    run_linear(&a, name, next_u32(r) % 2 ? TWIN_ASCENDING : TWIN_DESCENDING);
    reference_linear(&a, y_ref);
    assert_same(y, y_ref, (size_t)n_tokens * y_stride * sizeof *y, name);
    FREE_ALL(lines, q, s, bias, sum, y, y_ref);
}

static void linear_layers_match_the_reference(void **state)
{
    (void)state;
    struct random r = {2};
    static const struct {
        uint32_t n_rows, n_lines;
    } shapes[] = {{2, 1}, {14, 2}, {130, 3}, {258, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int32_t kind = LINEAR_STORE; kind <= LINEAR_SILU; kind++) {
            check_linear("linear_few", shapes[i].n_rows, shapes[i].n_lines, 6, kind, &r);
            check_linear("linear_few", shapes[i].n_rows, shapes[i].n_lines, 25, kind, &r);
            check_linear("linear_many", shapes[i].n_rows, shapes[i].n_lines, 71, kind, &r);
            check_linear("linear_half", shapes[i].n_rows, shapes[i].n_lines, 71, kind, &r);
        }
    check_linear("linear_few", 7, 1, 1, LINEAR_ADD, &r); /* odd numbers of rows */
    check_linear("linear_many", 63, 2, 9, LINEAR_ADD, &r);
    check_linear("linear_half", 63, 2, 9, LINEAR_ADD, &r);
    check_linear("linear_few", 18, 29, 16, LINEAR_STORE, &r); /* warps load further lines */
    check_linear("linear_few", 34, 13, 20, LINEAR_ADD, &r);   /* 16 tokens and 4 */
    check_linear("linear_few", 34, 3, 32, LINEAR_RELU2, &r);
    check_linear("linear_many", 140, 7, 64, LINEAR_STORE, &r); /* tiles are used again */
    check_linear("linear_half", 140, 7, 65, LINEAR_ADD, &r);
}

static void check_one(uint32_t n_rows, uint32_t n_cols, uint32_t n_lanes, int32_t kind, bool normed,
                      struct random *r)
{
    const uint32_t n_lines = (n_cols + LINE_COLS - 1) / LINE_COLS;
    uint8_t *lines = random_lines(r, (size_t)n_rows * n_lines);
    float *x = floats(r, n_cols), *w = floats(r, n_cols), *bias = floats(r, n_rows);
    float *y = floats(r, n_rows), *y_ref = zeros(n_rows, sizeof *y);
    int8_t *q = zeros((size_t)n_lines * LINE_COLS, 1);
    struct act_scale scale;
    memcpy(y_ref, y, n_rows * sizeof *y);
    const struct act_in in = {.x = x, .w = normed ? w : NULL, .n = n_cols, .eps = 1e-5f};
    quantise_ref(&in, q, &scale);
    const struct norm_linear_args a = {.norm = {.x = x,
                                                .w = normed ? w : NULL,
                                                .eps = 1e-5f,
                                                .n = n_cols,
                                                .x_stride = n_cols,
                                                .q_stride = n_lines * LINE_COLS},
                                       .linear = {.lines = lines,
                                                  .bias = next_u32(r) % 2 ? bias : NULL,
                                                  .y = y,
                                                  .n_rows = n_rows,
                                                  .n_lines = n_lines,
                                                  .n_tokens = 1,
                                                  .y_stride = n_rows,
                                                  .row_end = {n_rows / 2, n_rows / 2 + n_rows / 4},
                                                  .scale = {1.25f, 0.3f, 7.1f},
                                                  .extra = {1.0f, 0.7f, 1.0f},
                                                  .kind = kind},
                                       .n_lanes = n_lanes};
    const uint32_t block_rows = 2 * ONE_THREADS / n_lanes; /* n_lanes threads for two rows */
    launch("linear_one", (n_rows + block_rows - 1) / block_rows, 1, 1, 0, &a,
           next_u32(r) % 2 ? TWIN_ASCENDING : TWIN_DESCENDING);
    struct linear_args b = a.linear;
    b.q = q;
    b.q_s = &scale.s;
    b.q_sum = &scale.q_sum;
    reference_linear(&b, y_ref);
    assert_same(y, y_ref, n_rows * sizeof *y, "linear_one");
    FREE_ALL(lines, x, w, bias, y, y_ref, q);
}

static void one_token_with_norm_matches_the_reference(void **state)
{
    (void)state;
    struct random r = {9};
    for (uint32_t n_lanes = 8; n_lanes <= 32; n_lanes *= 2)
        for (int32_t kind = LINEAR_STORE; kind <= LINEAR_SILU; kind++) {
            check_one(2, 100, n_lanes, kind, true, &r);
            check_one(130, 770, n_lanes, kind, false, &r);
            check_one(70, 2560, n_lanes, kind, true, &r);
        }
    check_one(33, 256, 16, LINEAR_STORE, true, &r); /* an odd number of rows */
    /* The input fills ROW_TILE, and a row of weights is longer than what its threads preload. */
    check_one(6, ROW_TILE, 8, LINEAR_STORE, true, &r);
    check_one(6, ROW_TILE + 1, 32, LINEAR_ADD, true, &r); /* q is stored in the tile */
    check_one(20, 6911, 32, LINEAR_ADD, true, &r); /* norm weights in shared memory and registers */
    check_one(18, ONE_COLS, 32, LINEAR_STORE, false, &r); /* the widest input */
    check_one(18, ONE_COLS, 16, LINEAR_RELU2, true, &r);
}

/* RoPE and prefill attention in one layer with one KV head; a sequence of n_pos positions in one
 * pass. */
struct attn_case {
    uint32_t head_dim, n_q_per_kv, n_pos, n_rot;
    bool neox;
    bool has_nan; /* in the key of the first position of each block, so that its scores are NaN */
};

struct attn_run {
    struct attn_case c;
    struct kv_shape kv;
    uint32_t n_blocks, q_width, stride;
    uint16_t *cache, *cache_ref; /* (n_blocks, block_elems) */
    float *qkv, *rows;           /* (n_pos, stride); rows: qkv by the reference */
    float *cs;                   /* (2, n_pos, n_rot / 2) cosines, then sines */
    float *out;                  /* (n_pos, q_width) */
    struct cuda_token *tokens;
    float q_scale;
};

static struct attn_run attn_make(struct attn_case c, struct random *r)
{
    struct attn_run a = {.c = c,
                         .n_blocks = (c.n_pos + KV_BLOCK - 1) / KV_BLOCK,
                         .q_width = c.n_q_per_kv * c.head_dim,
                         .q_scale = (float)(1.0 / sqrt((double)c.head_dim))};
    const uint32_t v_stride = (uint32_t)size_round_up(c.head_dim, 32);
    a.stride = a.q_width + 2 * c.head_dim;
    a.kv = (struct kv_shape){.block_elems = (uint64_t)KV_BLOCK * (c.head_dim + v_stride),
                             .head_dim = c.head_dim,
                             .v_stride = v_stride};
    a.cache = zeros(a.n_blocks * a.kv.block_elems, 2);
    a.cache_ref = zeros(a.n_blocks * a.kv.block_elems, 2);
    a.qkv = floats(r, (size_t)c.n_pos * a.stride);
    a.rows = zeros((size_t)c.n_pos * a.stride, sizeof *a.rows);
    a.cs = floats(r, (size_t)c.n_pos * c.n_rot);
    a.out = floats(r, (size_t)c.n_pos * a.q_width);
    a.tokens = zeros(c.n_pos, sizeof *a.tokens);
    memcpy(a.rows, a.qkv, (size_t)c.n_pos * a.stride * sizeof *a.rows);
    for (uint32_t t = 0; t < c.n_pos; t++)
        a.tokens[t] = (struct cuda_token){.kv = a.cache, .pos = (int32_t)t};
    return a;
}

static void attn_free(struct attn_run *a)
{
    FREE_ALL(a->cache, a->cache_ref, a->qkv, a->rows, a->cs, a->out, a->tokens);
}

static void check_append(const struct attn_run *a, enum twin_order order)
{
    const struct attn_case c = a->c;
    const struct rope_args rope = {.tokens = a->tokens,
                                   .c = a->cs,
                                   .s = a->cs + c.n_pos * (c.n_rot / 2),
                                   .qkv = a->qkv,
                                   .kv = a->kv,
                                   .qkv_stride = a->stride,
                                   .q_floats = a->q_width,
                                   .q_kv_stride = a->q_width,
                                   .kv_width = c.head_dim,
                                   .n_q_per_kv = c.n_q_per_kv,
                                   .n_rot = c.n_rot,
                                   .neox = c.neox,
                                   .q_scale = a->q_scale};
    launch("rope_append", c.n_pos, 1, 1, 0, &rope, order);
    const rope_fn rope_ref = c.neox ? rope_neox_ref : rope_norm_ref;
    for (uint32_t t = 0; t < c.n_pos; t++) {
        float *row = a->rows + (size_t)t * a->stride;
        uint16_t *block = a->cache_ref + t / KV_BLOCK * a->kv.block_elems, k16[1024];
        for (uint32_t h = 0; h <= c.n_q_per_kv; h++)
            rope_ref(row + h * c.head_dim, rope.c + t * (c.n_rot / 2), rope.s + t * (c.n_rot / 2),
                     c.n_rot);
        for (uint32_t i = 0; i < a->q_width; i++)
            row[i] = row[i] * a->q_scale;
        to_f16_ref(row + a->q_width, c.head_dim, k16);
        for (uint32_t i = 0; i < c.head_dim; i++)
            block[i * KV_BLOCK + t % KV_BLOCK] = k16[i];
        to_f16_ref(row + a->q_width + c.head_dim, c.head_dim,
                   block + c.head_dim * KV_BLOCK + t % KV_BLOCK * a->kv.v_stride);
    }
    assert_same(a->qkv, a->rows, (size_t)c.n_pos * a->stride * sizeof *a->rows,
                "q and k after RoPE");
    assert_same(a->cache, a->cache_ref, a->n_blocks * a->kv.block_elems * 2, "the cache");
}

static void check_attention(struct attn_case c, struct random *r, enum twin_order order)
{
    struct attn_run a = attn_make(c, r);
    check_append(&a, order);
    for (uint32_t b = 0; b < a.n_blocks && c.has_nan; b++)
        a.cache[b * a.kv.block_elems] = a.cache_ref[b * a.kv.block_elems] = 0x7E00;
    const struct attn_args attn = {.tokens = a.tokens,
                                   .qkv = a.qkv,
                                   .out = a.out,
                                   .kv = a.kv,
                                   .n_tokens = c.n_pos,
                                   .qkv_stride = a.stride,
                                   .out_stride = a.q_width,
                                   .q_kv_stride = a.q_width,
                                   .n_heads = c.n_q_per_kv,
                                   .n_q_per_kv = c.n_q_per_kv};
    launch("attn_apply",
           (c.n_pos * c.n_q_per_kv + APPLY_ROWS - 1) / APPLY_ROWS *
               ((c.head_dim + APPLY_ELEMS - 1) / APPLY_ELEMS),
           1, 1, 0, &attn, order);
    float *out = zeros(c.head_dim, sizeof *out);
    for (uint32_t t = 0; t < c.n_pos; t++)
        for (uint32_t h = 0; h < c.n_q_per_kv; h++) {
            expect_attention(&a.kv, a.cache_ref, a.n_blocks, 0, t,
                             a.rows + (size_t)t * a.stride + h * c.head_dim, out);
            assert_same(a.out + (size_t)t * a.q_width + h * c.head_dim, out,
                        c.head_dim * sizeof *out, "attention");
        }
    mem_free(out);
    attn_free(&a);
}

static void prefill_attention_matches_the_reference(void **state)
{
    (void)state;
    struct random r = {3};
    static const struct attn_case cases[] = {
        {128, 4, 131, 128, true, false}, {20, 1, 67, 20, false, false},
        {66, 7, 70, 66, true, false},    {160, 6, 66, 32, true, false},
        {2, 5, 9, 2, false, false},      {48, 3, 90, 48, false, false},
        {300, 2, 131, 64, true, false},  {32, 3, 140, 32, true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_attention(cases[i], &r, TWIN_ASCENDING);
        check_attention(cases[i], &r, TWIN_DESCENDING);
    }
}

static void check_table(enum tensor_type type, uint32_t n, struct random *r, enum twin_order order)
{
    enum { VOCAB = 45, ROWS = 5, FACTOR = 12, BESTS = (VOCAB + BEST_ROWS - 1) / BEST_ROWS };
    static row_decode_fn decode[TENSOR_N_TYPES];
    static rows_dot_fn dot[TENSOR_N_TYPES];
    row_kernels_ref(decode, dot);
    size_t row_bytes;
    assert_true(tensor_bytes(type, n, 1, &row_bytes));
    uint8_t *table = zeros(VOCAB, row_bytes);
    float *x = floats(r, (size_t)ROWS * n), *y = zeros(n, 4), *z = zeros(ROWS * VOCAB, 4);
    float *row = zeros(n, sizeof *row), z_ref[VOCAB];
    for (size_t i = 0; i < VOCAB; i++) {
        for (uint32_t j = 0; j < n; j++)
            row[j] = next_float(r) * 0.5f;
        table_encode(type, row, n, table + i * row_bytes);
    }
    struct cuda_token tokens[3] = {{.id = 0}, {.id = VOCAB - 1}, {.id = 7}};
    float *h = zeros(3 * (size_t)n, sizeof *h);
    const struct embed_args embed = {table, tokens, h, row_bytes, (float)FACTOR, n, n, type};
    launch("embed_rows", 3, (n + EMBED_COLS - 1) / EMBED_COLS, 1, 0, &embed, order);
    for (size_t t = 0; t < 3; t++) {
        decode[type](table + (size_t)tokens[t].id * row_bytes, n, y);
        for (size_t i = 0; i < n; i++)
            y[i] = y[i] * (float)FACTOR;
        assert_same(h + t * n, y, n * sizeof *y, tensor_geometries[type].name);
    }
    struct cuda_cand bests[ROWS * BESTS];
    struct cuda_found *found = zeros(ROWS, sizeof *found);
    struct dot_args a = {.table = table,
                         .x = x,
                         .out = {z, bests, VOCAB, VOCAB, BESTS},
                         .found = found,
                         .row_bytes = row_bytes,
                         .n = n,
                         .x_stride = n,
                         .n_rows = ROWS,
                         .type = type};
    for (int few = 0; few < 2; few++) {
        memset(z, 0, ROWS * VOCAB * 4);
        launch(few ? "rows_dot_few" : "rows_dot_one", (VOCAB + DOT_ROWS - 1) / DOT_ROWS,
               few ? (ROWS + HEAD_ROWS - 1) / HEAD_ROWS : ROWS, 1, 0, &a, order);
        for (size_t i = 0; i < ROWS; i++) {
            dot[type](&(struct table_rows){table, row_bytes, VOCAB, NULL}, x + i * n, n, z_ref,
                      row);
            assert_same(z + i * VOCAB, z_ref, sizeof z_ref, tensor_geometries[type].name);
            assert_int_equal(found[i].not_finite, 0);
            for (size_t p = 0; p < BESTS; p++) {
                const struct cuda_cand c = bests[i * BESTS + p];
                assert_int_equal((size_t)c.id / BEST_ROWS, p);
                assert_true(c.logit == z_ref[c.id]);
                for (size_t j = p * BEST_ROWS; j < VOCAB && j < (p + 1) * BEST_ROWS; j++)
                    assert_true(z_ref[j] <= c.logit);
            }
        }
    }
    const int32_t ids[3] = {VOCAB - 1, 0, 7};
    float listed[3];
    a.ids = ids;
    a.out = (struct logit_buffers){.z = listed, .n_vocab = 3};
    a.x = x + (ROWS - 1) * n;
    launch("rows_dot_listed", 1, 1, 1, 0, &a, order);
    for (size_t i = 0; i < 3; i++)
        assert_same(&listed[i], &z_ref[ids[i]], sizeof listed[i], "a listed row");
    FREE_ALL(found, table, x, y, z, row, h);
}

static void tables_match_the_reference(void **state)
{
    (void)state;
    struct random r = {4};
    static const enum tensor_type types[] = {TENSOR_F32,  TENSOR_F16,  TENSOR_BF16, TENSOR_Q8_0,
                                             TENSOR_Q4_0, TENSOR_Q4_K, TENSOR_Q6_K};
    /* The last two: rows that wide_dot loads in two parts, and rows that are too long for it. */
    static const uint32_t widths[] = {100, 512, 1, 64, 72, 2624, 7744};
    /* F32 and BF16 with five widths, F16 with all; the others need whole blocks of up to 256. */
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (size_t j = 0; j < (i == 1 ? 7 : i < 3 ? 5 : 1); j++)
            check_table(types[i], i < 3 ? widths[j] : 512, &r,
                        j % 2 ? TWIN_DESCENDING : TWIN_ASCENDING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norm_and_quantise_match_the_reference),
        cmocka_unit_test(linear_layers_match_the_reference),
        cmocka_unit_test(one_token_with_norm_matches_the_reference),
        cmocka_unit_test(prefill_attention_matches_the_reference),
        cmocka_unit_test(tables_match_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
