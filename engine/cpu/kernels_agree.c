/*
 * The self-test's comparison: each kernel once or twice on small inputs with ragged ends, bytes
 * against ref. Inputs are made from a counter, so that a failure repeats itself.
 */
#include "engine/cpu/kernels_agree.h"

#include "engine/base/fp16.h"
#include "engine/base/size.h"

#include <math.h>
#include <string.h>

#define N 333       /* elements of a vector: no multiple of any register */
#define N_TABLE 512 /* elements of a table row: whole blocks of every type */
#define N_ROWS 19
#define N_WHOLE 32 /* N_ROWS and N_TOKENS rounded up as in a panel and in packed tokens */
#define N_LINES 3
#define N_TOKENS 18
#define HEAD_DIM 68 /* one whole register of every width and a tail */
#define V_STRIDE 96
#define N_Q 3
#define N_TILE 3 /* tokens of an attention tile */
#define ROW_BYTES (N_TABLE * 4)

/* A mixing function of a counter (the finaliser of splitmix64). */
static uint32_t mix(uint64_t i)
{
    uint64_t z = i * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

/* (n) floats in -span .. span */
static void fill(float *x, size_t n, float span, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = ((float)(mix(seed + i) & 0xffffu) / 32768.0f - 1.0f) * span;
}

static void fill_f16(uint16_t *x, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = f32_to_f16((float)(mix(seed + i) & 0xffffu) / 32768.0f - 1.0f);
}

static bool same(const void *a, const void *b, size_t n_bytes)
{
    return memcmp(a, b, n_bytes) == 0;
}

static const char *check_vectors(const struct cpu_kernels *k, const struct cpu_kernels *ref)
{
    float x[N], w[N], a[N], b[N];
    fill(x, N, 20.0f, 1);
    fill(w, N, 2.0f, 1000);

    k->rms_norm(x, w, N, 1e-5f, a);
    ref->rms_norm(x, w, N, 1e-5f, b);
    if (!same(a, b, sizeof a))
        return "rms_norm";
    k->relu2_gate(x, w, N, a);
    ref->relu2_gate(x, w, N, b);
    if (!same(a, b, sizeof a))
        return "relu2_gate";
    k->silu_gate(x, w, N, a);
    ref->silu_gate(x, w, N, b);
    if (!same(a, b, sizeof a))
        return "silu_gate";
    k->add(a, x, N);
    ref->add(b, x, N);
    if (!same(a, b, sizeof a))
        return "add";
    k->rope_neox(a, x, w, N - 1);
    ref->rope_neox(b, x, w, N - 1);
    if (!same(a, b, sizeof a))
        return "rope_neox";
    k->rope_norm(a, x, w, N - 1);
    ref->rope_norm(b, x, w, N - 1);
    return same(a, b, sizeof a) ? NULL : "rope_norm";
}

static const char *check_conversions(const struct cpu_kernels *k, const struct cpu_kernels *ref)
{
    float x[N], fa[N], fb[N];
    int32_t acc[N];
    uint16_t a[N], b[N];
    fill(x, N, 70000.0f, 2000);
    for (size_t i = 0; i < N; i++)
        acc[i] = (int32_t)mix(3000 + i);
    k->to_f16(x, N, a);
    ref->to_f16(x, N, b);
    if (!same(a, b, sizeof a))
        return "to_f16";
    k->scale_acc(acc, N, 0.37f, fa);
    ref->scale_acc(acc, N, 0.37f, fb);
    return same(fa, fb, sizeof fa) ? NULL : "scale_acc";
}

/* Three tokens of N / 3 rows; d, the extra factor and the bias out of one vector. */
static const char *check_sums(const struct cpu_kernels *k, const struct cpu_kernels *ref)
{
    float x[N], out[2][N];
    int32_t acc[N];
    const struct cpu_kernels *table[2] = {k, ref};
    const size_t stride = N / 3;
    fill(x, N, 0.01f, 8000);
    for (size_t i = 0; i < N; i++)
        acc[i] = (int32_t)(mix(9000 + i) % 2001) - 1000;
    const struct acc_tile a = {acc, stride, 3, stride, x, 1.5f, x},
                          b = {acc, stride, 3, stride, x, 1.0f, NULL};
    for (size_t i = 0; i < 2; i++)
        table[i]->acc_store(&a, out[i], stride);
    if (!same(out[0], out[1], sizeof out[0]))
        return "acc_store";
    for (size_t i = 0; i < 2; i++)
        table[i]->acc_add(&a, out[i], stride);
    if (!same(out[0], out[1], sizeof out[0]))
        return "acc_add";
    for (size_t i = 0; i < 2; i++)
        table[i]->acc_relu2(&a, &b, out[i], stride);
    if (!same(out[0], out[1], sizeof out[0]))
        return "acc_relu2";
    for (size_t i = 0; i < 2; i++)
        table[i]->acc_silu(&a, &b, out[i], stride);
    return same(out[0], out[1], sizeof out[0]) ? NULL : "acc_silu";
}

struct ternary_case {
    _Alignas(64) uint8_t lines[N_ROWS * N_LINES * LINE_BYTES];
    _Alignas(64) int8_t q[2][N_TOKENS * N_LINES * LINE_COLS];
    int32_t q_sums[N_TOKENS];
    int32_t acc[2][N_TOKENS * N_ROWS];
    _Alignas(64) int8_t packed[N_WHOLE * N_LINES * LINE_COLS];
    _Alignas(64) int8_t own[PACK_TOKENS * N_LINES * LINE_COLS];
    _Alignas(64) uint8_t panel[N_WHOLE * N_LINES * LINE_COLS];
};

static void multiply(const struct ternary_gemm *g, const struct ternary_mat *w,
                     struct ternary_case *c, int32_t *acc)
{
    for (size_t t = 0; t < N_TOKENS; t++)
        g->pack(c->q[1] + t * N_LINES * LINE_COLS, N_LINES, t, c->packed);
    g->unpack(w, 0, N_ROWS, c->panel);
    for (size_t t = 0; t < N_TOKENS; t += g->tile_tokens) {
        const size_t n = size_min(g->tile_tokens, N_TOKENS - t);
        const int8_t *q = g->gather(c->packed + t * N_LINES * LINE_COLS, N_LINES, n, c->own);
        g->matmul(w, 0, N_ROWS,
                  &(struct ternary_batch){.q = q,
                                          .q_sums = c->q_sums + t,
                                          .panel = c->panel,
                                          .n_tokens = n,
                                          .acc = acc + t * N_ROWS,
                                          .acc_stride = N_ROWS});
    }
}

/* Every third row, and the lines as columns of one line each. */
static const char *check_skipped(const struct cpu_kernels *k, const struct cpu_kernels *ref,
                                 const struct ternary_case *c)
{
    const struct ternary_mat w = {c->lines, N_ROWS, N_LINES};
    const struct ternary_cols cols = {c->lines, N_ROWS * N_LINES, 1};
    int32_t numbers[2][N_ROWS * N_LINES + LIVE_SLACK] = {{0}}, rows[N_ROWS];
    _Alignas(64) int32_t acc[2][LINE_COLS] = {{0}};
    float gate[N_ROWS];
    size_t n_rows = 0, n[2];
    for (size_t i = 0; i < N_ROWS; i += 3)
        rows[n_rows++] = (int32_t)i;
    k->ternary_some(&w, rows, n_rows, c->q[0], c->q_sums[0], acc[0]);
    ref->ternary_some(&w, rows, n_rows, c->q[0], c->q_sums[0], acc[1]);
    if (!same(acc[0], acc[1], sizeof acc[0]))
        return "ternary_some";
    fill(gate, N_ROWS, 1.0f, 70000);
    n[0] = k->live_gates(gate, N_ROWS, numbers[0]);
    n[1] = ref->live_gates(gate, N_ROWS, numbers[1]);
    if (n[0] != n[1] || !same(numbers[0], numbers[1], n[0] * sizeof(int32_t)))
        return "live_gates";
    n[0] = k->live_inputs(c->q[0], cols.n_cols, numbers[0]);
    n[1] = ref->live_inputs(c->q[0], cols.n_cols, numbers[1]);
    if (n[0] != n[1] || !same(numbers[0], numbers[1], n[0] * sizeof(int32_t)))
        return "live_inputs";
    k->ternary_columns(&cols, numbers[0], n[0], c->q[0], acc[0]);
    ref->ternary_columns(&cols, numbers[0], n[0], c->q[0], acc[1]);
    return same(acc[0], acc[1], sizeof acc[0]) ? NULL : "ternary_columns";
}

static const char *check_ternary(const struct cpu_kernels *k, const struct cpu_kernels *ref)
{
    struct ternary_case c = {.q_sums = {0}}; /* tokens and rows that are missing are read too */
    const size_t n = N_LINES * LINE_COLS - 11;
    float x[N_LINES * LINE_COLS], norm[N_LINES * LINE_COLS];
    struct act_scale s[2];
    fill(norm, n, 2.0f, 900);
    for (size_t i = 0; i < sizeof c.lines; i++) { /* four codes of 0 .. 2 */
        const uint32_t u = mix(4000 + i);
        c.lines[i] = (uint8_t)(u % 3 | u / 3 % 3 << 2 | u / 9 % 3 << 4 | u / 27 % 3 << 6);
    }
    for (size_t t = 0; t < N_TOKENS; t++) {
        fill(x, n, 3.0f, 5000 + 1000 * t);
        const struct act_in in = {
            .x = x, .w = t % 2 ? norm : NULL, .n = n, .eps = 1e-5f, .ahead = x};
        k->quantise(&in, c.q[0] + t * N_LINES * LINE_COLS, &s[0]);
        ref->quantise(&in, c.q[1] + t * N_LINES * LINE_COLS, &s[1]);
        if (!same(&s[0].s, &s[1].s, sizeof s[0].s) || s[0].q_sum != s[1].q_sum)
            return "quantise";
        c.q_sums[t] = s[1].q_sum;
    }
    if (!same(c.q[0], c.q[1], sizeof c.q[0]))
        return "quantise";

    const struct ternary_mat w = {c.lines, N_ROWS, N_LINES};
    k->ternary_matvec(&w, 0, N_ROWS, c.q[0], c.q_sums[0], c.acc[0]);
    ref->ternary_matvec(&w, 0, N_ROWS, c.q[0], c.q_sums[0], c.acc[1]);
    if (!same(c.acc[0], c.acc[1], N_ROWS * sizeof(int32_t)))
        return "ternary_matvec";
    const char *skipped = check_skipped(k, ref, &c);
    if (skipped)
        return skipped;
    multiply(&k->few, &w, &c, c.acc[0]);
    multiply(&ref->few, &w, &c, c.acc[1]);
    if (!same(c.acc[0], c.acc[1], sizeof c.acc[0]))
        return "ternary_matmul for few tokens";
    multiply(&k->tile, &w, &c, c.acc[0]);
    if (!same(c.acc[0], c.acc[1], sizeof c.acc[0]))
        return "ternary_matmul for a tile of tokens";
    multiply(&k->many, &w, &c, c.acc[0]);
    return same(c.acc[0], c.acc[1], sizeof c.acc[0]) ? NULL : "ternary_matmul for many tokens";
}

struct attn_case {
    _Alignas(64) uint16_t k[HEAD_DIM * ATTN_BLOCK];
    _Alignas(64) uint16_t v[ATTN_BLOCK * V_STRIDE];
    float q[N_Q * HEAD_DIM];
    float m[2][N_Q], l[2][N_Q], o[2][N_Q * HEAD_DIM];
    float big_m[2], big_l[2], big_o[2][HEAD_DIM], out[2][HEAD_DIM];
    float tile_m[2][N_TILE * N_Q], tile_l[2][N_TILE * N_Q], tile_o[2][N_TILE * N_Q * HEAD_DIM];
    /* attn_tile_floats */
    _Alignas(64) float scratch[ATTN_BLOCK * V_STRIDE + ATTN_TILE * N_Q * (ATTN_BLOCK + 2)];
};

/* The same keys twice for three tokens: a first block, and one that only the last sees whole. */
static bool tiles_agree(const struct cpu_kernels *const table[2], struct attn_case *c)
{
    for (size_t i = 0; i < 2; i++)
        for (size_t block = 0; block < 2; block++)
            table[i]->attn_tile(&(struct attn_tile){.q = c->q,
                                                    .q_stride = 0,
                                                    .k = c->k,
                                                    .v = c->v,
                                                    .n_tokens = N_TILE,
                                                    .n_q = N_Q,
                                                    .head_dim = HEAD_DIM,
                                                    .v_stride = V_STRIDE,
                                                    .n_seen = block == 0 ? ATTN_BLOCK : 62,
                                                    .is_first = block == 0,
                                                    .m = c->tile_m[i],
                                                    .l = c->tile_l[i],
                                                    .o = c->tile_o[i],
                                                    .scratch = c->scratch});
    return same(c->tile_m[0], c->tile_m[1], sizeof c->tile_m[0]) &&
           same(c->tile_l[0], c->tile_l[1], sizeof c->tile_l[0]) &&
           same(c->tile_o[0], c->tile_o[1], sizeof c->tile_o[0]);
}

/* What is in k and v taken as bytes: any are valid. */
static bool bytes_agree(const struct cpu_kernels *const table[2], struct attn_case *c)
{
    float scales[2 * ATTN_BLOCK];
    fill(scales, 2 * ATTN_BLOCK, 0.01f, 80000);
    for (size_t i = 0; i < 2 * ATTN_BLOCK; i++)
        scales[i] = fabsf(scales[i]) + 1e-4f;
    for (size_t i = 0; i < 2; i++) {
        struct attn_tile tile = {.q = c->q,
                                 .k = c->k,
                                 .v = c->v,
                                 .scales = scales,
                                 .ahead = c->k,
                                 .n_tokens = N_TILE,
                                 .n_q = N_Q,
                                 .head_dim = HEAD_DIM,
                                 .v_stride = V_STRIDE,
                                 .n_seen = 43,
                                 .is_first = true,
                                 .m = c->tile_m[i],
                                 .l = c->tile_l[i],
                                 .o = c->tile_o[i],
                                 .scratch = c->scratch};
        table[i]->attn_tile_q8(&tile);
        tile.is_first = false;
        table[i]->attn_tile_q8(&tile);
    }
    return same(c->tile_m[0], c->tile_m[1], sizeof c->tile_m[0]) &&
           same(c->tile_l[0], c->tile_l[1], sizeof c->tile_l[0]) &&
           same(c->tile_o[0], c->tile_o[1], sizeof c->tile_o[0]);
}

static const char *check_attention(const struct cpu_kernels *k, const struct cpu_kernels *ref)
{
    struct attn_case c;
    const struct cpu_kernels *table[2] = {k, ref};
    fill_f16(c.k, HEAD_DIM * ATTN_BLOCK, 20000);
    fill_f16(c.v, ATTN_BLOCK * V_STRIDE, 40000);
    fill(c.q, N_Q * HEAD_DIM, 2.0f, 60000);
    for (size_t i = 0; i < 2; i++)
        table[i]->attn_block(&(struct attn_block){.q = c.q,
                                                  .k = c.k,
                                                  .v = c.v,
                                                  .n_q = N_Q,
                                                  .head_dim = HEAD_DIM,
                                                  .v_stride = V_STRIDE,
                                                  .n_seen = 45,
                                                  .m = c.m[i],
                                                  .l = c.l[i],
                                                  .o = c.o[i]});
    if (!same(c.m[0], c.m[1], sizeof c.m[0]) || !same(c.l[0], c.l[1], sizeof c.l[0]) ||
        !same(c.o[0], c.o[1], sizeof c.o[0]))
        return "attn_block";
    if (!tiles_agree(table, &c))
        return "attn_tile";
    if (!bytes_agree(table, &c))
        return "attn_block_q8";
    for (size_t i = 0; i < 2; i++) {
        c.big_m[i] = 0.25f;
        c.big_l[i] = 3.5f;
        fill(c.big_o[i], HEAD_DIM, 5.0f, 70000);
        table[i]->attn_merge(&c.big_m[i], &c.big_l[i], c.big_o[i], c.m[1], c.l[1], c.o[1],
                             HEAD_DIM);
        table[i]->attn_finish(c.big_o[i], c.big_l[i], HEAD_DIM, c.out[i]);
    }
    if (!same(&c.big_m[0], &c.big_m[1], sizeof(float)) ||
        !same(&c.big_l[0], &c.big_l[1], sizeof(float)) ||
        !same(c.big_o[0], c.big_o[1], sizeof c.big_o[0]))
        return "attn_merge";
    return same(c.out[0], c.out[1], sizeof c.out[0]) ? NULL : "attn_finish";
}

/* Random bytes are a valid row of every type, but halves and floats among them must be finite. */
static void fill_row(uint8_t *row, enum tensor_type type, uint64_t seed)
{
    for (size_t i = 0; i < ROW_BYTES; i++)
        row[i] = (uint8_t)(mix(seed + i) & (tensor_geometries[type].is_float ? 0xbfu : 0xffu));
    for (size_t i = 0; i < N_TABLE; i += 32) { /* the scales, wherever this type keeps them */
        if (type == TENSOR_Q8_0)
            row[i / 32 * 34 + 1] &= 0x3f;
        if (type == TENSOR_Q4_0)
            row[i / 32 * 18 + 1] &= 0x3f;
        if (type == TENSOR_Q4_K)
            row[i / 256 * 144 + 1] &= 0x3f, row[i / 256 * 144 + 3] &= 0x3f;
        if (type == TENSOR_Q6_K)
            row[i / 256 * 210 + 209] &= 0x3f;
    }
}

static const char *check_rows(const struct cpu_kernels *k, const struct cpu_kernels *ref)
{
    uint8_t rows[3 * ROW_BYTES];
    float h[N_TABLE], a[N_TABLE], b[N_TABLE], z[2][3];
    const struct table_rows table = {rows, ROW_BYTES, 3, NULL};
    fill(h, N_TABLE, 4.0f, 80000);
    for (enum tensor_type type = 0; type < TENSOR_N_TYPES; type++) {
        if (!ref->row_decode[type])
            continue;
        for (size_t r = 0; r < 3; r++)
            fill_row(rows + r * ROW_BYTES, type, 90000 + 10000 * r);
        k->row_decode[type](rows, N_TABLE, a);
        ref->row_decode[type](rows, N_TABLE, b);
        if (!same(a, b, sizeof a))
            return "row_decode";
        k->rows_dot[type](&table, h, N_TABLE, z[0], a);
        ref->rows_dot[type](&table, h, N_TABLE, z[1], b);
        if (!same(z[0], z[1], sizeof z[0]))
            return "rows_dot";
    }
    return NULL;
}

#define N_BLOCKS 3
#define STEP_STRIDE 8

struct group_case {
    _Alignas(64) int8_t x[N_BLOCKS * 2 * COARSE_COLS];
    _Alignas(64) int8_t gathered[COARSE_GROUP * N_BLOCKS * 2 * COARSE_COLS];
    _Alignas(64) int32_t fix[N_BLOCKS * COARSE_GROUP];
    _Alignas(64) float spread2[N_BLOCKS * COARSE_GROUP];
    _Alignas(64) float unit[COARSE_GROUP];
    float up[2][2][N_ROWS];
};

struct coarse_case {
    _Alignas(64) uint8_t lines[2][N_ROWS * N_BLOCKS * LINE_BYTES];
    _Alignas(64) int8_t x[N_BLOCKS * 2 * COARSE_COLS];
    _Alignas(64) int32_t fix[N_BLOCKS * 16];
    uint16_t steps[2][N_ROWS * STEP_STRIDE];
    float spread[STEP_STRIDE], up[2][N_ROWS];
};

/* Two hidden states, the second of which is the first's planes in another order. */
static const char *check_group(const struct cpu_kernels *k, const struct cpu_kernels *ref,
                               const struct coarse_mat *m, const struct coarse_case *c)
{
    const struct cpu_kernels *table[2] = {k, ref};
    struct group_case g = {.up = {{{0}}}};
    const int8_t *x[2] = {c->x, g.x};
    for (size_t i = 0; i < sizeof g.x; i++)
        g.x[i] = c->x[(i + 64) % sizeof g.x];
    for (size_t i = 0; i < N_BLOCKS * COARSE_GROUP; i++)
        g.fix[i] = (int32_t)(mix(330000 + i) % 2000000) - 1000000;
    fill(g.spread2, N_BLOCKS * COARSE_GROUP, 3.0f, 340000);
    for (size_t i = 0; i < N_BLOCKS * COARSE_GROUP; i++)
        g.spread2[i] = g.spread2[i] * g.spread2[i];
    fill(g.unit, COARSE_GROUP, 1.0f, 350000);
    for (size_t i = 0; i < 2; i++) {
        float *const up[2] = {g.up[i][0], g.up[i][1]};
        table[i]->coarse_gather(x, 2, N_BLOCKS, g.gathered);
        table[i]->coarse_bounds(
            m, 0, N_ROWS, &(struct coarse_group){2, g.gathered, g.fix, g.spread2, g.unit}, up);
    }
    return same(g.up[0], g.up[1], sizeof g.up[0]) ? NULL : "coarse_bounds";
}

static const char *check_coarse(const struct cpu_kernels *k, const struct cpu_kernels *ref)
{
    struct coarse_case c = {.spread = {0}};
    const struct cpu_kernels *table[2] = {k, ref};
    float w[N_BLOCKS * COARSE_COLS], worst[2];
    for (size_t r = 0; r < N_ROWS; r++) {
        fill(w, N_BLOCKS * COARSE_COLS, 0.1f, 200000 + 1000 * r);
        for (size_t i = 0; i < 2; i++)
            worst[i] = table[i]->coarse_pack(w, N_BLOCKS, r, c.lines[i] + r * N_BLOCKS * LINE_BYTES,
                                             c.steps[i] + r * STEP_STRIDE);
        if (worst[0] != worst[1])
            return "coarse_pack";
    }
    if (!same(c.lines[0], c.lines[1], sizeof c.lines[0]) ||
        !same(c.steps[0], c.steps[1], sizeof c.steps[0]))
        return "coarse_pack";
    for (size_t i = 0; i < sizeof c.x; i++) /* the second plane holds even numbers */
        c.x[i] = (int8_t)((int)(mix(300000 + i) % 255) - 127) & (i / COARSE_COLS % 2 ? ~1 : ~0);
    for (size_t i = 0; i < N_BLOCKS * 16; i++)
        c.fix[i] = (int32_t)(mix(310000 + i) % 2000000) - 1000000;
    fill(c.spread, N_BLOCKS, 3.0f, 320000);
    const struct coarse_mat m = {c.lines[1], c.steps[1], N_BLOCKS, STEP_STRIDE};
    const struct coarse_query q = {c.x, c.fix, c.spread, 0.37f};
    for (size_t i = 0; i < 2; i++)
        table[i]->coarse_bound(&m, 0, N_ROWS, &q, c.up[i]);
    if (!same(c.up[0], c.up[1], sizeof c.up[0]))
        return "coarse_bound";
    return check_group(k, ref, &m, &c);
}

const char *kernels_disagreement(const struct cpu_kernels *k)
{
    static const struct cpu_caps ref_only = {.has[ISA_REF] = true};
    struct cpu_kernels ref;
    cpu_kernels_init(&ref, &ref_only);
    const char *name = check_vectors(k, &ref);
    if (!name)
        name = check_conversions(k, &ref);
    if (!name)
        name = check_sums(k, &ref);
    if (!name)
        name = check_ternary(k, &ref);
    if (!name)
        name = check_attention(k, &ref);
    if (!name)
        name = check_rows(k, &ref);
    if (!name)
        name = check_coarse(k, &ref);
    return name;
}
