/*
 * Sizes of weights, KV cache and scratch memory. The numbers come from a model file and from the
 * user, so sums and products are checked for overflow, or limits exclude it: those of the model
 * loader (model.h), BN_MAX_UBATCH and MAX_THREADS.
 *
 * The scratch memory is one mapping. Its list of buffers is walked twice: first to measure it, then
 * to assign the addresses.
 */
#include "engine/cpu/cpu_sizes.h"

#include "engine/base/size.h"
#include "engine/cpu/cpu_head_load.h"
#include "engine/cpu/cpu_pack.h"
#include "engine/cpu/cpu_recurrent.h"
#include "engine/cpu/cpu_ring.h"
#include "engine/cpu/cpu_screen.h"
#include "engine/cpu/cpu_strategy.h"
#include "engine/cpu/cpu_threads.h"
#include "engine/layout/head_plane.h"
#include "engine/layout/pass_matrix.h"

#include <assert.h>

static bool set_kv_shape(struct cpu_shape *s, const struct hparams *hp, enum bn_kv_type kv,
                         struct bn_error *err)
{
    const bool is_q8 = kv == BN_KV_Q8;
    const size_t element_bytes = is_q8 ? 1 : sizeof(uint16_t);
    if (is_q8 && hp->head_dim > Q8_DIM_MOST)
        return bn_fail(err, BN_EUNSUPPORTED,
                       "a KV cache of type q8 supports heads of at most %d elements, "
                       "this model has heads of %zu",
                       Q8_DIM_MOST, hp->head_dim);
    s->k_bytes = size_round_up(hp->head_dim, is_q8 ? ATTN_QUAD : 1) * KV_BLOCK * element_bytes;
    s->v_bytes = s->widths.v_stride * KV_BLOCK * element_bytes;
    s->kv_block_bytes = s->k_bytes + s->v_bytes + (is_q8 ? 2 * KV_BLOCK * sizeof(float) : 0);
    return true;
}

/* The strides of activations for R16. A token of q is a cache line longer than its columns, because
 * 16 tokens that are a multiple of 4096 bytes apart would share a set of the first-level cache. */
static void set_block_shape(struct cpu_shape *s, const struct model *m)
{
    if (!pass_any_r16(m))
        return;
    s->q8_stride += LINE_BYTES;
    s->block_stride = size_round_up(s->widths.max_cols, R16_PAD_COLS) / MIN_BLOCK_COLS;
    s->x_stride = m->act_scheme == ACT_FLOAT ? size_round_up(s->widths.max_cols, ROW_UNIT) : 0;
}

/* Bytes of a row of the output head as it is multiplied. */
static bool head_row_bytes(const struct model *m, enum bn_head_mode head, size_t *n_bytes)
{
    const struct linear *l = &m->head_linear;
    struct group_shape g;
    if (!l->source.bytes)
        return tensor_bytes(head_type(m, head), m->hp.n_embd, 1, n_bytes);
    if (!group_shape_of(&l->source, &l->scales, &g))
        return false;
    *n_bytes = g.n_bytes / (g.n_groups * R16_ROWS);
    return true;
}

bool cpu_sizes_shape(struct cpu_shape *s, const struct model *m, const struct backend_config *cfg,
                     size_t n_threads, struct bn_error *err)
{
    const struct hparams *hp = &m->hp;
    const struct pass_widths widths = pass_widths_of(m);
    *s = (struct cpu_shape){
        .widths = widths,
        .ffn_rows = size_max(hp->n_used_experts, 1),
        .q8_stride = size_round_up(widths.max_cols, LINE_COLS),
        .n_slots = ATTN_ITEMS_PER_THREAD * n_threads * SPLIT_BLOCKS,
        .n_coarse = head_plane_blocks(m, cfg->head == BN_HEAD_EXACT),
        .ring = cfg->no_ring ? (struct window_ring){0} : window_ring_of(m, cfg->n_ubatch),
    };
    set_block_shape(s, m);
    if (!tensor_bytes(m->embd.type, hp->n_embd, 1, &s->row_bytes) ||
        !head_row_bytes(m, cfg->head, &s->head_row_bytes))
        return bn_fail(err, BN_EUNSUPPORTED,
                       "rows of %zu elements are not a whole number of blocks", hp->n_embd);
    return set_kv_shape(s, hp, cfg->kv, err);
}

/* The scratch buffers placed so far. Their size cannot overflow: widths are below 2^25
 * (pass_widths.h), tokens at most BN_MAX_UBATCH, and threads at most MAX_THREADS. */
struct arena {
    uint8_t *at; /* NULL: the buffers are only measured */
    size_t n_bytes;
};

static void *reserve(struct arena *a, size_t n, size_t unit_bytes)
{
    void *p = a->at ? a->at + a->n_bytes : NULL;
    /* Twice the alignment: the hardware prefetches pairs of cache lines, and buffers of different
     * threads should not share a pair. */
    a->n_bytes += size_round_up(n * unit_bytes, 2 * MEM_ALIGN);
    return p;
}

static void place_blocks(struct arena *a, const struct cpu_shape *s, size_t n_tokens, int8_t *q8,
                         struct block_input *out)
{
    for (size_t p = 0; p < s->widths.n_planes; p++)
        out->planes[p] = (struct block_plane){
            .q = p == 0 ? q8 : reserve(a, size_round_up(n_tokens, PACK_TOKENS) * s->q8_stride, 1),
            .units = reserve(a, n_tokens * s->block_stride, sizeof(float)),
            .q_sums = reserve(a, n_tokens * s->block_stride, sizeof(int32_t)),
        };
    out->x = reserve(a, n_tokens * s->x_stride, sizeof(float));
}

static void place_thread(struct arena *a, const struct cpu_shape *s, const struct hparams *hp,
                         struct cpu_thread *thread)
{
    *thread = (struct cpu_thread){
        .live = reserve(a, s->widths.max_cols + LIVE_SLACK, sizeof(int32_t)),
        .sums = reserve(a, size_round_up(hp->n_embd, LINE_COLS), sizeof(int32_t)),
        .q8 = reserve(a, s->q8_stride, 1),
        .row = reserve(a, s->widths.h_stride, sizeof(float)),
        .panel = reserve(a, PANEL_ROWS * s->q8_stride, 1),
        .acc = reserve(a, MATMUL_TOKENS * PANEL_ROWS, sizeof(int32_t)),
        .y = {reserve(a, MATMUL_TOKENS * PANEL_ROWS, sizeof(float)),
              reserve(a, MATMUL_TOKENS * PANEL_ROWS, sizeof(float))},
        .attn_o = reserve(a, ATTN_TILE * s->widths.n_q_per_kv * hp->head_dim, sizeof(float)),
        .attn_m = reserve(a, ATTN_TILE * s->widths.n_q_per_kv, sizeof(float)),
        .attn_l = reserve(a, ATTN_TILE * s->widths.n_q_per_kv, sizeof(float)),
        .attn_scratch =
            reserve(a, attn_tile_floats(s->widths.n_q_per_kv, s->widths.v_stride), sizeof(float)),
        .f16 = reserve(a, hp->head_dim, sizeof(uint16_t)),
        .seen = reserve(a, hp->n_vocab / 64 + 1, sizeof(uint64_t)),
        .ids = reserve(a, LEAD_ROWS, sizeof(int32_t)),
        .picks = reserve(a, LEAD_ROWS, sizeof(struct head_cand)),
        .norm = reserve(a, s->widths.max_cols, sizeof(float)),
        .chosen = reserve(a, hp->n_used_experts, sizeof(struct expert_choice)),
        .router_x =
            reserve(a, hp->n_experts ? ROUTER_TOKENS * s->widths.h_stride : 0, sizeof(float)),
        .router_z = reserve(a, ROUTER_TOKENS * hp->n_experts, sizeof(float)),
    };
    place_blocks(a, s, 1, thread->q8, &thread->blocks);
}

/* Nothing without experts. */
static void place_experts(struct arena *a, const struct cpu_shape *s, const struct hparams *hp,
                          size_t n_tokens, struct scratch *out)
{
    const size_t n_pairs = n_tokens * hp->n_used_experts;
    /* The pairs of an expert begin anywhere, and AMX reads PACK_TOKENS rows from there. */
    const size_t n_rows = n_pairs + PACK_TOKENS;
    if (hp->n_experts == 0)
        return;
    out->router_z = reserve(a, hp->n_experts, sizeof(float));
    out->chosen = reserve(a, n_pairs, sizeof(struct expert_choice));
    out->pairs = reserve(a, n_pairs, sizeof(struct expert_pair));
    out->pair_start = reserve(a, hp->n_experts + 1, sizeof(uint32_t));
    out->n_chosen = reserve(a, hp->n_layers * hp->n_experts, sizeof(uint64_t));
    int8_t *const q = reserve(a, size_round_up(n_rows, PACK_TOKENS) * s->q8_stride, 1);
    place_blocks(a, s, n_rows, q, &out->pair_input);
}

static void place_scratch(struct arena *a, const struct cpu_shape *s, const struct hparams *hp,
                          size_t n_tokens, struct scratch *out)
{
    out->h = reserve(a, n_tokens * s->widths.h_stride, sizeof(float));
    /* ffn and z begin where qkv does: qkv and attn are no longer needed when ffn is written, and z
     * belongs to the output head, which comes after the last layer. */
    struct arena ffn = *a, z = *a;
    out->qkv = reserve(a, n_tokens * s->widths.qkv_stride, sizeof(float));
    out->attn = reserve(a, n_tokens * s->widths.attn_stride, sizeof(float));
    out->ffn = reserve(&ffn, n_tokens * s->ffn_rows * s->widths.ffn_stride, sizeof(float));
    out->z = reserve(&z, HEAD_PASS_ROWS * s->widths.vocab_stride, sizeof(float));
    a->n_bytes = size_max(a->n_bytes, size_max(ffn.n_bytes, z.n_bytes));
    out->q8 = reserve(a, size_round_up(n_tokens, PACK_TOKENS) * s->q8_stride, 1);
    out->q8_s = reserve(a, n_tokens, sizeof(float));
    out->q8_sum = reserve(a, n_tokens, sizeof(int32_t));
    place_blocks(a, s, n_tokens, out->q8, &out->blocks);
    out->rope_c = reserve(a, n_tokens * (hp->n_rot / 2), sizeof(float));
    out->rope_s = reserve(a, n_tokens * (hp->n_rot / 2), sizeof(float));
    out->attn_partials =
        reserve(a, s->n_slots * s->widths.n_q_per_kv * (hp->head_dim + 2), sizeof(float));
    out->head_x = reserve(a, HEAD_PASS_ROWS * s->widths.h_stride, sizeof(float));
    out->coarse_x = reserve(a, HEAD_PASS_ROWS * s->n_coarse * COARSE_COLS, 2);
    out->coarse_fix = reserve(a, HEAD_PASS_ROWS * s->n_coarse * 16, sizeof(int32_t));
    out->coarse_spread = reserve(a, HEAD_PASS_ROWS * size_round_up(s->n_coarse, 8), sizeof(float));
    out->coarse_norms = reserve(a, HEAD_PASS_ROWS * s->n_coarse, sizeof(struct block_norms));
    place_experts(a, s, hp, n_tokens, out);
    out->lead = reserve(a, HEAD_PASS_ROWS * LEAD_ROWS, sizeof(float));
    out->token_blocks = reserve(a, n_tokens, sizeof(struct token_block));
    out->runs = reserve(a, n_tokens, sizeof(struct token_block));
    out->delta_gates = reserve(a, n_tokens * hp->delta.n_value_heads, sizeof(struct delta_gate));
    out->requested_rows = reserve(a, n_tokens, sizeof(struct requested_row));
}

static size_t scratch_bytes(const struct cpu_shape *s, const struct hparams *hp, size_t n_tokens,
                            size_t n_threads)
{
    struct arena a = {0};
    struct scratch unused;
    struct cpu_thread thread;
    place_scratch(&a, s, hp, n_tokens, &unused);
    (void)reserve(&a, n_threads, sizeof(struct cpu_thread));
    for (size_t i = 0; i < n_threads; i++)
        place_thread(&a, s, hp, &thread);
    return a.n_bytes;
}

bool cpu_scratch_open(struct backend *b, struct bn_error *err)
{
    const struct hparams *hp = &b->model->hp;
    struct scratch *s = &b->scratch;
    const size_t n_bytes = scratch_bytes(&b->shape, hp, b->n_ubatch, b->n_threads);
    if (!mem_map_open(&s->map, n_bytes, MEM_PAGES_HUGE))
        return bn_fail(err, BN_ENOMEM, "no memory for %zu bytes of scratch memory", n_bytes);
    struct arena a = {.at = s->map.ptr};
    place_scratch(&a, &b->shape, hp, b->n_ubatch, s);
    s->threads = reserve(&a, b->n_threads, sizeof(struct cpu_thread));
    for (size_t i = 0; i < b->n_threads; i++) {
        place_thread(&a, &b->shape, hp, &s->threads[i]);
        s->threads[i].pass = &b->pass;
        s->threads[i].index = i;
    }
    return true;
}

/* Bytes of the recurrent states and rings of a sequence, and of one saved state. */
static bool plan_states(const struct cpu_shape *s, const struct hparams *hp,
                        struct backend_plan *plan)
{
    size_t recurrent, both, ring, window;
    return recurrent_bytes(hp, &recurrent) && size_mul(&both, recurrent, 2) &&
           ring_bytes(s, hp, &ring, &window) && size_add(&plan->seq_fixed_bytes, both, ring) &&
           size_add(&plan->state_bytes, recurrent, window);
}

bool cpu_sizes_plan(const struct model *m, const struct backend_config *cfg,
                    struct backend_plan *plan, struct bn_error *err)
{
    const struct hparams *hp = &m->hp;
    const size_t n_threads = cfg->n_threads ? cfg->n_threads : cpu_default_threads();
    struct cpu_shape s;
    size_t weight_bytes, coarse_bytes, copy_bytes, kv_bytes;
    struct backend_plan states = {0};
    assert(cfg->n_ubatch >= 1 && cfg->n_ubatch <= BN_MAX_UBATCH);
    if (n_threads > MAX_THREADS)
        return bn_fail(err, BN_EARG, "%zu threads are more than %d", n_threads, MAX_THREADS);
    if (!cpu_sizes_shape(&s, m, cfg, n_threads, err))
        return false;
    if (!pack_bytes(m, cfg, &weight_bytes) || !head_plane_bytes(m, s.n_coarse, &coarse_bytes) ||
        !size_add(&weight_bytes, weight_bytes, coarse_bytes) ||
        !head_copy_bytes(m, cfg->head, &copy_bytes) ||
        !size_add(&weight_bytes, weight_bytes, copy_bytes))
        weight_bytes = SIZE_MAX;
    if (!model_check_growth(m, weight_bytes, err))
        return false;
    if (!size_mul3(&kv_bytes, hp->n_attn_layers - s.ring.n_layers, hp->n_kv_heads,
                   s.kv_block_bytes) ||
        !plan_states(&s, hp, &states))
        return bn_fail(err, BN_EUNSUPPORTED, "a KV cache of %zu layers is too large", hp->n_layers);
    *plan = (struct backend_plan){
        .weight_bytes = weight_bytes,
        .kv_bytes_per_token = kv_bytes / KV_BLOCK,
        .seq_fixed_bytes = states.seq_fixed_bytes,
        .state_bytes = states.state_bytes,
        .scratch_bytes = scratch_bytes(&s, hp, cfg->n_ubatch, n_threads),
    };
    return true;
}
