/*
 * Linear layers of one token, then of several tokens.
 *
 * For several tokens the outer loop is over panels of rows, the inner loop over calls with
 * gemm->call_tokens tokens, which may be of different sequences. So each line of weights is read
 * from memory once per pass (and unpacked once, unless the product reads lines directly), and stays
 * in the core's own cache for all tokens. The integer sums of a call are still in the cache when
 * they are scaled and stored, added or gated in one step.
 */
#include "engine/cpu/cpu_linear.h"

#include "engine/base/size.h"
#include "engine/cpu/cpu_linear_r16.h"
#include "engine/cpu/cpu_work.h"

#include <string.h>

/* Rows that a thread multiplies at a time with one token. The number is large because the x86
 * kernels read four streams, each a quarter of the rows, and do not prefetch the start of a stream.
 */
#define MATVEC_ROWS 4096
#define COLS_UNIT 4 /* columns that the kernel sums together */
_Static_assert(MATVEC_ROWS <= MATMUL_TOKENS * PANEL_ROWS, "cpu_thread.acc and .y hold them");

/* y (n): x in another order of heads, see struct rotation. */
static void reorder_heads(const struct rotation *r, const float *x, size_t n, float *y)
{
    const size_t dim = n / (r->n_outer * r->n_inner);
    for (size_t outer = 0; outer < r->n_outer; outer++)
        for (size_t inner = 0; inner < r->n_inner; inner++, x += dim)
            memcpy(y + (inner * r->n_outer + outer) * dim, x, dim * sizeof *y);
}

const float *linear_prepare(const struct cpu_thread *th, const struct weights *to, const float *x,
                            const float *w)
{
    const struct backend *b = th->pass->b;
    const struct rotation *r = &to->rotation;
    if (w)
        b->k.rms_norm(x, w, to->n_cols, b->model->hp.rms_eps, th->norm);
    const float *in = w ? th->norm : x;
    if (!r->block)
        return in;
    if (r->n_outer) { /* only for layers without a norm: reorder_heads needs another buffer for y */
        reorder_heads(r, in, to->n_cols, th->norm);
        in = th->norm;
    }
    b->k.rotate(in, r->signs, to->n_cols, r->block, th->norm);
    return th->norm;
}

/* Quantise a token to th->q8, after RMSNorm with w unless w is NULL, and after the rotation. `next`
 * is the token that this thread probably quantises next, or NULL; it is prefetched. */
static struct act_scale quantise_token(const struct cpu_thread *th, const struct weights *to,
                                       const float *x, const float *w, const float *next)
{
    const struct backend *b = th->pass->b;
    const bool is_rotated = to->rotation.block > 0;
    struct act_scale scale;
    b->k.quantise(&(struct act_in){.x = is_rotated ? linear_prepare(th, to, x, w) : x,
                                   .w = is_rotated ? NULL : w,
                                   .n = to->n_cols,
                                   .eps = b->model->hp.rms_eps,
                                   .ahead = next},
                  th->q8, &scale);
    return scale;
}

void linear_acts_to_file_order(int8_t *q, size_t n_lines)
{
    int8_t line[LINE_COLS];
    for (size_t l = 0; l < n_lines; l++, q += LINE_COLS) {
        memcpy(line, q, sizeof line);
        for (size_t i = 0; i < 4; i++)
            /* Layout A: 32 bytes hold 128 columns, bits 2i and 2i + 1 of byte b the code of column
             * 32 (3 - i) + b. */
            for (size_t half = 0; half < 2; half++)
                memcpy(q + 64 * i + 32 * half, line + 128 * half + 32 * (3 - i), 32);
    }
}

static void quantise_many(struct cpu_thread *th, const struct weights *to, struct rows x,
                          const float *w)
{
    const struct scratch *s = &th->pass->b->scratch;
    const size_t n_lines = to->mat.n_lines;
    for (struct work_item p = {0}; thread_take_work(th, th->pass->n_tokens, 1, INPUT_TOKENS, &p);)
        for (size_t t = p.begin; t < p.end; t++) {
            const float *row = x.at + t * x.stride;
            const struct act_scale scale =
                quantise_token(th, to, row, w, t + 1 < p.range.end ? row + x.stride : NULL);
            if (to->cols.n_cols) /* then to->mat refers to lines in the order of the file */
                linear_acts_to_file_order(th->q8, n_lines);
            th->pass->gemm->pack(th->q8, n_lines, t, s->q8);
            s->q8_s[t] = scale.s;
            s->q8_sum[t] = scale.q_sum;
        }
    thread_sync(th);
    /* Only kernels for medium numbers of tokens copy here. Such a number fits one group of
     * PACK_TOKENS, and these kernels do not unpack rows to th->panel. */
    th->q = th->pass->gemm->gather(s->q8, n_lines, th->pass->n_tokens, (int8_t *)th->panel);
}

void linear_input(struct cpu_thread *th, const struct weights *to, struct rows x, const float *w)
{
    if (to->n_groups > 0) {
        linear_r16_input(th, to, x, w);
        return;
    }
    if (!thread_has_one_token(th)) {
        quantise_many(th, to, x, w);
        return;
    }
    const struct act_scale scale = quantise_token(th, to, x.at, w, NULL);
    th->q8_s = scale.s;
    th->q8_sum = scale.q_sum;
}

/* Convert the sums of these rows of one token from th->acc to F32 in y. The first element of both
 * belongs to row rows.begin. */
static void scale_rows(const struct cpu_thread *th, const struct weights *w, struct work_range rows,
                       float *y)
{
    const struct backend *b = th->pass->b;
    for (size_t i = 0; i < w->n_sections; i++) {
        const struct section *s = &w->sections[i];
        const size_t begin = size_max(rows.begin, s->row0);
        const size_t end = size_min(rows.end, s->row0 + s->n_rows);
        if (begin >= end)
            continue;
        float *out = y + (begin - rows.begin);
        b->k.scale_acc(th->acc + (begin - rows.begin), end - begin, s->scale / th->q8_s, out);
        for (size_t r = begin; s->extra != 1.0f && r < end; r++)
            out[r - begin] = out[r - begin] * s->extra;
        if (s->bias)
            b->k.add(out, s->bias + (begin - s->row0), end - begin);
    }
}

/* y = these rows of W times the one token. */
static void multiply_rows(const struct cpu_thread *th, const struct weights *w,
                          struct work_range rows, float *y)
{
    th->pass->b->k.ternary_matvec(&w->mat, rows.begin, rows.end, th->q8, th->q8_sum, th->acc);
    scale_rows(th, w, rows, y);
}

/* ---- several tokens ---- */

/* Rows of a matrix that are multiplied with the tokens of one call after the other. */
struct panel {
    const struct weights *w;
    size_t row0, row1;
    const uint8_t *unpacked;
    const uint8_t *ahead; /* the lines of the panel that is probably read after this one */
};

/* Consecutive tokens of the pass. */
struct token_range {
    size_t begin, n;
};

/* `next` is the first row of the panel that is probably read next, for prefetching: a row of this
 * panel if none follows. */
static struct panel unpack_panel(const struct cpu_thread *th, const struct weights *w,
                                 struct work_range rows, size_t next, uint8_t *to)
{
    th->pass->gemm->unpack(&w->mat, rows.begin, rows.end, to);
    return (struct panel){.w = w,
                          .row0 = rows.begin,
                          .row1 = rows.end,
                          .unpacked = to,
                          .ahead = w->mat.lines + next * w->mat.n_lines * LINE_BYTES};
}

static size_t count_calls(const struct cpu_thread *th)
{
    const size_t n = th->pass->gemm->call_tokens;
    return (th->pass->n_tokens + n - 1) / n;
}

/* The tokens of call i of n, counted from the end if is_descending. Panels alternate between
 * ascending and descending order, so that each starts with the tokens that are still in the
 * cache. */
static struct token_range tokens_of_call(const struct cpu_thread *th, size_t i, size_t n,
                                         bool is_descending)
{
    const size_t begin = (is_descending ? n - 1 - i : i) * th->pass->gemm->call_tokens;
    return (struct token_range){begin,
                                size_min(th->pass->gemm->call_tokens, th->pass->n_tokens - begin)};
}

/* acc (t.n, panel_rows) = the panel's rows times the tokens. `out` is the destination of the
 * results, which is prefetched; out.at may be NULL. */
static void multiply_panel(const struct cpu_thread *th, const struct panel *p, struct token_range t,
                           int32_t *acc, struct rows out)
{
    const struct ternary_batch batch = {
        .q = th->q + t.begin * p->w->mat.n_lines * LINE_COLS,
        .q_sums = th->pass->b->scratch.q8_sum + t.begin,
        .panel = p->unpacked,
        .n_tokens = t.n,
        .acc = acc,
        .acc_stride = th->pass->gemm->panel_rows,
        .ahead = p->ahead,
        .out = out.at,
        .out_stride = out.stride,
    };
    th->pass->gemm->matmul(&p->w->mat, p->row0, p->row1, &batch);
}

/* The sums of a panel that belong to a section; n_rows is 0 if there are none. Fills d (t.n). */
static struct acc_tile section_sums(const struct cpu_thread *th, const struct panel *p,
                                    const struct section *s, struct token_range t,
                                    const int32_t *acc, float *d)
{
    const size_t begin = size_max(p->row0, s->row0);
    const size_t end = size_min(p->row1, s->row0 + s->n_rows);
    if (begin >= end)
        return (struct acc_tile){0};
    for (size_t i = 0; i < t.n; i++)
        d[i] = s->scale / th->pass->b->scratch.q8_s[t.begin + i];
    return (struct acc_tile){
        .acc = acc + (begin - p->row0),
        .acc_stride = th->pass->gemm->panel_rows,
        .n_tokens = t.n,
        .n_rows = end - begin,
        .d = d,
        .extra = s->extra,
        .bias = s->bias ? s->bias + (begin - s->row0) : NULL,
    };
}

static void linear_many(struct cpu_thread *th, const struct weights *w, acc_out_fn out,
                        struct rows y)
{
    const size_t n_calls = count_calls(th);
    bool is_descending = false;
    float d[MATMUL_TOKENS];
    for (struct work_item rows = {0};
         thread_take_work(th, w->mat.n_rows, ROW_UNIT, th->pass->gemm->panel_rows, &rows);
         is_descending = !is_descending) {
        const size_t r = rows.begin, end = rows.end;
        const struct panel p = unpack_panel(th, w, (struct work_range){r, end},
                                            end < rows.range.end ? end : r, th->panel);
        for (size_t i = 0; i < n_calls; i++) {
            const struct token_range t = tokens_of_call(th, i, n_calls, is_descending);
            float *const at = y.at + t.begin * y.stride;
            multiply_panel(th, &p, t, th->acc, (struct rows){at + r, y.stride});
            for (size_t j = 0; j < w->n_sections; j++) {
                const struct section *s = &w->sections[j];
                const struct acc_tile a = section_sums(th, &p, s, t, th->acc, d);
                if (a.n_rows > 0)
                    out(&a, at + size_max(p.row0, s->row0), y.stride);
            }
        }
    }
}

static void linear_many_gate(struct cpu_thread *th, const struct weights *w, acc_gate_fn act,
                             struct rows y)
{
    /* gate and up get half of the rows of a panel each: both must fit in th->acc and th->panel. */
    const size_t n_ff = w->mat.n_rows / 2, half = th->pass->gemm->panel_rows / 2;
    int32_t *const up_acc = th->acc + half;
    uint8_t *const up_panel = th->panel + half * w->mat.n_lines * LINE_COLS;
    const size_t n_calls = count_calls(th);
    bool is_descending = false;
    float d[2][MATMUL_TOKENS];
    for (struct work_item rows = {0}; thread_take_work(th, n_ff, ROW_UNIT, half, &rows);
         is_descending = !is_descending) {
        const size_t r = rows.begin, end = rows.end;
        const struct panel gate =
            unpack_panel(th, w, (struct work_range){r, end}, n_ff + r, th->panel);
        const struct panel up = unpack_panel(th, w, (struct work_range){n_ff + r, n_ff + end},
                                             end < rows.range.end ? end : r, up_panel);
        for (size_t i = 0; i < n_calls; i++) {
            const struct token_range t = tokens_of_call(th, i, n_calls, is_descending);
            float *const at = y.at + t.begin * y.stride + r;
            multiply_panel(th, &gate, t, th->acc, (struct rows){at, y.stride});
            multiply_panel(th, &up, t, up_acc, (struct rows){NULL, 0});
            const struct acc_tile g = section_sums(th, &gate, &w->sections[0], t, th->acc, d[0]);
            const struct acc_tile u = section_sums(th, &up, &w->sections[1], t, up_acc, d[1]);
            act(&g, &u, at, y.stride);
        }
    }
}

/* ---- layers ---- */

void linear_store(struct cpu_thread *th, const struct weights *w, struct rows y)
{
    if (w->n_groups > 0) {
        linear_r16_store(th, w, y);
        return;
    }
    if (!thread_has_one_token(th)) {
        linear_many(th, w, th->pass->b->k.acc_store, y);
        return;
    }
    const struct work_range all = thread_range(th, w->mat.n_rows, ROW_UNIT);
    for (size_t r = all.begin; r < all.end; r += MATVEC_ROWS)
        multiply_rows(th, w, (struct work_range){r, size_min(r + MATVEC_ROWS, all.end)}, y.at + r);
}

/* Each thread sums its part of the columns that have a nonzero input. After a barrier each thread
 * adds up the sums of all threads for its part of the rows. */
static void add_columns(struct cpu_thread *th, const struct weights *w, struct rows y)
{
    const struct cpu_kernels *k = &th->pass->b->k;
    const struct cpu_thread *threads = th->pass->b->scratch.threads;
    const size_t n_live = k->live_inputs(th->q8, w->n_cols, th->live);
    const struct work_range live = thread_range(th, n_live, COLS_UNIT);
    k->ternary_columns(&w->cols, th->live + live.begin, live.end - live.begin, th->q8, th->sums);
    if (th->index == 0)
        /* Bytes without padding, each with four weights. One thread counts for all. */
        th->down_skipped += (w->n_cols - n_live) * w->mat.n_rows / 4;
    thread_sync(th);
    const struct work_range all = thread_range(th, w->mat.n_rows, ROW_UNIT);
    for (size_t r = all.begin; r < all.end; r += MATVEC_ROWS) {
        const struct work_range rows = {r, size_min(r + MATVEC_ROWS, all.end)};
        memcpy(th->acc, threads[0].sums + r, (rows.end - r) * sizeof *th->acc);
        for (size_t j = 1; j < th->n_threads; j++)
            for (size_t i = r; i < rows.end; i++)
                th->acc[i - r] += threads[j].sums[i];
        scale_rows(th, w, rows, th->y[0]);
        k->add(y.at + r, th->y[0], rows.end - r);
    }
}

void linear_add(struct cpu_thread *th, const struct weights *w, struct rows y)
{
    if (w->n_groups > 0) {
        linear_r16_add(th, w, y);
        return;
    }
    if (!thread_has_one_token(th)) {
        linear_many(th, w, th->pass->b->k.acc_add, y);
        return;
    }
    if (w->cols.n_cols) {
        add_columns(th, w, y);
        return;
    }
    const struct work_range all = thread_range(th, w->mat.n_rows, ROW_UNIT);
    for (size_t r = all.begin; r < all.end; r += MATVEC_ROWS) {
        const struct work_range rows = {r, size_min(r + MATVEC_ROWS, all.end)};
        multiply_rows(th, w, rows, th->y[0]);
        th->pass->b->k.add(y.at + r, th->y[0], rows.end - r);
    }
}

/* Multiply only the up rows with an open gate (not <= 0). The elements of y of the other rows are
 * undefined, and the relu2_gate of the caller turns them into +0. */
static void multiply_live(struct cpu_thread *th, const struct weights *w, struct work_range rows,
                          const float *gate, float *y)
{
    const struct cpu_kernels *k = &th->pass->b->k;
    const size_t n = rows.end - rows.begin, row_bytes = w->mat.n_lines * LINE_BYTES;
    const struct ternary_mat rows_mat = {w->mat.lines + rows.begin * row_bytes, n, w->mat.n_lines,
                                         w->mat.ahead};
    const size_t n_live = k->live_gates(gate, n, th->live);
    k->ternary_listed(&rows_mat, th->live, n_live, th->q8, th->q8_sum, th->acc);
    th->up_skipped += (n - n_live) * row_bytes;
    scale_rows(th, w, rows, y);
}

void linear_gate(struct cpu_thread *th, const struct weights *w, enum ffn_act act, struct rows y)
{
    const struct cpu_kernels *k = &th->pass->b->k;
    if (w->n_groups > 0) {
        linear_r16_gate(th, w, act, y);
        return;
    }
    if (!thread_has_one_token(th)) {
        linear_many_gate(th, w, act == FFN_RELU2 ? k->acc_relu2 : k->acc_silu, y);
        return;
    }
    const bool skip = act == FFN_RELU2 && th->pass->b->cfg.skip == BN_SKIP_ON;
    const gate_fn gate = act == FFN_RELU2 ? k->relu2_gate : k->silu_gate;
    const size_t n_ff = w->mat.n_rows / 2;
    const struct work_range all = thread_range(th, n_ff, ROW_UNIT);
    for (size_t r = all.begin; r < all.end; r += MATVEC_ROWS) {
        const size_t end = size_min(r + MATVEC_ROWS, all.end);
        const struct work_range up = {n_ff + r, n_ff + end};
        multiply_rows(th, w, (struct work_range){r, end}, th->y[0]);
        if (skip)
            multiply_live(th, w, up, th->y[0], th->y[1]);
        else
            multiply_rows(th, w, up, th->y[1]);
        gate(th->y[0], th->y[1], end - r, y.at + r);
    }
}

void linear_prefetch(const struct cpu_thread *th, const struct weights *w, size_t n_products)
{
    if (!thread_has_one_token(th))
        return;
    if (w->n_groups > 0) {
        linear_r16_prefetch(th, w, n_products);
        return;
    }
    const struct work_range all = thread_range(th, w->mat.n_rows / n_products, ROW_UNIT);
    const size_t row_bytes = w->mat.n_lines * LINE_BYTES;
    const size_t n_rows = size_min(all.end - all.begin, MATVEC_ROWS); /* of the first product */
    prefetch_stream_starts(w->mat.lines + all.begin * row_bytes, n_rows, row_bytes);
}
