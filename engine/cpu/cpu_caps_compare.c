/*
 * The comparison of the self-test: each kernel runs on a few small inputs, most of them with ragged
 * ends, and its outputs are compared with those of ref. attn_block_q8 runs as a part of
 * attn_tile_q8. mac_peak and fma_peak do not run, because they only measure, and neither do kernels
 * that exist only in ref. Inputs depend only on a counter, so a failure is reproducible.
 * tests/engine/kernels/check_kernels compares more thoroughly.
 */
#include "engine/cpu/cpu_caps_compare.h"

#include "engine/base/fp16.h"
#include "engine/base/noise.h"
#include "engine/base/size.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define ROTATED 256 /* elements of a rotated vector: AVX-512 has one pass over them, others more */
#define N 333       /* elements of a vector: not a multiple of the lanes of any register */
#define N_TABLE 512 /* elements of a table row: whole blocks of every type */
#define N_ROWS 19   /* not a multiple of the rows that any kernel multiplies together */
#define N_WHOLE 32  /* N_ROWS and N_TOKENS, rounded up as panels and packed tokens are */
#define N_LINES 3
#define N_TOKENS 18 /* a pack of PACK_TOKENS, and two more */
#define HEAD_DIM 68 /* whole registers of every width, and a tail with 256 and 512 bits */
#define V_STRIDE 96 /* HEAD_DIM rounded up to V_UNIT */
#define N_Q 3
#define N_TILE 3                /* tokens of an attn_tile */
#define ROW_BYTES (N_TABLE * 4) /* of F32, the largest type */

/* Room for the outputs of run_all; record_output asserts that they fit. */
#define MAX_OUTPUTS 96
#define OUTPUT_BYTES 131072

/* The outputs of one table of kernels. */
struct outputs {
    struct {
        const char *kernel;
        size_t end; /* of the output in `bytes`; it begins at the end of the entry before */
    } list[MAX_OUTPUTS];
    uint8_t bytes[OUTPUT_BYTES];
    size_t n, n_bytes;
};

static void record_output(struct outputs *o, const char *kernel, const void *output, size_t n_bytes)
{
    assert(o->n < MAX_OUTPUTS && n_bytes <= OUTPUT_BYTES - o->n_bytes);
    memcpy(o->bytes + o->n_bytes, output, n_bytes);
    o->n_bytes += n_bytes;
    o->list[o->n].kernel = kernel;
    o->list[o->n++].end = o->n_bytes;
}

/* Random bits, a function of i. */
static uint32_t random_bits(uint64_t i)
{
    return (uint32_t)(noise_mix(i) >> 32);
}

/* (n) floats in -limit .. limit */
static void fill(float *x, size_t n, float limit, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = ((float)(random_bits(seed + i) & 0xffffu) / 32768.0f - 1.0f) * limit;
}

static void fill_f16(uint16_t *x, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = f32_to_f16((float)(random_bits(seed + i) & 0xffffu) / 32768.0f - 1.0f);
}

static void run_vectors(const struct cpu_kernels *k, struct outputs *o)
{
    float x[N], w[N], y[N];
    int32_t acc[N];
    uint16_t half[N];
    fill(x, N, 20.0f, 1);
    fill(w, N, 2.0f, 1000);
    k->rms_norm(x, w, N, 1e-5f, y);
    record_output(o, "rms_norm", y, sizeof y);
    k->rotate(x, w, ROTATED, ROTATED, y);
    record_output(o, "rotate", y, ROTATED * sizeof *y);
    k->relu2_gate(x, w, N, y);
    record_output(o, "relu2_gate", y, sizeof y);
    k->silu_gate(x, w, N, y);
    record_output(o, "silu_gate", y, sizeof y);
    k->sigmoid_gate(x, w, N, y);
    record_output(o, "sigmoid_gate", y, sizeof y);
    k->unit_norm(x, N, 1e-6f, 0.5f, y);
    record_output(o, "unit_norm", y, sizeof y);
    /* The four rows of taps overlap: they begin 80 elements apart, and the last one ends with w. */
    _Static_assert(DELTA_TAPS == 4, "the call below has four inputs");
    k->conv_silu((const float *const[DELTA_TAPS]){x, x + 1, x + 2, x + 3}, w, 80, N - 240, y);
    record_output(o, "conv_silu", y, (N - 240) * sizeof *y);
    k->add(y, x, N);
    record_output(o, "add", y, sizeof y);
    k->rope_neox(y, x, w, N - 1);
    record_output(o, "rope_neox", y, sizeof y);
    k->rope_norm(y, x, w, N - 1);
    record_output(o, "rope_norm", y, sizeof y);
    fill(x, N, 70000.0f, 2000);
    for (size_t i = 0; i < N; i++)
        acc[i] = (int32_t)random_bits(3000 + i);
    k->to_f16(x, N, half);
    record_output(o, "to_f16", half, sizeof half);
    k->scale_acc(acc, N, 0.37f, y);
    record_output(o, "scale_acc", y, sizeof y);
}

/* Three tokens of a head with DELTA_COLS columns and a tail of 16, then one more token. */
static void run_delta(const struct cpu_kernels *k, struct outputs *o)
{
    enum { DIM = 80, N_RUN = 3, STRIDE = 3 * DIM };
    _Alignas(64) float states[2][DIM * DIM];
    float x[N_RUN * STRIDE], y[N_RUN * DIM];
    struct delta_gate gates[N_RUN];
    fill(x, N_RUN * STRIDE, 1.0f, 4000);
    fill(states[0], DIM * DIM, 1.0f, 5000);
    for (size_t t = 0; t < N_RUN; t++)
        gates[t] = (struct delta_gate){0.9f - 0.1f * (float)t, 0.3f};
    struct delta_run run = {x,     x + DIM, x + 2 * DIM, STRIDE,    gates, 1,
                            N_RUN, DIM,     states[0],   states[1], y,     DIM};
    k->delta_run(&run);
    record_output(o, "delta_run", y, sizeof y);
    run.n_tokens = 1;
    run.from = states[1];
    run.to = states[0];
    k->delta_run(&run);
    record_output(o, "delta_run", states[0], sizeof states[0]);
}

/* Convert and add sums of three tokens of N / 3 rows. One vector provides d and the bias. */
static void run_sums(const struct cpu_kernels *k, struct outputs *o)
{
    float x[N], y[N];
    int32_t acc[N];
    const size_t stride = N / 3;
    fill(x, N, 0.01f, 8000);
    for (size_t i = 0; i < N; i++)
        acc[i] = (int32_t)(random_bits(9000 + i) % 2001) - 1000;
    const struct acc_tile a = {acc, stride, 3, stride, x, 1.5f, x},
                          b = {acc, stride, 3, stride, x, 1.0f, NULL};
    k->acc_store(&a, y, stride);
    record_output(o, "acc_store", y, sizeof y);
    k->acc_add(&a, y, stride);
    record_output(o, "acc_add", y, sizeof y);
    k->acc_relu2(&a, &b, y, stride);
    record_output(o, "acc_relu2", y, sizeof y);
    k->acc_silu(&a, &b, y, stride);
    record_output(o, "acc_silu", y, sizeof y);
}

struct ternary_case {
    _Alignas(64) uint8_t lines[N_ROWS * N_LINES * LINE_BYTES];
    _Alignas(64) int8_t q[N_TOKENS * N_LINES * LINE_COLS];
    int32_t q_sums[N_TOKENS];
    int32_t acc[N_TOKENS * N_ROWS];
    _Alignas(64) int8_t packed[N_WHOLE * N_LINES * LINE_COLS];
    _Alignas(64) int8_t own[PACK_TOKENS * N_LINES * LINE_COLS];
    _Alignas(64) uint8_t panel[N_WHOLE * N_LINES * LINE_COLS];
};

static void run_gemm(const struct ternary_gemm *g, const char *name, struct ternary_case *c,
                     struct outputs *o)
{
    const struct ternary_mat w = {c->lines, N_ROWS, N_LINES, 0};
    for (size_t t = 0; t < N_TOKENS; t++)
        g->pack(c->q + t * N_LINES * LINE_COLS, N_LINES, t, c->packed);
    g->unpack(&w, 0, N_ROWS, c->panel);
    for (size_t t = 0; t < N_TOKENS; t += g->call_tokens) {
        const size_t n = size_min(g->call_tokens, N_TOKENS - t);
        const int8_t *q = g->gather(c->packed + t * N_LINES * LINE_COLS, N_LINES, n, c->own);
        g->matmul(&w, 0, N_ROWS,
                  &(struct ternary_batch){.q = q,
                                          .q_sums = c->q_sums + t,
                                          .panel = c->panel,
                                          .n_tokens = n,
                                          .acc = c->acc + t * N_ROWS,
                                          .acc_stride = N_ROWS});
    }
    record_output(o, name, c->acc, sizeof c->acc);
}

/* Multiply every third row, then use the lines as columns of one line each. */
static void run_skipping(const struct cpu_kernels *k, const struct ternary_case *c,
                         struct outputs *o)
{
    const struct ternary_mat w = {c->lines, N_ROWS, N_LINES, k->stream_ahead};
    const struct ternary_cols cols = {c->lines, N_ROWS * N_LINES, 1};
    int32_t numbers[N_ROWS * N_LINES + LIVE_SLACK], rows[N_ROWS];
    _Alignas(64) int32_t acc[LINE_COLS] = {0};
    float gate[N_ROWS];
    size_t n_rows = 0;
    for (size_t i = 0; i < N_ROWS; i += 3)
        rows[n_rows++] = (int32_t)i;
    k->ternary_listed(&w, rows, n_rows, c->q, c->q_sums[0], acc);
    record_output(o, "ternary_listed", acc, sizeof acc);
    fill(gate, N_ROWS, 1.0f, 70000);
    size_t n = k->live_gates(gate, N_ROWS, numbers);
    record_output(o, "live_gates", numbers, n * sizeof numbers[0]);
    n = k->live_inputs(c->q, cols.n_cols, numbers);
    record_output(o, "live_inputs", numbers, n * sizeof numbers[0]);
    k->ternary_columns(&cols, numbers, n, c->q, acc);
    record_output(o, "ternary_columns", acc, sizeof acc);
}

static void run_ternary(const struct cpu_kernels *k, struct outputs *o)
{
    struct ternary_case c = {.q_sums = {0}}; /* zeros, since missing tokens and rows are read too */
    const size_t n = N_LINES * LINE_COLS - 11;
    float x[N_LINES * LINE_COLS], norm[N_LINES * LINE_COLS];
    fill(norm, n, 2.0f, 900);
    for (size_t i = 0; i < sizeof c.lines; i++) { /* four codes of 0 .. 2 per byte */
        const uint32_t u = random_bits(4000 + i);
        c.lines[i] = (uint8_t)(u % 3 | u / 3 % 3 << 2 | u / 9 % 3 << 4 | u / 27 % 3 << 6);
    }
    for (size_t t = 0; t < N_TOKENS; t++) {
        struct act_scale s;
        fill(x, n, 3.0f, 5000 + 1000 * t);
        k->quantise(
            &(struct act_in){.x = x, .w = t % 2 ? norm : NULL, .n = n, .eps = 1e-5f, .ahead = x},
            c.q + t * N_LINES * LINE_COLS, &s);
        record_output(o, "quantise", &s.s, sizeof s.s);
        c.q_sums[t] = s.q_sum;
    }
    record_output(o, "quantise", c.q_sums, sizeof c.q_sums);
    record_output(o, "quantise", c.q, sizeof c.q);
    const struct ternary_mat w = {c.lines, N_ROWS, N_LINES, k->stream_ahead};
    k->ternary_matvec(&w, 0, N_ROWS, c.q, c.q_sums[0], c.acc);
    record_output(o, "ternary_matvec", c.acc, N_ROWS * sizeof(int32_t));
    run_skipping(k, &c, o);
    run_gemm(&k->few, "ternary_matmul for few tokens", &c, o);
    run_gemm(&k->medium, "ternary_matmul for a medium number of tokens", &c, o);
    run_gemm(&k->many, "ternary_matmul for many tokens", &c, o);
}

#define N_GROUPS 5 /* with AVX-512: one set of four streams, and a rest */
#define R16_SPANS 2
#define R16_COLS (R16_SPANS * R16_PAD_COLS)
#define R16_LINES (R16_COLS / R16_LINE_COLS)
#define R16_MOST_BLOCKS (R16_COLS / MIN_BLOCK_COLS)

struct r16_case {
    _Alignas(64) uint8_t lines[N_GROUPS * R16_LINES * LINE_BYTES];
    _Alignas(64) uint16_t scales[N_GROUPS * R16_SPANS * R16_ROWS];
    _Alignas(64) int8_t q[N_WHOLE * R16_COLS];
    float units[N_TOKENS * R16_MOST_BLOCKS];
    int32_t q_sums[N_TOKENS * R16_MOST_BLOCKS];
    _Alignas(64) uint8_t panel[R16_PANEL * R16_LINES * 4 * LINE_BYTES];
    _Alignas(64) float y[N_TOKENS * R16_PANEL * R16_ROWS];
};

/* Blocks of block_cols columns: one token with all row groups, then all tokens with two. */
static void run_blocks_of(const struct cpu_kernels *k, struct r16_case *c, size_t block_cols,
                          struct outputs *o)
{
    const struct r16_mat w = {.lines = c->lines,
                              .scales = c->scales,
                              .scale_step = R16_ROWS,
                              .n_groups = N_GROUPS,
                              .n_lines = R16_LINES,
                              .span_cols = R16_PAD_COLS,
                              .ahead = k->stream_ahead};
    const size_t n_blocks = R16_COLS / block_cols;
    float x[R16_COLS];
    for (size_t t = 0; t < N_TOKENS; t++) {
        fill(x, R16_COLS - 11, 3.0f, 80000 + 1000 * t);
        k->quantise_blocks(x, R16_COLS - 11, block_cols, c->q + t * R16_COLS,
                           c->units + t * n_blocks, c->q_sums + t * n_blocks);
    }
    record_output(o, "quantise_blocks", c->q, N_TOKENS * R16_COLS);
    record_output(o, "quantise_blocks", c->units, N_TOKENS * n_blocks * sizeof c->units[0]);
    memset(c->y, 0, sizeof c->y);
    k->r16_matvec(&w, 0, N_GROUPS, &(struct block_acts){c->q, c->units, c->q_sums, block_cols},
                  c->y);
    record_output(o, "r16_matvec", c->y, N_GROUPS * R16_ROWS * sizeof c->y[0]);
    k->r16.unpack(&w, 1, 1 + R16_PANEL, c->panel);
    k->r16.matmul(&w, 1, 1 + R16_PANEL,
                  &(struct r16_batch){.q = c->q,
                                      .units = c->units,
                                      .q_sums = c->q_sums,
                                      .q_stride = R16_COLS,
                                      .block_stride = n_blocks,
                                      .block_cols = block_cols,
                                      .n_tokens = N_TOKENS,
                                      .panel = c->panel,
                                      .y = c->y,
                                      .y_stride = R16_PANEL * R16_ROWS});
    record_output(o, "r16_matmul", c->y, sizeof c->y);
}

static void run_r16(const struct cpu_kernels *k, struct outputs *o)
{
    struct r16_case c = {.q = {0}};               /* zeros, since missing tokens are read too */
    for (size_t i = 0; i < sizeof c.lines; i++) { /* four codes of 0 .. 2 per byte */
        const uint32_t u = random_bits(60000 + i);
        c.lines[i] = (uint8_t)(u % 3 | u / 3 % 3 << 2 | u / 9 % 3 << 4 | u / 27 % 3 << 6);
    }
    fill_f16(c.scales, sizeof c.scales / sizeof c.scales[0], 61000);
    run_blocks_of(k, &c, MIN_BLOCK_COLS, o);
    run_blocks_of(k, &c, R16_PAD_COLS, o);
}

struct attn_case {
    _Alignas(64) uint16_t k[HEAD_DIM * KV_BLOCK];
    _Alignas(64) uint16_t v[KV_BLOCK * V_STRIDE];
    float q[N_Q * HEAD_DIM];
    float m[N_TILE * N_Q], l[N_TILE * N_Q], o[N_TILE * N_Q * HEAD_DIM];
    /* attn_tile_floats */
    _Alignas(64) float scratch[KV_BLOCK * V_STRIDE + ATTN_TILE * N_Q * (KV_BLOCK + 2)];
};

static void record_attention(struct outputs *out, const char *kernel, const struct attn_case *c,
                             size_t n_tokens)
{
    record_output(out, kernel, c->m, n_tokens * N_Q * sizeof(float));
    record_output(out, kernel, c->l, n_tokens * N_Q * sizeof(float));
    record_output(out, kernel, c->o, n_tokens * N_Q * HEAD_DIM * sizeof(float));
}

/* Two position blocks with the same keys and values, for three tokens with the same query: q_stride
 * is 0. Token t sees n_first + t positions of the first block and n_seen + t of the second, at most
 * all 64. With `scales` the numbers in k and v are read as bytes of Q8, in which every byte is
 * valid. */
static void run_attn_tile(attn_tile_fn run, size_t n_first, size_t n_seen, const float *scales,
                          struct attn_case *c)
{
    for (size_t block = 0; block < 2; block++)
        run(&(struct attn_tile){.q = c->q,
                                .k = c->k,
                                .v = c->v,
                                .scales = scales,
                                .ahead = c->k,
                                .n_tokens = N_TILE,
                                .n_q = N_Q,
                                .head_dim = HEAD_DIM,
                                .v_stride = V_STRIDE,
                                .n_seen = block == 0 ? n_first : n_seen,
                                .is_first = block == 0,
                                .m = c->m,
                                .l = c->l,
                                .o = c->o,
                                .scratch = c->scratch});
}

static void run_attention(const struct cpu_kernels *k, struct outputs *out)
{
    struct attn_case c;
    float scales[2 * KV_BLOCK], big_m = 0.25f, big_l = 3.5f, big_o[HEAD_DIM], y[HEAD_DIM];
    fill_f16(c.k, HEAD_DIM * KV_BLOCK, 20000);
    fill_f16(c.v, KV_BLOCK * V_STRIDE, 40000);
    fill(c.q, N_Q * HEAD_DIM, 2.0f, 60000);
    fill(big_o, HEAD_DIM, 5.0f, 70000);
    fill(scales, 2 * KV_BLOCK, 0.01f, 80000);
    for (size_t i = 0; i < 2 * KV_BLOCK; i++)
        scales[i] = fabsf(scales[i]) + 1e-4f;
    k->attn_block(&(struct attn_block){.q = c.q,
                                       .k = c.k,
                                       .v = c.v,
                                       .n_q = N_Q,
                                       .head_dim = HEAD_DIM,
                                       .v_stride = V_STRIDE,
                                       .n_seen = 45,
                                       .m = c.m,
                                       .l = c.l,
                                       .o = c.o});
    record_attention(out, "attn_block", &c, 1);
    k->attn_merge(&big_m, &big_l, big_o, c.m, c.l, c.o, HEAD_DIM);
    record_output(out, "attn_merge", &big_m, sizeof big_m);
    record_output(out, "attn_merge", &big_l, sizeof big_l);
    record_output(out, "attn_merge", big_o, sizeof big_o);
    k->attn_finish(big_o, big_l, HEAD_DIM, y);
    record_output(out, "attn_finish", y, sizeof y);
    run_attn_tile(k->attn_tile, KV_BLOCK, 62, NULL, &c);
    record_attention(out, "attn_tile", &c, N_TILE);
    run_attn_tile(k->attn_tile_q8, 43, 43, scales, &c);
    record_attention(out, "attn_tile_q8", &c, N_TILE);
}

/* Random bytes are a valid row of every type if the floats among them are finite. They are if the
 * highest bit of the exponent, 0x40 in the last byte of each float, is 0. In rows of floats every
 * byte gets this mask. The mask of F16 scales also makes them positive. */
static void fill_row(uint8_t *row, enum tensor_type type, uint64_t seed)
{
    for (size_t i = 0; i < ROW_BYTES; i++)
        row[i] =
            (uint8_t)(random_bits(seed + i) & (tensor_geometries[type].is_float ? 0xbfu : 0xffu));
    const struct tensor_geometry *const g = &tensor_geometries[type];
    for (size_t b = 0; b < N_TABLE / g->block_cols; b++) {
        uint8_t *const block = row + b * g->block_bytes;
        if (type == TENSOR_Q8_0 || type == TENSOR_Q4_0 || type == TENSOR_Q4_K)
            block[1] &= 0x3f; /* the high byte of the first two, an F16 scale */
        if (type == TENSOR_Q4_K)
            block[3] &= 0x3f; /* the second scale */
        if (type == TENSOR_Q6_K)
            block[Q6_K_BYTES - 1] &= 0x3f; /* the scale is last */
    }
}

static void run_rows(const struct cpu_kernels *k, struct outputs *o)
{
    uint8_t rows[3 * ROW_BYTES];
    float h[N_TABLE], y[N_TABLE], z[3];
    const struct table_rows table = {rows, ROW_BYTES, 3, NULL};
    fill(h, N_TABLE, 4.0f, 80000);
    for (enum tensor_type type = 0; type < TENSOR_N_TYPES; type++) {
        if (!k->row_decode[type])
            continue;
        for (size_t r = 0; r < 3; r++)
            fill_row(rows + r * ROW_BYTES, type, 90000 + 10000 * r);
        k->row_decode[type](rows, N_TABLE, y);
        record_output(o, "row_decode", y, sizeof y);
        k->rows_dot[type](&table, h, N_TABLE, z, y);
        record_output(o, "rows_dot", z, sizeof z);
    }
}

#define N_BLOCKS 3
#define STEP_STRIDE 8

struct states_case {
    _Alignas(64) int8_t x[N_BLOCKS * 2 * COARSE_COLS];
    _Alignas(64) int8_t gathered[COARSE_STATES * N_BLOCKS * 2 * COARSE_COLS];
    _Alignas(64) int32_t fix[N_BLOCKS * COARSE_STATES];
    _Alignas(64) float spread2[N_BLOCKS * COARSE_STATES];
    _Alignas(64) float unit[COARSE_STATES];
    float bounds[2][N_ROWS];
};

struct coarse_case {
    _Alignas(64) uint8_t lines[N_ROWS * N_BLOCKS * LINE_BYTES];
    _Alignas(64) int8_t x[N_BLOCKS * 2 * COARSE_COLS];
    _Alignas(64) int32_t fix[N_BLOCKS * 16];
    uint16_t steps[N_ROWS * STEP_STRIDE];
    float spread[STEP_STRIDE], bounds[N_ROWS];
};

/* Two hidden states; the second has the bytes of the first, moved by 64 places. */
static void run_coarse_states(const struct cpu_kernels *k, const struct coarse_mat *m,
                              const int8_t *planes, struct outputs *o)
{
    struct states_case g = {.bounds = {{0}}};
    const int8_t *x[2] = {planes, g.x};
    float *const bounds[2] = {g.bounds[0], g.bounds[1]};
    for (size_t i = 0; i < sizeof g.x; i++)
        g.x[i] = planes[(i + 64) % sizeof g.x];
    for (size_t i = 0; i < N_BLOCKS * COARSE_STATES; i++)
        g.fix[i] = (int32_t)(random_bits(330000 + i) % 2000000) - 1000000;
    fill(g.spread2, N_BLOCKS * COARSE_STATES, 3.0f, 340000);
    for (size_t i = 0; i < N_BLOCKS * COARSE_STATES; i++)
        g.spread2[i] = g.spread2[i] * g.spread2[i];
    fill(g.unit, COARSE_STATES, 1.0f, 350000);
    k->coarse_gather(x, 2, N_BLOCKS, g.gathered);
    k->coarse_bound_states(
        m, 0, N_ROWS, &(struct coarse_states){2, g.gathered, g.fix, g.spread2, g.unit}, bounds);
    record_output(o, "coarse_bound_states", g.bounds, sizeof g.bounds);
}

static void run_coarse(const struct cpu_kernels *k, struct outputs *o)
{
    struct coarse_case c = {.spread = {0}};
    float w[N_BLOCKS * COARSE_COLS], worst[N_ROWS];
    for (size_t r = 0; r < N_ROWS; r++) {
        fill(w, N_BLOCKS * COARSE_COLS, 0.1f, 200000 + 1000 * r);
        worst[r] = k->coarse_pack(w, N_BLOCKS, r, c.lines + r * N_BLOCKS * LINE_BYTES,
                                  c.steps + r * STEP_STRIDE);
    }
    record_output(o, "coarse_pack", worst, sizeof worst);
    record_output(o, "coarse_pack", c.lines, sizeof c.lines);
    record_output(o, "coarse_pack", c.steps, sizeof c.steps);
    for (size_t i = 0; i < sizeof c.x; i++) /* the second plane holds 2 * low: even numbers */
        c.x[i] =
            (int8_t)((int)(random_bits(300000 + i) % 255) - 127) & (i / COARSE_COLS % 2 ? ~1 : ~0);
    for (size_t i = 0; i < N_BLOCKS * 16; i++)
        c.fix[i] = (int32_t)(random_bits(310000 + i) % 2000000) - 1000000;
    fill(c.spread, N_BLOCKS, 3.0f, 320000);
    const struct coarse_mat m = {c.lines, c.steps, N_BLOCKS, STEP_STRIDE, k->stream_ahead};
    const struct coarse_query q = {c.x, c.fix, c.spread, 0.37f};
    k->coarse_bound(&m, 0, N_ROWS, &q, c.bounds);
    record_output(o, "coarse_bound", c.bounds, sizeof c.bounds);
    run_coarse_states(k, &m, c.x, o);
}

static void run_all(const struct cpu_kernels *k, struct outputs *o)
{
    o->n = o->n_bytes = 0;
    run_vectors(k, o);
    run_sums(k, o);
    run_delta(k, o);
    run_ternary(k, o);
    run_r16(k, o);
    run_attention(k, o);
    run_rows(k, o);
    run_coarse(k, o);
}

const char *cpu_caps_first_difference(const struct cpu_kernels *k)
{
    static const struct cpu_caps ref_only = {.has[ISA_REF] = true};
    struct cpu_kernels ref;
    struct outputs expected, got;
    cpu_kernels_init(&ref, &ref_only);
    run_all(&ref, &expected);
    run_all(k, &got);
    for (size_t i = 0, begin = 0; i < expected.n; begin = expected.list[i++].end) {
        const size_t end = expected.list[i].end;
        if (i >= got.n || got.list[i].end != end ||
            memcmp(expected.bytes + begin, got.bytes + begin, end - begin) != 0)
            return expected.list[i].kernel;
    }
    return NULL;
}
