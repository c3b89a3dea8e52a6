/*
 * Products with the chosen experts of a mixture (docs/kernels.md, "Experts"), whose matrices are in
 * R16 one after the other.
 *
 * For a few tokens, a thread block multiplies two row groups for one pair, so that the experts of a
 * token are read in parallel. An expert is read once for each of its tokens. For more tokens, a
 * warp multiplies a row group of an expert with pairs of this expert on tensor cores,
 * R16_WARP_TOKENS at a time. Each pair has its own result row, and add_experts sums the rows of a
 * token in a fixed order. So no result depends on which pairs are multiplied together.
 */
#ifndef CUDA_EXPERTS_CUH
#define CUDA_EXPERTS_CUH

#include "engine/cuda/kernels/products/cuda_r16_many.cuh"

/* ---- pairs in the order of their experts ---- */

KERNEL(sort_pairs, sort_pairs_args, PAIR_THREADS)
{
    /* pairs of expert e - 1 in places[e]; after the sums, first place of expert e; at last its next
     * free place */
    SHARED uint32_t places[MAX_EXPERTS + 1];
    SHARED uint32_t n_active;
    const uint32_t t = thread_x();
    for (uint32_t e = t; e <= a.n_experts; e += n_threads_x())
        places[e] = 0;
    if (t == 0)
        n_active = 0;
    block_sync();
    for (uint32_t i = t; i < a.n_pairs; i += n_threads_x())
        (void)atomic_add(&places[a.chosen[i].expert + 1], 1);
    block_sync();
    for (uint32_t e = t; e < a.n_experts; e += n_threads_x())
        if (places[e + 1] > 0)
            (void)atomic_add(&n_active, 1);
    for (uint32_t step = 1; step < a.n_experts; step *= 2) { /* prefix sums from places[1] on */
        uint32_t before = 0;
        block_sync();
        if (t < a.n_experts && t >= step)
            before = places[t + 1 - step];
        block_sync();
        if (t < a.n_experts)
            places[t + 1] += before;
    }
    block_sync();
    for (uint32_t e = t; e <= a.n_experts; e += n_threads_x())
        a.starts[e] = places[e];
    if (t == 0)
        *a.n_active = n_active;
    block_sync();
    for (uint32_t i = t; i < a.n_pairs; i += n_threads_x())
        a.pairs[atomic_add(&places[a.chosen[i].expert], 1)] = i;
}

/* ---- products ---- */

/* Row group `group` of an expert in a section. Groups past the expert's last one repeat it. */
DEV struct group_at expert_group(const struct experts_args *a, uint32_t section, uint32_t expert,
                                 uint32_t group)
{
    const bool exists = group < a->n_groups;
    struct group_at at = group_find(&a->w, a->w.sections[section].group0 + expert * a->n_groups +
                                               (exists ? group : a->n_groups - 1));
    at.exists = exists;
    return at;
}

/* The output of a pair from the sums of a row: gate y0 and up y1, or y0 alone. */
DEV float expert_output(const struct experts_args *a, float y0, float y1)
{
    if (!is_gated(&a->w))
        return y0;
    y0 = y0 > a->clamp ? a->clamp : y0; /* a NaN stays */
    y1 = y1 > a->clamp ? a->clamp : y1;
    y1 = y1 < -a->clamp ? -a->clamp : y1;
    return gated(a->w.kind, y0, y1);
}

/* Stores the output of a row. All R16_ROWS rows exist: an expert has whole row groups. */
DEV void store_output(const struct experts_args *a, uint32_t group, uint32_t row, uint32_t pair,
                      float y0, float y1)
{
    a->w.y[(uint64_t)pair * a->w.y_stride + group * R16_ROWS + row] = expert_output(a, y0, y1);
}

/* Grid: row groups of an expert, two of them per thread block if there is no gate; pairs. */
KERNEL(experts_one, experts_args, R16_THREADS)
{
    SHARED_WIDE struct span_shared s;
    const uint32_t which = thread_x() / (4 * R16_SPAN_LANES), row = thread_x() % R16_ROWS;
    const bool adds = thread_x() % (4 * R16_SPAN_LANES) < R16_ROWS, gate = is_gated(&a.w);
    const uint32_t pair = block_y(), expert = a.chosen[pair].expert;
    const uint32_t group = gate ? block_x() : 2 * block_x() + which;
    const struct group_at at = expert_group(&a, gate ? which : 0, expert, group);
    const struct span_words w = load_span(&at, thread_x() / 4 % R16_SPAN_LANES, thread_x() % 4);
    const float y = sum_spans(&a.w, &at, pair / a.pairs_per_input, w, &s);
    if (adds)
        s.y[which][row] = group_finish(&a.w, &at, row, y);
    block_sync();
    if (adds && at.exists && (which == 0 || !gate))
        store_output(&a, group, row, pair, s.y[which][row], s.y[1][row]);
}

/* Grid: row groups of an expert / 4 rounded up; experts; EXPERT_TILES. */
KERNEL(experts_many, experts_args, R16_THREADS)
{
    const uint32_t g = thread_x() % 32 / 4, t = thread_x() % 4, expert = block_y();
    const uint32_t group = block_x() * (n_threads_x() / 32) + thread_x() / 32;
    const uint32_t end = a.starts[expert + 1];
    const bool gate = is_gated(&a.w);
    const struct group_at at = expert_group(&a, 0, expert, group);
    const struct group_at up = gate ? expert_group(&a, 1, expert, group) : at;
    for (uint32_t first = a.starts[expert] + block_z() * R16_WARP_TOKENS; first < end;
         first += EXPERT_TILES * R16_WARP_TOKENS) {
        const struct input_rows rows = {a.pairs, first, end - 1, a.pairs_per_input};
        float y[2][2][4] = {{{0.0f}}};
        multiply_group(&a.w, &at, &rows, y[0]);
        if (gate)
            multiply_group(&a.w, &up, &rows, y[1]);
#pragma unroll
        for (uint32_t n = 0; n < 2; n++)
#pragma unroll
            for (uint32_t i = 0; i < 4; i++) {
                const uint32_t row = g + i / 2 * 8, place = first + 8 * n + 2 * t + i % 2;
                const float y0 = group_finish(&a.w, &at, row, y[0][n][i]);
                const float y1 = gate ? group_finish(&a.w, &up, row, y[1][n][i]) : 0.0f;
                if (place < end && at.exists)
                    store_output(&a, group, row, a.pairs[place], y0, y1);
            }
    }
}

/* Inputs that are not quantised. Grid: pairs, row groups of an expert / 8 rounded up. */
KERNEL(experts_float, experts_args, R16_THREADS)
{
    const uint32_t row = thread_x() % R16_ROWS, pair = block_x();
    const uint32_t group = (block_y() * n_threads_x() + thread_x()) / R16_ROWS;
    const uint32_t expert = a.chosen[pair].expert;
    const float *x = a.w.in.x + (uint64_t)(pair / a.pairs_per_input) * a.w.in.q_stride;
    if (group >= a.n_groups)
        return;
    const struct group_at at = expert_group(&a, 0, expert, group);
    const float y0 = group_finish(&a.w, &at, row, multiply_floats(&a.w, &at, row, x));
    float y1 = 0.0f;
    if (is_gated(&a.w)) {
        const struct group_at up = expert_group(&a, 1, expert, group);
        y1 = group_finish(&a.w, &up, row, multiply_floats(&a.w, &up, row, x));
    }
    store_output(&a, group, row, pair, y0, y1);
}

KERNEL(add_experts, experts_add_args, ADD_THREADS)
{
    const uint32_t token = block_x(), i = block_y() * n_threads_x() + thread_x();
    const struct cuda_choice *chosen = a.chosen + (uint64_t)token * a.n_used;
    const float *y = a.y + (uint64_t)token * a.n_used * a.y_stride + i;
    if (i >= a.n)
        return;
    float h = a.h[(uint64_t)token * a.h_stride + i];
#pragma unroll 8
    for (uint32_t e = 0; e < a.n_used; e++)
        h = h + y[(uint64_t)e * a.y_stride] * chosen[e].weight;
    a.h[(uint64_t)token * a.h_stride + i] = h;
}

#endif
