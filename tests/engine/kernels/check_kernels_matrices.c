/*
 * Cases of check_kernels for the kernels that work on matrices: ternary products, table rows, the
 * coarse plane.
 */
#include "tests/engine/kernels/check_kernels.h"

#include "engine/base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct ternary_case {
    struct ternary_mat w;
    size_t row0, row1, n_tokens;
    int8_t *q;
    int32_t *q_sums;
};

/* A number of columns that uses all of the last line, one column of it, or a part. */
static size_t any_cols(struct check *c, size_t n_lines)
{
    const size_t last[3] = {LINE_COLS, 1, 1 + rng_below(&c->rng, LINE_COLS)};
    return (n_lines - 1) * LINE_COLS + last[rng_below(&c->rng, 3)];
}

static struct ternary_case make_ternary(struct check *c, size_t n_rows, size_t n_lines,
                                        size_t n_tokens, enum ternary_pattern p)
{
    const size_t n = any_cols(c, n_lines);
    struct ternary_case t = {.n_tokens = n_tokens};
    const size_t shift = 32 * (rng_next(&c->rng) & 1); /* lines are aligned to 32 bytes only */
    uint8_t *lines = guard_alloc(n_rows * n_lines * LINE_BYTES + shift);
    t.q = guard_alloc(n_tokens * n_lines * LINE_COLS);
    t.q_sums = guard_alloc(n_tokens * sizeof *t.q_sums);
    for (size_t r = 0; r < n_rows; r++)
        fill_lines(&c->rng, p, lines + r * n_lines * LINE_BYTES, n_lines, n);
    for (size_t i = 0; i < n_tokens; i++)
        t.q_sums[i] = fill_activations(&c->rng, p, t.q + i * n_lines * LINE_COLS, n_lines, n);
    t.w = (struct ternary_mat){lines, n_rows, n_lines, 0};
    t.row0 = rng_below(&c->rng, n_rows);
    t.row1 = t.row0 + 1 + rng_below(&c->rng, n_rows - t.row0);
    return t;
}

static void matvec_of(struct check *c, size_t n_rows, size_t n_lines, enum ternary_pattern p)
{
    if (!check_selects(c))
        return;
    const struct ternary_case t = make_ternary(c, n_rows, n_lines, 1, p);
    const size_t n_bytes = (t.row1 - t.row0) * sizeof(int32_t);
    const struct outputs o = outputs_alloc(n_bytes, 4 * rng_below(&c->rng, 16));
    c->k->ternary_matvec(&t.w, t.row0, t.row1, t.q, t.q_sums[0], o.p[0]);
    c->ref->ternary_matvec(&t.w, t.row0, t.row1, t.q, t.q_sums[0], o.p[1]);
    outputs_compare(c, &o, false, "rows %zu to %zu of %zu, %zu lines, pattern %d", t.row0, t.row1,
                    n_rows, n_lines, (int)p);
    guard_release();
}

/* Some of n numbers, ascending: all, none, one, or about half. */
static size_t any_numbers(struct check *c, size_t n, int32_t *out)
{
    const size_t how = rng_below(&c->rng, 8), one = rng_below(&c->rng, n);
    size_t n_chosen = 0;
    for (size_t i = 0; i < n; i++)
        if (how == 0 || (how == 1 && i == one) || (how > 2 && rng_next(&c->rng) & 1))
            out[n_chosen++] = (int32_t)i;
    return n_chosen;
}

static void listed_of(struct check *c, size_t n_rows, size_t n_lines, enum ternary_pattern p)
{
    if (!check_selects(c))
        return;
    const struct ternary_case t = make_ternary(c, n_rows, n_lines, 1, p);
    const struct outputs o = outputs_alloc(n_rows * sizeof(int32_t), 4 * rng_below(&c->rng, 16));
    int32_t *numbers = guard_alloc(n_rows * sizeof *numbers);
    const size_t n = any_numbers(c, n_rows, numbers);
    int32_t *rows = guard_alloc(n * sizeof *rows);
    memcpy(rows, numbers, n * sizeof *rows);
    c->k->ternary_listed(&t.w, rows, n, t.q, t.q_sums[0], o.p[0]);
    c->ref->ternary_listed(&t.w, rows, n, t.q, t.q_sums[0], o.p[1]);
    outputs_compare(c, &o, false, "%zu of %zu rows, %zu lines, pattern %d", n, n_rows, n_lines,
                    (int)p);
    guard_release();
}

static void check_listed(struct check *c)
{
    for (enum ternary_pattern p = 0; p < N_TERNARY_PATTERNS; p++) {
        for (size_t n_rows = 1; n_rows <= 40; n_rows += 1 + n_rows / 4)
            for (size_t n_lines = 1; n_lines <= 20; n_lines += 1 + n_lines / 5)
                listed_of(c, n_rows, n_lines, p);
        listed_of(c, 9, 27, p);
        listed_of(c, 9, 70, p);
    }
}

/* Columns of n_lines whole lines; some of them are multiplied. */
static void columns_of(struct check *c, size_t n_cols, size_t n_lines, enum ternary_pattern p)
{
    if (!check_selects(c))
        return;
    const size_t col_bytes = n_lines * LINE_BYTES, n_bytes = n_lines * LINE_COLS * sizeof(int32_t);
    uint8_t *lines = guard_alloc(n_cols * col_bytes);
    int8_t *all = guard_alloc(size_round_up(n_cols, LINE_COLS)), *q = guard_alloc(n_cols);
    int32_t *numbers = guard_alloc(n_cols * sizeof *numbers);
    const size_t n = any_numbers(c, n_cols, numbers);
    int32_t *cols = guard_alloc(n * sizeof *cols);
    for (size_t i = 0; i < n_cols; i++)
        fill_lines(&c->rng, p, lines + i * col_bytes, n_lines, n_lines * LINE_COLS);
    (void)fill_activations(&c->rng, p, all, size_round_up(n_cols, LINE_COLS) / LINE_COLS, n_cols);
    memcpy(q, all, n_cols);
    memcpy(cols, numbers, n * sizeof *cols);
    const struct ternary_cols w = {lines, n_cols, n_lines};
    const struct outputs o = outputs_alloc(n_bytes, 0);
    c->k->ternary_columns(&w, cols, n, q, o.p[0]);
    c->ref->ternary_columns(&w, cols, n, q, o.p[1]);
    outputs_compare(c, &o, false, "%zu of %zu columns, %zu lines, pattern %d", n, n_cols, n_lines,
                    (int)p);
    guard_release();
}

static void check_columns(struct check *c)
{
    for (enum ternary_pattern p = 0; p < N_TERNARY_PATTERNS; p++) {
        for (size_t n_cols = 1; n_cols <= 60; n_cols++)
            columns_of(c, n_cols, 1 + rng_below(&c->rng, 11), p);
        columns_of(c, 3000, 2, p);
    }
}

/* live_gates and live_inputs on random input. */
static void live_of(struct check *c, size_t n, enum pattern p)
{
    if (!check_selects(c))
        return;
    float *gate = guard_alloc(n * sizeof *gate);
    int8_t *q = guard_alloc(n);
    int32_t *out[2];
    size_t n_live[2];
    fill_floats(&c->rng, p, gate, n);
    for (size_t i = 0; i < n; i++) {
        gate[i] = rng_below(&c->rng, 20) == 0 ? NAN : gate[i];
        q[i] = (int8_t)(rng_next(&c->rng) & 1 ? 0 : rng_next(&c->rng));
    }
    for (size_t i = 0; i < 2; i++)
        out[i] = guard_alloc((n + LIVE_SLACK) * sizeof *out[i]);
    for (size_t kind = 0; kind < 2; kind++) {
        const struct cpu_kernels *const k[2] = {c->k, c->ref};
        for (size_t i = 0; i < 2; i++)
            n_live[i] =
                kind == 0 ? k[i]->live_gates(gate, n, out[i]) : k[i]->live_inputs(q, n, out[i]);
        c->n_calls++;
        if (n_live[0] == n_live[1] && memcmp(out[0], out[1], n_live[0] * sizeof *out[0]) == 0)
            continue;
        c->n_failed++;
        printf("%s %s: %zu live for %zu, n %zu\n", c->isa, c->kernel, n_live[0], n_live[1], n);
    }
    guard_release();
}

static void check_live(struct check *c)
{
    for (enum pattern p = 0; p < N_PATTERNS; p++)
        for (size_t n = 1; n <= 300; n += 1 + n / 40)
            live_of(c, n, p);
}

static void check_matvec(struct check *c)
{
    for (enum ternary_pattern p = 0; p < N_TERNARY_PATTERNS; p++) {
        for (size_t n_rows = 1; n_rows <= 11; n_rows++)
            for (size_t n_lines = 1; n_lines <= 20; n_lines += 1 + n_lines / 5)
                matvec_of(c, n_rows, n_lines, p);
        matvec_of(c, 5, 27, p); /* 6,912 columns */
        matvec_of(c, 5, 70, p); /* several rounds of every widening */
    }
}

/* Pack, unpack, multiply. Bytes that a step does not write have the value 0xa5. */
static void multiply(const struct ternary_gemm *g, const struct ternary_case *t, int32_t *acc,
                     size_t acc_stride)
{
    const size_t q_bytes = t->w.n_lines * LINE_COLS, n_rows = t->row1 - t->row0;
    int8_t *packed = guard_alloc(size_round_up(t->n_tokens, PACK_TOKENS) * q_bytes);
    uint8_t *panel = guard_alloc(size_round_up(n_rows, PANEL_ALIGN) * q_bytes);
    int8_t *own = guard_alloc(PACK_TOKENS * q_bytes);
    memset(packed, 0xa5, size_round_up(t->n_tokens, PACK_TOKENS) * q_bytes);
    memset(panel, 0xa5, size_round_up(n_rows, PANEL_ALIGN) * q_bytes);
    for (size_t i = 0; i < t->n_tokens; i++)
        g->pack(t->q + i * q_bytes, t->w.n_lines, i, packed);
    g->unpack(&t->w, t->row0, t->row1, panel);
    for (size_t i = 0; i < t->n_tokens; i += g->call_tokens) {
        const size_t n = size_min(g->call_tokens, t->n_tokens - i);
        g->matmul(
            &t->w, t->row0, t->row1,
            &(struct ternary_batch){.q = g->gather(packed + i * q_bytes, t->w.n_lines, n, own),
                                    .q_sums = t->q_sums + i,
                                    .panel = panel,
                                    .n_tokens = n,
                                    .acc = acc + i * acc_stride,
                                    .acc_stride = acc_stride,
                                    .out = (const float *)(const void *)panel, /* any address */
                                    .out_stride = n_rows});
    }
}

static void matmul_of(struct check *c, struct ternary_case t, enum ternary_pattern p)
{
    const size_t n_rows = t.row1 - t.row0, stride = n_rows + rng_below(&c->rng, 5);
    const size_t n_bytes = ((t.n_tokens - 1) * stride + n_rows) * sizeof(int32_t);
    const struct outputs o = outputs_alloc(n_bytes, 4 * rng_below(&c->rng, 16));
    const struct {
        const char *name;
        const struct ternary_gemm *gemm;
    } gemms[] = {{"few", &c->k->few}, {"medium", &c->k->medium}, {"many", &c->k->many}};
    const size_t i = rng_below(&c->rng, 3);
    multiply(gemms[i].gemm, &t, o.p[0], stride);
    multiply(&c->ref->few, &t, o.p[1], stride);
    outputs_compare(c, &o, false, "%s, rows %zu to %zu, %zu lines, %zu tokens, pattern %d",
                    gemms[i].name, t.row0, t.row1, t.w.n_lines, t.n_tokens, (int)p);
    guard_release();
}

static void check_matmul(struct check *c)
{
    for (enum ternary_pattern p = 0; p < N_TERNARY_PATTERNS; p++) {
        for (size_t n_tokens = 1; n_tokens <= 2 * MATMUL_TOKENS + 1; n_tokens++)
            for (size_t n_lines = 1; n_lines <= 20; n_lines += 3) {
                const size_t n_rows = 1 + rng_below(&c->rng, 50);
                if (check_selects(c))
                    matmul_of(c, make_ternary(c, n_rows, n_lines, n_tokens, p), p);
            }
        for (size_t i = 0; i < 4; i++) {
            matmul_of(c, make_ternary(c, 9, 27, MATMUL_TOKENS, p), p);
            matmul_of(c, make_ternary(c, 6, 70, 7, p), p);
            matmul_of(c, make_ternary(c, PANEL_ROWS, 2, MATMUL_TOKENS + 5, p), p);
        }
    }
}

static void decode_of(struct check *c, enum tensor_type type, size_t n)
{
    const struct tensor_geometry *g = &tensor_geometries[type];
    if (!check_selects(c))
        return;
    const size_t n_bytes = n / g->block_cols * g->block_bytes;
    uint8_t *row = guard_alloc(n_bytes);
    fill_table(&c->rng, type, row, n_bytes);
    const struct outputs o = outputs_alloc(n * sizeof(float), 4 * rng_below(&c->rng, 16));
    c->k->row_decode[type](row, n, o.p[0]);
    c->ref->row_decode[type](row, n, o.p[1]);
    outputs_compare(c, &o, true, "%s, n %zu", g->name, n);
    guard_release();
}

/* Neighbouring rows, or some rows in any order that include the last one. */
static void rows_dot_of(struct check *c, enum tensor_type type, size_t n, size_t n_rows,
                        enum pattern p)
{
    const struct tensor_geometry *g = &tensor_geometries[type];
    if (!check_selects(c))
        return;
    const size_t used = n / g->block_cols * g->block_bytes;
    const size_t row_bytes = used + rng_below(&c->rng, 3); /* rows may have gaps between them */
    uint8_t *rows = guard_alloc((n_rows - 1) * row_bytes + used);
    float *h = guard_alloc(n * sizeof *h), *scratch = guard_alloc(n * sizeof *scratch);
    for (size_t r = 0; r < n_rows; r++)
        fill_table(&c->rng, type, rows + r * row_bytes, used);
    fill_floats(&c->rng, p, h, n);
    struct table_rows t = {rows, row_bytes, n_rows, NULL};
    if (rng_next(&c->rng) & 1) {
        t.n_rows = 1 + rng_below(&c->rng, 20);
        int32_t *ids = guard_alloc(t.n_rows * sizeof *ids);
        for (size_t i = 0; i < t.n_rows; i++)
            ids[i] = (int32_t)(i == 0 ? n_rows - 1 : rng_below(&c->rng, n_rows));
        t.ids = ids;
    }
    const struct outputs o = outputs_alloc(t.n_rows * sizeof(float), 4 * rng_below(&c->rng, 16));
    c->k->rows_dot[type](&t, h, n, o.p[0], scratch);
    c->ref->rows_dot[type](&t, h, n, o.p[1], scratch);
    outputs_compare(c, &o, true, "%s, n %zu, %zu of %zu rows, pattern %d", g->name, n, t.n_rows,
                    n_rows, (int)p);
    guard_release();
}

static void check_rows(struct check *c)
{
    for (enum tensor_type type = 0; type < TENSOR_N_TYPES; type++) {
        if (!c->ref->row_decode[type])
            continue;
        const size_t unit = tensor_geometries[type].block_cols;
        const size_t top = unit == 1 ? 150 : 12 * unit;
        for (size_t n = unit; n <= top; n += unit) {
            decode_of(c, type, n);
            for (enum pattern p = 0; p < N_PATTERNS; p++)
                rows_dot_of(c, type, n, 1 + rng_below(&c->rng, 9), p);
        }
        for (size_t n_rows = 1; n_rows <= 9; n_rows++)
            rows_dot_of(c, type, 2560, n_rows, PATTERN_PLAIN);
    }
}

/* Pack w (n) into a plane of one row. */
static void coarse_pack_n(struct check *c, size_t n_blocks, enum pattern p)
{
    const size_t n = n_blocks * COARSE_COLS, row = rng_next(&c->rng);
    float *w = guard_alloc(n * sizeof *w);
    fill_floats(&c->rng, p, w, n);
    if (rng_below(&c->rng, 4) == 0) /* a damaged table must not cause an undefined conversion */
        w[rng_below(&c->rng, n)] = rng_next(&c->rng) & 1 ? NAN : INFINITY;
    const struct outputs lines = outputs_alloc(n_blocks * LINE_BYTES, 0);
    const struct outputs steps = outputs_alloc(n_blocks * sizeof(uint16_t), 0);
    const struct outputs worst = outputs_alloc(sizeof(float), 0);
    const coarse_pack_fn pack[2] = {c->k->coarse_pack, c->ref->coarse_pack};
    for (size_t i = 0; i < 2; i++)
        *(float *)worst.p[i] = pack[i](w, n_blocks, row, lines.p[i], steps.p[i]);
    outputs_compare(c, &lines, false, "lines, %zu blocks, pattern %d", n_blocks, (int)p);
    outputs_compare(c, &steps, false, "steps, %zu blocks, pattern %d", n_blocks, (int)p);
    outputs_compare(c, &worst, true, "largest, %zu blocks, pattern %d", n_blocks, (int)p);
    guard_release();
}

/* A plane with any codes and steps; if extreme, with the largest codes. */
static struct coarse_mat make_plane(struct check *c, size_t n_rows, size_t n_blocks, bool extreme)
{
    const size_t stride = size_round_up(n_blocks, 8);
    uint8_t *lines = guard_alloc(n_rows * n_blocks * LINE_BYTES);
    uint16_t *steps = guard_alloc(n_rows * stride * sizeof *steps);
    for (size_t i = 0; i < n_rows * n_blocks * LINE_BYTES; i++)
        lines[i] = extreme ? 0xff : (uint8_t)rng_next(&c->rng);
    for (size_t i = 0; i < n_rows * stride; i++)
        steps[i] = i % stride < n_blocks ? (uint16_t)(0x3000 + rng_below(&c->rng, 0x1000)) : 0;
    return (struct coarse_mat){lines, steps, n_blocks, stride, 0};
}

/* All possible codes and bytes; one case in three has only the largest ones. */
static void coarse_bound_n(struct check *c, size_t n_rows, size_t n_blocks)
{
    const bool extreme = rng_below(&c->rng, 3) == 0, negative = rng_next(&c->rng) & 1;
    const struct coarse_mat m = make_plane(c, n_rows, n_blocks, extreme);
    int8_t *x = guard_alloc(n_blocks * 2 * COARSE_COLS);
    int32_t *fix = guard_alloc(n_blocks * 16 * sizeof *fix);
    float *spread = guard_alloc(m.step_stride * sizeof *spread);
    for (size_t i = 0; i < n_blocks * 2 * COARSE_COLS; i++) {
        const bool low = i / COARSE_COLS % 2;
        x[i] = low ? (int8_t)(2 * ((int)rng_below(&c->rng, 128) - 64))
                   : (int8_t)((int)rng_below(&c->rng, 255) - 127);
        if (extreme)
            x[i] = negative ? (low ? -128 : -127) : (low ? 126 : 127);
    }
    for (size_t i = 0; i < n_blocks * 16; i++)
        fix[i] = (int32_t)rng_below(&c->rng, 4000000) - 2000000;
    fill_floats(&c->rng, PATTERN_PLAIN, spread, m.step_stride);
    const struct coarse_query q = {x, fix, spread, 0.01f};
    const size_t row0 = rng_below(&c->rng, n_rows);
    const struct outputs o = outputs_alloc((n_rows - row0) * sizeof(float), 0);
    c->k->coarse_bound(&m, row0, n_rows, &q, o.p[0]);
    c->ref->coarse_bound(&m, row0, n_rows, &q, o.p[1]);
    outputs_compare(c, &o, true, "rows %zu .. %zu, %zu blocks", row0, n_rows, n_blocks);
    guard_release();
}

/* Each of the two kernel tables gathers the hidden states, because their layouts may differ. */
static void coarse_states_n(struct check *c, size_t n_rows, size_t n_blocks, size_t n)
{
    const size_t x_bytes = n_blocks * 2 * COARSE_COLS;
    const bool extreme = rng_below(&c->rng, 3) == 0;
    const struct coarse_mat m = make_plane(c, n_rows, n_blocks, extreme);
    int32_t *fix = guard_alloc(n_blocks * COARSE_STATES * sizeof *fix);
    float *spread2 = guard_alloc(n_blocks * COARSE_STATES * sizeof *spread2);
    float *unit = guard_alloc(COARSE_STATES * sizeof *unit);
    const int8_t *x[COARSE_STATES];
    for (size_t i = 0; i < n_blocks * COARSE_STATES; i++)
        fix[i] = (int32_t)rng_below(&c->rng, 4000000) - 2000000;
    for (size_t i = 0; i < n; i++) {
        int8_t *plane = guard_alloc(x_bytes);
        for (size_t j = 0; j < x_bytes; j++)
            plane[j] = extreme ? (i % 2 ? 127 : -128) : (int8_t)rng_next(&c->rng);
        x[i] = plane;
    }
    fill_floats(&c->rng, PATTERN_PLAIN, spread2, n_blocks * COARSE_STATES);
    for (size_t i = 0; i < n_blocks * COARSE_STATES; i++)
        spread2[i] = spread2[i] * spread2[i];
    fill_floats(&c->rng, PATTERN_PLAIN, unit, COARSE_STATES);
    const size_t row0 = rng_below(&c->rng, n_rows), apart = n_rows - row0 + rng_below(&c->rng, 5);
    const struct outputs o = outputs_alloc(n * apart * sizeof(float), 4 * rng_below(&c->rng, 16));
    const struct cpu_kernels *k[2] = {c->k, c->ref};
    for (size_t j = 0; j < 2; j++) {
        int8_t *gathered = guard_alloc(COARSE_STATES * x_bytes);
        float *bounds[COARSE_STATES];
        for (size_t i = 0; i < n; i++)
            bounds[i] = (float *)o.p[j] + i * apart;
        k[j]->coarse_gather(x, n, n_blocks, gathered);
        k[j]->coarse_bound_states(&m, row0, n_rows,
                                  &(struct coarse_states){n, gathered, fix, spread2, unit}, bounds);
    }
    outputs_compare(c, &o, true, "rows %zu .. %zu, %zu blocks, %zu states", row0, n_rows, n_blocks,
                    n);
    guard_release();
}

static void check_coarse_states(struct check *c)
{
    for (size_t n = 1; n <= COARSE_STATES; n++)
        for (size_t n_blocks = 1; n_blocks < 40; n_blocks += 1 + n_blocks / 3)
            if (check_selects(c))
                coarse_states_n(c, 1 + rng_below(&c->rng, 150), n_blocks, n);
}

static void check_coarse_pack(struct check *c)
{
    for (enum pattern p = 0; p < N_PATTERNS; p++)
        for (size_t n_blocks = 1; n_blocks < 21; n_blocks++)
            if (check_selects(c))
                coarse_pack_n(c, n_blocks, p);
}

static void check_coarse_bound(struct check *c)
{
    for (size_t n_rows = 1; n_rows < 24; n_rows++)
        for (size_t n_blocks = 1; n_blocks < 24; n_blocks += 1 + n_blocks / 4)
            if (check_selects(c))
                coarse_bound_n(c, n_rows, n_blocks);
}

const struct check_case matrix_cases[] = {
    {"coarse_pack", check_coarse_pack},
    {"coarse_bound", check_coarse_bound},
    {"coarse_states", check_coarse_states},
    {"ternary_matvec", check_matvec},
    {"ternary_matmul", check_matmul},
    {"ternary_listed", check_listed},
    {"ternary_columns", check_columns},
    {"live_gates and live_inputs", check_live},
    {"rows", check_rows},
    {NULL, NULL},
};
