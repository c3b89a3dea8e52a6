/*
 * The screened head in a pass. What is proved about a row is its upper bound alone: candidates by
 * bound are multiplied out, the k-th best of those is a floor under the true k-th best, and a row
 * whose bound lies below the floor cannot be wanted. Rows that survive get the very logit of the
 * full pass, so what follows (cpu_pick.c) is the same too.
 *
 * Each lane decides for its own part of the vocabulary: where too many rows survive it multiplies
 * them all, in order, as the full pass does.
 */
#include "engine/cpu/cpu_screen.h"

#include "engine/base/fp16.h"
#include "engine/base/noise.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_pick.h"

#include <math.h>
#include <string.h>

#define COARSE_LIMIT 16256.0 /* 127 * 128: the largest |x|, so that both planes are bytes */
#define X_MIN 1e-15f         /* where nothing below underflows */
#define X_MAX 1e15f          /* 1e15 * COARSE_MAX * 2^20 columns is still a number */
#define MOST_K 1024          /* more candidates than that leave most rows standing */
#define ONE_ROWS 512         /* rows of the plane at a time for one hidden state */
#define GROUP_ROWS 64        /* for several: the part stays in the second-level cache */
#define GIVE_UP 8            /* a lane multiplies everything when a part in 8 survives */

/* ---- the hidden state ---- */

static float largest_of(const float *h, size_t n)
{
    uint32_t largest = 0; /* as bits, where a NaN is above infinity */
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = f32_bits(h[i]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    return f32_from_bits(largest);
}

/* The planes of block b: x = rint(h / unit) = 128 high + low, low in -64 .. 63 and stored doubled,
 * so that 256 high + 2 low is one shift and one addition. */
static struct block_norms split_block(const float *h, size_t n, double unit, int8_t *x,
                                      int32_t *fix)
{
    struct block_norms norms = {0};
    memset(x, 0, 2 * COARSE_COLS);
    memset(fix, 0, 16 * sizeof *fix);
    for (size_t j = 0; j < n; j++) {
        const int32_t v = (int32_t)rint((double)h[j] / unit);
        const int32_t high = (v + 64) >> 7;
        const double missed = (double)h[j] - (double)v * unit;
        x[j] = (int8_t)high;
        x[COARSE_COLS + j] = (int8_t)(2 * (v - 128 * high));
        fix[j % 64 / 4] -= 15 * v;
        norms.h2 += (double)h[j] * (double)h[j];
        norms.missed2 += missed * missed;
    }
    return norms;
}

/* The constants of the bound, docs/kernels.md. */
static void spread_of(const struct block_norms *norms, size_t n_blocks, size_t n_embd,
                      size_t n_vocab, float *spread)
{
    const double root = sqrt((double)COARSE_COLS);
    const double kappa = sqrt(2.0 * (log((double)n_vocab) + 40.0 * log(2.0)));
    const double gamma = ((double)n_embd / 64.0 + (double)n_blocks + 64.0) * 0x1p-23;
    double a2 = 0.0, c2 = 0.0;
    for (int round = 0; round < 2; round++)
        for (size_t b = 0; b < n_blocks; b++) {
            const double h = sqrt(norms[b].h2), missed = sqrt(norms[b].missed2);
            const double a = kappa * h;
            const double c = sqrt((double)n_blocks) * root *
                             (15.0 * (missed + gamma * (2.0 * h + missed)) + 0x1p-14 * h);
            if (round == 0) {
                a2 += a * a;
                c2 += c * c;
            } else {
                const double theta = sqrt(c2 / a2);
                spread[b] =
                    (float)(1.01 * sqrt((1.0 + theta) * a * a + (1.0 + 1.0 / theta) * c * c));
            }
        }
}

static bool is_screened(const struct backend *b, const struct head_request *head)
{
    if (b->coarse.n_blocks == 0)
        return false;
    return head->kind == HEAD_GUMBEL ||
           (head->kind == HEAD_TOP && head->k <= size_min(MOST_K, b->model->hp.n_vocab / 16));
}

void screen_query(const struct backend *b, size_t i, struct want *want)
{
    const size_t n_embd = b->model->hp.n_embd, n_blocks = b->coarse.n_blocks;
    const float *h = b->scratch.head_x + i * b->shape.h_stride;
    const float largest = largest_of(h, n_embd);
    want->screened = is_screened(b, want->head) && largest >= X_MIN && largest <= X_MAX;
    if (!want->screened)
        return;
    int8_t *x = b->scratch.coarse_x + i * n_blocks * 2 * COARSE_COLS;
    int32_t *fix = b->scratch.coarse_fix + i * n_blocks * 16;
    float *spread = b->scratch.coarse_spread + i * b->coarse.step_stride;
    struct block_norms *norms = b->scratch.coarse_norms + i * n_blocks;
    want->query = (struct coarse_query){x, fix, spread, (float)((double)largest / COARSE_LIMIT)};
    const double unit = (double)want->query.unit;
    for (size_t j = 0; j < n_blocks; j++)
        norms[j] = split_block(h + j * COARSE_COLS, size_min(COARSE_COLS, n_embd - j * COARSE_COLS),
                               unit, x + 2 * COARSE_COLS * j, fix + 16 * j);
    memset(spread, 0, b->coarse.step_stride * sizeof *spread);
    spread_of(norms, n_blocks, n_embd, b->model->hp.n_vocab, spread);
}

/* ---- rows ---- */

static float exact_logit(struct lane *l, size_t i, size_t id)
{
    const struct backend *b = l->pass->b;
    const struct model *m = b->model;
    float z;
    b->k.rows_dot[m->head.type](
        m->head.bytes + id * b->shape.head_row_bytes, b->shape.head_row_bytes, 1,
        b->scratch.head_x + i * b->shape.h_stride, m->hp.n_embd, &z, l->row);
    return z;
}

static void exact_part(struct lane *l, size_t i, struct share ids, float *z)
{
    const struct backend *b = l->pass->b;
    const struct model *m = b->model;
    b->k.rows_dot[m->head.type](m->head.bytes + ids.begin * b->shape.head_row_bytes,
                                b->shape.head_row_bytes, ids.end - ids.begin,
                                b->scratch.head_x + i * b->shape.h_stride, m->hp.n_embd,
                                z + ids.begin, l->row);
}

static void count_rows(const struct lane *l, size_t n_rows)
{
    atomic_fetch_add_explicit(&l->pass->head_bytes, n_rows * l->pass->b->shape.head_row_bytes,
                              memory_order_relaxed);
}

/* Is one of the n (a multiple of ROW_UNIT, but for the end of the vocabulary) at least floor? */
static bool any_reaches(const float *z, size_t n, float floor)
{
    int any = 0;
    for (size_t i = 0; i < n; i++)
        any |= z[i] >= floor;
    return any != 0;
}

/* ---- HEAD_GUMBEL: a lane at a time, its bounds in z ---- */

static void take_noisy(struct lane *l, size_t i, size_t id, float z, double noise, double beta)
{
    const double noisy = (double)z * beta + noise;
    if (noisy > l->best_noisy[i] ||
        (noisy == l->best_noisy[i] && (int32_t)id < l->best_noisy_id[i])) {
        l->best_noisy[i] = noisy;
        l->best_noisy_id[i] = (int32_t)id;
        l->best[i] = z;
    }
}

/* Where the noise could lift the bound to the best so far, the row itself is asked. */
static void screen_draw(struct lane *l, size_t i, const struct want *want, struct share ids)
{
    const struct backend *b = l->pass->b;
    float *z = b->scratch.z + i * b->shape.vocab_stride;
    const uint64_t key = noise_key(want->head->seed, want->position);
    const double beta = 1.0 / (double)want->head->temp;
    size_t first = ids.begin, n_asked = 1;
    l->best_noisy[i] = -INFINITY;
    l->best_noisy_id[i] = -1;
    if (ids.begin == ids.end)
        return;
    for (size_t id = ids.begin; id < ids.end; id++)
        first = z[id] > z[first] ? id : first;
    take_noisy(l, i, first, exact_logit(l, i, first), noise_gumbel(key, first), beta);
    for (size_t id = ids.begin; id < ids.end; id++) {
        const double bound = (double)z[id] * beta;
        if (id == first || bound + NOISE_GUMBEL_MAX < l->best_noisy[i])
            continue;
        const double noise = noise_gumbel(key, id);
        if (bound + noise < l->best_noisy[i])
            continue;
        take_noisy(l, i, id, exact_logit(l, i, id), noise, beta);
        n_asked++;
    }
    z[l->best_noisy_id[i]] = l->best[i];
    count_rows(l, n_asked);
}

/* ---- all lanes ---- */

void screen_bounds(struct lane *l, const struct want *wants, size_t n_wants)
{
    const struct backend *b = l->pass->b;
    const struct share ids = lane_share(l, b->model->hp.n_vocab, ROW_UNIT);
    size_t n_screened = 0;
    for (size_t i = 0; i < n_wants; i++)
        n_screened += wants[i].screened;
    if (n_screened == 0)
        return;
    const size_t n_rows = n_screened == 1 ? ONE_ROWS : GROUP_ROWS;
    for (size_t id = ids.begin; id < ids.end; id += n_rows)
        for (size_t i = 0; i < n_wants; i++)
            if (wants[i].screened)
                b->k.coarse_bound(&b->coarse, id, size_min(id + n_rows, ids.end), &wants[i].query,
                                  b->scratch.z + i * b->shape.vocab_stride + id);
    for (size_t i = 0; i < n_wants; i++)
        if (wants[i].screened && wants[i].head->kind == HEAD_GUMBEL)
            screen_draw(l, i, &wants[i], ids);
    if (l->index == 0)
        atomic_fetch_add_explicit(&l->pass->head_bytes, b->coarse_bytes, memory_order_relaxed);
}

void screen_floor(struct lane *l, size_t i, struct want *want)
{
    const struct backend *b = l->pass->b;
    const float *z = b->scratch.z + i * b->shape.vocab_stride;
    const size_t k = want->head->k;
    float best = -INFINITY, worst = INFINITY;
    want->floor = INFINITY;
    if (want->row->cap < k)
        return; /* too little room, which pick_top will say */
    pick_best(z, b->model->hp.n_vocab, k, want->row->cands);
    for (size_t j = 0; j < k; j++) {
        const float exact = exact_logit(l, i, (size_t)want->row->cands[j].id);
        best = fmaxf(best, exact);
        worst = fminf(worst, exact);
    }
    want->floor = want->head->gap > 0.0f ? fminf(worst, best - want->head->gap) : worst;
    count_rows(l, k);
}

static size_t count_survivors(const float *z, struct share ids, float floor)
{
    size_t n = 0;
    for (size_t id = ids.begin; id < ids.end; id++)
        n += z[id] >= floor;
    return n;
}

void screen_rescore(struct lane *l, size_t i, const struct want *want)
{
    const struct backend *b = l->pass->b;
    float *z = b->scratch.z + i * b->shape.vocab_stride;
    const struct share ids = lane_share(l, b->model->hp.n_vocab, ROW_UNIT);
    size_t n = count_survivors(z, ids, want->floor);
    l->best[i] = -INFINITY;
    if (n > (ids.end - ids.begin) / GIVE_UP) {
        n = ids.end - ids.begin;
        exact_part(l, i, ids, z);
    } else {
        for (size_t id = ids.begin; id < ids.end; id += ROW_UNIT) {
            const size_t end = size_min(id + ROW_UNIT, ids.end);
            const bool any = any_reaches(z + id, end - id, want->floor);
            for (size_t j = id; j < end; j++)
                z[j] = any && z[j] >= want->floor ? exact_logit(l, i, j) : -INFINITY;
        }
        for (size_t j = 0; j < want->head->n_ids; j++) {
            const size_t id = (size_t)want->head->ids[j];
            if (id >= ids.begin && id < ids.end && z[id] == -INFINITY) {
                z[id] = exact_logit(l, i, id);
                n++;
            }
        }
    }
    for (size_t id = ids.begin; id < ids.end; id++)
        l->best[i] = z[id] > l->best[i] ? z[id] : l->best[i];
    count_rows(l, n);
}
