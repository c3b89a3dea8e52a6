/*
 * Products with ternary weights in R16 (docs/kernels.md, "Activations in blocks"): the sum of a
 * block is exact, and the float operations of a row are in a fixed order over blocks and spans.
 *
 * The sum g of a span needs no other span. So for one token, threads compute the sums of different
 * spans, and one thread for each row adds them up in order. For several tokens a warp multiplies a
 * row group on tensor cores, with the running sums in registers: in R16, the codes of 32 columns of
 * 16 rows are operands of mma without any rearrangement.
 */
#ifndef CUDA_R16_CUH
#define CUDA_R16_CUH

#include "engine/cuda/kernels/products/cuda_ternary.cuh"

/* True if section 0 is a gate and section 1 is up. */
DEV bool is_gated(const struct r16_args *a)
{
    return a->kind >= LINEAR_RELU2;
}

/* A row group and its section. Groups past the last one repeat the last one. */
struct group_at {
    const struct r16_section *s;
    const uint8_t *lines;    /* of the group */
    uint32_t group, n_spans; /* number of the group in its section; spans of a row */
    bool exists;
};
DEV struct group_at group_find(const struct r16_args *a, uint32_t group)
{
    struct group_at at;
    at.exists = group < a->n_groups;
    group = at.exists ? group : a->n_groups - 1;
    const uint32_t i = group >= a->sections[2].group0 ? 2 : group >= a->sections[1].group0 ? 1 : 0;
    at.s = &a->sections[i];
    at.group = group - at.s->group0;
    at.lines = at.s->lines + (uint64_t)at.group * a->n_lines * LINE_BYTES;
    at.n_spans = a->n_lines * R16_LINE_COLS / at.s->span_cols;
    return at;
}

/* The scale of a row of the group in a span. */
DEV float group_scale(const struct group_at *at, uint32_t span, uint32_t row)
{
    const uint64_t first = ((uint64_t)at->group * at->n_spans + span) * R16_ROWS;
    return at->s->scales ? f32_of_f16(at->s->scales[first + row]) : 1.0f;
}

/* Applies the factors and the bias to the sum y of row `row` of the group; 0 for padding. */
DEV float group_finish(const struct r16_args *a, const struct group_at *at, uint32_t row, float y)
{
    row += at->group * R16_ROWS;
    if (row >= at->s->n_rows)
        return 0.0f;
    if (at->s->row_scales)
        y = y * at->s->row_scales[row];
    y = (y * at->s->scale) * at->s->extra;
    return a->bias ? y + a->bias[at->s->row0 + row] : y;
}

/* Stores or adds the result y0 of a row. If section 0 is a gate, stores act(y0) * y1 instead. Rows
 * and tokens that do not exist are left out. */
DEV void group_store(const struct r16_args *a, const struct group_at *at, uint32_t row,
                     uint32_t token, float y0, float y1)
{
    row += at->group * R16_ROWS;
    if (!at->exists || row >= at->s->n_rows || token >= a->n_tokens)
        return;
    float *y = a->y + (uint64_t)token * a->y_stride + at->s->row0 + row;
    if (is_gated(a))
        *y = gated(a->kind, y0, y1);
    else
        *y = a->kind == LINEAR_ADD ? *y + y0 : y0;
}

/* The codes and scales of rows 4 quad .. 4 quad + 3 in a span: codes[l].at[r] has the codes of row
 * 4 quad + r in line l. */
struct span_words {
    struct words codes[SPAN_LINES];
    uint64_t scales; /* F16, the first row in the lowest bits; not used if all scales are 1 */
};

/* Lines and spans that do not exist give zeros. */
DEV struct span_words load_span(const struct group_at *at, uint32_t span, uint32_t quad)
{
    const struct words none = {{0, 0, 0, 0}};
    const uint32_t n_lines = at->s->span_cols / R16_LINE_COLS;
    const uint8_t *from = at->lines + (uint64_t)span * n_lines * LINE_BYTES + 16 * quad;
    const uint64_t first = ((uint64_t)at->group * at->n_spans + span) * R16_ROWS;
    struct span_words w;
#pragma unroll
    for (uint32_t l = 0; l < SPAN_LINES; l++)
        w.codes[l] = span < at->n_spans && l < n_lines ? load_early(from + l * LINE_BYTES) : none;
    w.scales =
        at->s->scales && span < at->n_spans ? load_once_u64(at->s->scales + first + 4 * quad) : 0;
    return w;
}

/* Adds the products of a span with one plane of row `input` of the inputs to g of four rows. A sum
 * of code * q that starts at -(sum of q) is the sum of (code - 1) q. */
DEV void multiply_span(const struct r16_args *a, const struct group_at *at, uint32_t input,
                       uint32_t plane, uint32_t span, const struct span_words *w, float *g)
{
    const uint32_t column0 = span * at->s->span_cols;
    const uint32_t block_lines = a->in.block_cols / R16_LINE_COLS;
    const int8_t *q = a->in.q[plane] + (uint64_t)input * a->in.q_stride + column0;
    const uint64_t block0 = (uint64_t)input * a->in.block_stride;
    const uint32_t n_lines = at->s->span_cols / R16_LINE_COLS;
    int32_t acc[4], sums[SPAN_LINES];
    float units[SPAN_LINES];
    struct words xs[SPAN_LINES];
    /* All loads come first, because the branches below keep them apart. */
#pragma unroll
    for (uint32_t l = 0; l < SPAN_LINES; l++) {
        const uint32_t line = l < n_lines ? l : 0; /* one that exists */
        const uint64_t b = block0 + (column0 + line * R16_LINE_COLS) / a->in.block_cols;
        xs[l] = load_words(q + line * R16_LINE_COLS);
        if (l % 2 == 0) { /* a block has at least two lines */
            sums[l] = a->in.q_sums[plane][b];
            units[l] = a->in.units[plane][b];
        }
    }
#pragma unroll
    for (uint32_t l = 0; l < SPAN_LINES; l++) {
        if (l >= n_lines)
            continue;
        const struct words x = xs[l];
        if (l % block_lines == 0)
#pragma unroll
            for (uint32_t r = 0; r < 4; r++)
                acc[r] = -sums[l - l % 2];
#pragma unroll
        for (uint32_t r = 0; r < 4; r++)
#pragma unroll
            for (uint32_t i = 0; i < 4; i++)
                acc[r] = dot4(w->codes[l].at[r] >> (2 * i) & FIELD_0, x.at[i], acc[r]);
        if ((l + 1) % block_lines == 0)
#pragma unroll
            for (uint32_t r = 0; r < 4; r++)
                g[r] = fmaf((float)acc[r], units[l - l % 2], g[r]);
    }
}

/* Sums g and scales d of SPAN_TILE spans of two row groups, and the results y of their rows. */
struct span_shared {
    float g[2][SPAN_TILE][R16_ROWS], d[2][SPAN_TILE][R16_ROWS];
    float y[2][R16_ROWS];
};

/* The sum of one row over all spans, by a thread block. Thread 64 i + 4 k + j has rows 4 j .. 4 j +
 * 3 of row group i, which is `at`, and the spans k, k + R16_SPAN_LANES, ...; w has the first of
 * them. While a thread multiplies one span, its next span is loaded. Thread 64 i + r with r <
 * R16_ROWS returns the sum of row r, every other thread 0. All threads of the thread block must
 * call this. */
DEV float sum_spans(const struct r16_args *a, const struct group_at *at, uint32_t input,
                    struct span_words w, struct span_shared *s)
{
    const uint32_t quad = thread_x() % 4, lane = thread_x() / 4 % R16_SPAN_LANES;
    const uint32_t which = thread_x() / (4 * R16_SPAN_LANES);
    /* At least as many spans as any section has, because all threads must reach each barrier. */
    const uint32_t n_spans = a->n_lines * R16_LINE_COLS / 64;
    const uint32_t row = thread_x() % R16_ROWS; /* whose spans the thread adds up */
    const bool adds = thread_x() % (4 * R16_SPAN_LANES) < R16_ROWS; /* one thread for each row */
    float y = 0.0f;
#pragma unroll 1
    for (uint32_t plane = 0; plane < a->in.n_planes; plane++)
#pragma unroll 1
        for (uint32_t tile = 0; tile < n_spans; tile += SPAN_TILE) {
            const uint32_t end = tile + SPAN_TILE < n_spans ? tile + SPAN_TILE : n_spans;
            for (uint32_t span = tile + lane; span < end && span < at->n_spans;
                 span += R16_SPAN_LANES) {
                float g[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                if (plane > 0 && span == lane)
                    w = load_span(at, span, quad);
                const struct span_words next = load_span(at, span + R16_SPAN_LANES, quad);
                multiply_span(a, at, input, plane, span, &w, g);
#pragma unroll
                for (uint32_t r = 0; r < 4; r++) {
                    s->g[which][span - tile][4 * quad + r] = g[r];
                    s->d[which][span - tile][4 * quad + r] =
                        at->s->scales ? f32_of_f16((uint16_t)(w.scales >> (16 * r))) : 1.0f;
                }
                w = next;
            }
            block_sync();
#pragma unroll 2
            for (uint32_t span = tile; adds && span < end && span < at->n_spans; span++)
                y = fmaf(s->g[which][span - tile][row], s->d[which][span - tile][row], y);
            block_sync();
        }
    return y;
}

/* One token. The first span is loaded before the previous kernel has ended. Grid: pairs of row
 * groups; with a gate, thread block b has row group b of the gate and of up. */
KERNEL_EARLY(r16_one, r16_args, R16_THREADS)
{
    SHARED_WIDE struct span_shared s;
    const uint32_t which = thread_x() / (4 * R16_SPAN_LANES), row = thread_x() % R16_ROWS;
    const uint32_t first = is_gated(&a) ? block_x() : 2 * block_x();
    const uint32_t second = is_gated(&a) ? first + a.sections[0].n_groups : first + 1;
    const struct group_at at = group_find(&a, which == 0 ? first : second);
    const bool adds = thread_x() % (4 * R16_SPAN_LANES) < R16_ROWS; /* one thread for each row */
    const struct span_words w = load_span(&at, thread_x() / 4 % R16_SPAN_LANES, thread_x() % 4);
    wait_for_grid();
    const float y = sum_spans(&a, &at, 0, w, &s);
    if (adds)
        s.y[which][row] = group_finish(&a, &at, row, y);
    block_sync();
    if (adds && (which == 0 || !is_gated(&a)))
        group_store(&a, &at, row, 0, s.y[which][row], s.y[1][row]);
}

#endif
