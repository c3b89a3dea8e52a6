/*
 * Linear layers of several tokens. The outer loop is over panels of rows, the inner loop over token
 * blocks. So each line of weights is read from memory and unpacked once per pass, and stays in the
 * core's own cache for all tokens. The integer sums of a block are still in the cache when they are
 * scaled and stored, added or gated in one step.
 */
#include "engine/cpu/cpu_linear_many.h"

#include "engine/base/size.h"
#include "engine/cpu/cpu_work.h"

/* Rows of a matrix that are multiplied with one token block after the other. */
struct panel {
    const struct weights *w;
    size_t row0, row1;
    const uint8_t *unpacked;
    const uint8_t *ahead; /* the lines of the panel that is read after this one */
};

/* Consecutive tokens of the pass. */
struct token_range {
    size_t begin, n;
};

/* `next` is the first row of the panel that follows. */
static struct panel open_panel(const struct cpu_thread *th, const struct weights *w,
                               struct work_range rows, size_t next, uint8_t *to)
{
    th->pass->gemm->unpack(&w->mat, rows.begin, rows.end, to);
    return (struct panel){.w = w,
                          .row0 = rows.begin,
                          .row1 = rows.end,
                          .unpacked = to,
                          .ahead = w->mat.lines + next * w->mat.n_lines * LINE_BYTES};
}

static size_t count_token_blocks(const struct cpu_thread *th)
{
    const size_t n = th->pass->gemm->block_tokens;
    return (th->pass->n_tokens + n - 1) / n;
}

/* Block i of n. Panels alternate between ascending and descending order, so that each panel starts
 * with the tokens that are still in the core's own cache. */
static struct token_range block_at(const struct cpu_thread *th, size_t i, size_t n, bool is_back)
{
    const size_t begin = (is_back ? n - 1 - i : i) * th->pass->gemm->block_tokens;
    return (struct token_range){begin,
                                size_min(th->pass->gemm->block_tokens, th->pass->n_tokens - begin)};
}

/* acc (t.n, panel_rows) = the panel's rows times the tokens. `out` is where the results will be
 * stored, for prefetching; out.at may be NULL. */
static void multiply(const struct cpu_thread *th, const struct panel *p, struct token_range t,
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

void linear_many(struct cpu_thread *th, const struct weights *w, acc_out_fn out, struct rows y)
{
    const size_t n_blocks = count_token_blocks(th);
    bool is_back = false;
    float d[MATMUL_TOKENS];
    for (struct work_item rows = {0};
         thread_take_work(th, w->mat.n_rows, ROW_UNIT, th->pass->gemm->panel_rows, &rows);
         is_back = !is_back) {
        const size_t r = rows.begin, end = rows.end;
        const struct panel p = open_panel(th, w, (struct work_range){r, end},
                                          end < rows.range.end ? end : r, th->panel);
        for (size_t i = 0; i < n_blocks; i++) {
            const struct token_range t = block_at(th, i, n_blocks, is_back);
            float *const at = y.at + t.begin * y.stride;
            multiply(th, &p, t, th->acc, (struct rows){at + r, y.stride});
            for (size_t j = 0; j < w->n_sections; j++) {
                const struct section *s = &w->sections[j];
                const struct acc_tile a = section_sums(th, &p, s, t, th->acc, d);
                if (a.n_rows > 0)
                    out(&a, at + size_max(p.row0, s->row0), y.stride);
            }
        }
    }
}

void linear_many_gate(struct cpu_thread *th, const struct weights *w, acc_gate_fn act,
                      struct rows y)
{
    const size_t n_ff = w->mat.n_rows / 2, half = th->pass->gemm->panel_rows / 2;
    int32_t *const up_acc = th->acc + half;
    uint8_t *const up_panel = th->panel + half * w->mat.n_lines * LINE_COLS;
    const size_t n_blocks = count_token_blocks(th);
    bool is_back = false;
    float d[2][MATMUL_TOKENS];
    for (struct work_item rows = {0}; thread_take_work(th, n_ff, ROW_UNIT, half, &rows);
         is_back = !is_back) {
        const size_t r = rows.begin, end = rows.end;
        const struct panel gate =
            open_panel(th, w, (struct work_range){r, end}, n_ff + r, th->panel);
        const struct panel up = open_panel(th, w, (struct work_range){n_ff + r, n_ff + end},
                                           end < rows.range.end ? end : r, up_panel);
        for (size_t i = 0; i < n_blocks; i++) {
            const struct token_range t = block_at(th, i, n_blocks, is_back);
            float *const at = y.at + t.begin * y.stride + r;
            multiply(th, &gate, t, th->acc, (struct rows){at, y.stride});
            multiply(th, &up, t, up_acc, (struct rows){NULL, 0});
            const struct acc_tile g = section_sums(th, &gate, &w->sections[0], t, th->acc, d[0]);
            const struct acc_tile u = section_sums(th, &up, &w->sections[1], t, up_acc, d[1]);
            act(&g, &u, at, y.stride);
        }
    }
}
