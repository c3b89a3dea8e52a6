/*
 * Sizes: the shape of a pass, and the plan of the memory of weights, KV cache and scratch. Also
 * allocates and frees the scratch memory.
 *
 * The numbers come from a file, so sums and products are checked, or their factors are limited: by
 * BN_MAX_UBATCH and the limits of the model loader (model.h). Scratch memory of the
 * device is one allocation. place_scratch runs first to measure the size and then to assign
 * addresses.
 */
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/cuda/cuda_state.h"
#include "engine/layout/head_plane.h"
#include "engine/layout/pass_matrix.h"

#include <assert.h>
#include <string.h>

/* Layout of the keys and values of n_layers layers, as in the CPU backend. False if the size of a
 * position block overflows. */
static bool kv_shape_of(const struct hparams *hp, size_t v_stride, size_t n_layers, bool is_ring,
                        struct kv_shape *out)
{
    const size_t head_elems = KV_BLOCK * (hp->head_dim + v_stride);
    size_t n_bytes;
    *out = (struct kv_shape){.block_elems = n_layers * hp->n_kv_heads * head_elems,
                             .layer_elems = hp->n_kv_heads * head_elems,
                             .head_elems = head_elems,
                             .head_dim = (uint32_t)hp->head_dim,
                             .v_stride = (uint32_t)v_stride,
                             .is_ring = is_ring};
    return size_mul3(&n_bytes, n_layers, hp->n_kv_heads, head_elems * sizeof(uint16_t));
}

bool cuda_shape_init(struct cuda_shape *s, const struct model *m, const struct backend_config *cfg,
                     struct bn_error *err)
{
    const struct hparams *hp = &m->hp;
    const struct pass_widths widths = pass_widths_of(m);
    size_t ring_bytes, state_bytes;
    struct kv_shape kv, ring_kv;
    const struct window_ring ring =
        cfg->no_ring ? (struct window_ring){0} : window_ring_of(m, cfg->n_ubatch);
    if (!recurrent_bytes(hp, &state_bytes) ||
        !kv_shape_of(hp, widths.v_stride, hp->n_attn_layers - ring.n_layers, false, &kv) ||
        !kv_shape_of(hp, widths.v_stride, ring.n_layers, true, &ring_kv) ||
        !size_mul3(&ring_bytes, ring.n_blocks, sizeof(uint16_t), ring_kv.block_elems))
        return bn_fail(err, BN_EUNSUPPORTED,
                       "the model is too large for this backend: "
                       "width %zu, %zu heads of %zu, feed-forward width %zu",
                       hp->n_embd, hp->n_heads, hp->head_dim, hp->n_ff);
    *s = (struct cuda_shape){
        .widths = widths,
        .n_head_chunks = hp->n_kv_heads * grid_blocks(widths.n_q_per_kv, ATTN_HEADS),
        .best_stride = size_round_up(hp->n_vocab, BEST_ROWS) / BEST_ROWS,
        .n_coarse = cuda_head_blocks(m, cfg->head),
        .rotated_stride = m->rotation.version ? size_round_up(widths.max_cols, ROW_UNIT) : 0,
        .any_r16 = pass_any_r16(m),
        /* a trace has the results of RoPE, which attn_split does not store */
        .can_split = hp->head_dim <= SPLIT_HEAD && !cfg->trace,
        .q8_stride = size_round_up(widths.max_cols, LINE_COLS),
        .slot_bytes = hp->n_heads * SLOT_FLOATS(hp->head_dim) * sizeof(float),
        .block_bytes = kv.block_elems * sizeof(uint16_t),
        .state_bytes = state_bytes,
        .kv = kv,
        .ring = ring,
        .ring_kv = ring_kv,
    };
    if (!tensor_bytes(m->embd.type, hp->n_embd, 1, &s->row_bytes) ||
        !tensor_bytes(m->head.type, hp->n_embd, 1, &s->head_row_bytes))
        return bn_fail(err, BN_EUNSUPPORTED,
                       "rows of %zu elements are not a whole number of blocks", hp->n_embd);
    return true;
}

/* Each array begins at a multiple of 16 bytes: its members need at most 8, cuda_copy needs 4. */
struct pass_layout cuda_pass_layout(const struct model *m, size_t n_tokens, size_t n_requests)
{
    const size_t rope_bytes = size_round_up(n_tokens * (m->hp.n_rot / 2) * sizeof(float), 16);
    struct pass_layout l = {.requests = 0};
    l.tokens = l.requests + size_round_up(n_requests * sizeof(struct cuda_request), 16);
    l.runs = l.tokens + size_round_up(n_tokens * sizeof(struct cuda_token), 16);
    l.rope_c =
        l.runs + (m->arch->delta_nets ? size_round_up(n_tokens * sizeof(struct cuda_run), 16) : 0);
    l.rope_s = l.rope_c + rope_bytes;
    l.end = l.rope_s + rope_bytes;
    return l;
}

/* An allocation in progress: its address and the bytes reserved so far. With address 0, `reserve`
 * returns NULL and only the size is computed. */
struct arena {
    CUdeviceptr at;
    size_t n_bytes;
};

static void *reserve(struct arena *a, size_t n, size_t unit_bytes)
{
    const uintptr_t p = a->at ? (uintptr_t)a->at + a->n_bytes : 0;
    a->n_bytes += size_round_up(n * unit_bytes, DEVICE_ALIGN);
    return (void *)p;
}

/* n inputs of matrices in R16. A row of q_stride columns has the most blocks if each block has 32
 * columns, which is the minimum. */
static void place_blocks(struct arena *a, const struct cuda_shape *s, size_t n, size_t q_stride,
                         struct block_inputs *out)
{
    const size_t n_blocks = q_stride / 32;
    *out = (struct block_inputs){.q_stride = (uint32_t)q_stride,
                                 .block_stride = (uint32_t)n_blocks,
                                 .n_planes = (uint32_t)s->widths.n_planes};
    if (!s->any_r16)
        return;
    if (s->widths.n_planes == 0)
        out->x = reserve(a, n * q_stride, sizeof(float));
    for (size_t p = 0; p < s->widths.n_planes; p++) {
        out->q[p] = reserve(a, n, q_stride);
        out->units[p] = reserve(a, n * n_blocks, sizeof(float));
        out->q_sums[p] = reserve(a, n * n_blocks, sizeof(int32_t));
    }
}

static void place_experts(struct arena *a, const struct cuda_shape *s, const struct hparams *hp,
                          size_t n_tokens, struct cuda_scratch *out)
{
    const size_t n_pairs = n_tokens * hp->n_used_experts;
    if (hp->n_experts == 0)
        return;
    out->expert_x = reserve(a, n_tokens * s->widths.h_stride, sizeof(float));
    out->router_z = reserve(a, n_tokens * hp->n_experts, sizeof(float));
    out->expert_y = reserve(a, n_pairs * s->widths.h_stride, sizeof(float));
    place_blocks(a, s, n_pairs, size_round_up(hp->n_ff, LINE_COLS), &out->pair_blocks);
    out->chosen = reserve(a, n_pairs, sizeof(struct cuda_choice));
    out->pair_starts = reserve(a, hp->n_experts + 1, sizeof(uint32_t));
    out->pairs = reserve(a, n_pairs, sizeof(uint32_t));
    out->expert_counts = reserve(a, hp->n_layers * hp->n_experts, 2 * sizeof(uint32_t));
}

static void place_scratch(struct arena *a, const struct cuda_shape *s, const struct model *m,
                          size_t n_tokens, struct cuda_scratch *out)
{
    out->h = reserve(a, n_tokens * s->widths.h_stride, sizeof(float));
    out->qkv = reserve(a, n_tokens * s->widths.qkv_stride, sizeof(float));
    out->attn = reserve(a, n_tokens * s->widths.attn_stride, sizeof(float));
    out->ffn = reserve(a, n_tokens * size_max(m->hp.n_used_experts, 1) * s->widths.ffn_stride,
                       sizeof(float));
    out->q8 = reserve(a, n_tokens, s->q8_stride);
    out->q8_s = reserve(a, n_tokens, sizeof(float));
    out->q8_sum = reserve(a, n_tokens, sizeof(int32_t));
    out->rotated = reserve(a, n_tokens * s->rotated_stride, sizeof(float));
    out->gates = reserve(a, n_tokens * m->hp.delta.n_value_heads, 2 * sizeof(float));
    out->n_ended = reserve(a, n_tokens * s->n_head_chunks, sizeof(uint32_t));
    place_blocks(a, s, size_max(n_tokens, HEAD_PASS_ROWS), s->q8_stride, &out->blocks);
    place_experts(a, s, &m->hp, n_tokens, out);
    out->table = reserve(a, cuda_pass_layout(m, n_tokens, n_tokens).end, 1);
    out->head_x = reserve(a, HEAD_PASS_ROWS * s->widths.h_stride, sizeof(float));
    out->z = reserve(a, HEAD_PASS_ROWS * s->widths.vocab_stride, sizeof(float));
    out->cands = reserve(a, HEAD_PASS_ROWS * s->widths.vocab_stride, sizeof(struct cuda_cand));
    out->bests = reserve(a, HEAD_PASS_ROWS * s->best_stride, sizeof(struct cuda_cand));
    out->query.x = reserve(a, HEAD_PASS_ROWS * s->n_coarse * COARSE_COLS, 2); /* two planes */
    out->query.fix = reserve(a, HEAD_PASS_ROWS * s->n_coarse * COARSE_SUMS, sizeof(int32_t));
    /* the stride of head_plane_stride */
    out->query.spread = reserve(a, HEAD_PASS_ROWS * size_round_up(s->n_coarse, 8), sizeof(float));
    out->query.errors = reserve(a, HEAD_PASS_ROWS * s->n_coarse * COARSE_COLS, sizeof(double));
    out->query.norms = reserve(a, HEAD_PASS_ROWS * s->n_coarse * 2, sizeof(double));
    out->query.screens = reserve(a, HEAD_PASS_ROWS, sizeof(struct cuda_screen));
    out->found = reserve(a, HEAD_PASS_ROWS, sizeof(struct cuda_found));
    out->ids = reserve(a, IDS_CHUNK, sizeof(int32_t));
    out->gathered = reserve(a, IDS_CHUNK, sizeof(float));
}

/* Rejects models and settings for which the backend has no kernels. --device auto then uses the
 * CPU. */
static bool check_support(const struct model *m, const struct backend_config *cfg,
                          struct bn_error *err)
{
    /* embed_rows applies embd_scale before the rotation, but docs/kernels.md applies it
     * afterwards. */
    if (m->rotation.version && m->arch->scaled)
        return bn_fail(err, BN_EUNSUPPORTED,
                       "the CUDA backend does not support rotated files of '%s'", m->arch->name);
    /* split_gates holds the queries and gates of all query heads of a KV head in shared memory. */
    const size_t most_heads = SPLIT_GATE_FLOATS / 2 / m->hp.head_dim;
    if (m->arch->delta_nets && m->hp.n_heads / m->hp.n_kv_heads > most_heads)
        return bn_fail(err, BN_EUNSUPPORTED,
                       "the CUDA backend supports at most %zu query heads for each KV head of %zu "
                       "elements in models with delta nets, and this one has %zu",
                       most_heads, m->hp.head_dim, m->hp.n_heads / m->hp.n_kv_heads);
    return cfg->head != BN_HEAD_Q8 ||
           bn_fail(err, BN_EUNSUPPORTED,
                   "the CUDA backend has no 8-bit output head: use --head exact");
}

bool cuda_plan_bytes(const struct model *m, const struct backend_config *cfg,
                     struct backend_plan *plan, struct bn_error *err)
{
    struct cuda_shape s;
    struct cuda_scratch unused = {0};
    struct arena a = {0};
    size_t weight_bytes;
    _Static_assert(BN_MAX_UBATCH <= 65535, "the most blocks of a grid in y and z");
    assert(cfg->n_ubatch >= 1 && cfg->n_ubatch <= BN_MAX_UBATCH);
    if (!check_support(m, cfg, err) || !cuda_shape_init(&s, m, cfg, err))
        return false;
    if (!cuda_weight_bytes(m, cfg->head, &weight_bytes))
        weight_bytes = SIZE_MAX;
    if (!model_check_growth(m, weight_bytes, err))
        return false;
    place_scratch(&a, &s, m, cfg->n_ubatch, &unused);
    *plan = (struct backend_plan){
        .weight_bytes = weight_bytes,
        .kv_bytes_per_token = (s.block_bytes + s.slot_bytes + KV_BLOCK - 1) / KV_BLOCK,
        .scratch_bytes = a.n_bytes,
        .seq_fixed_bytes =
            2 * s.state_bytes + s.ring.n_blocks * s.ring_kv.block_elems * sizeof(uint16_t),
        .state_bytes =
            s.state_bytes + window_state_blocks(&s.ring) * s.ring_kv.block_elems * sizeof(uint16_t),
    };
    return true;
}

/* Allocates host.n_active; nothing without experts. */
static bool open_host_experts(struct backend *b, struct bn_error *err)
{
    struct cuda_driver *d = &b->device.driver;
    const size_t n_bytes = b->model->hp.n_layers * sizeof *b->host.n_active;
    void *n_active = NULL;
    if (b->model->hp.n_experts == 0)
        return true;
    if (!cuda_ok(d, d->cuMemHostAlloc(&n_active, n_bytes, CU_MEMHOSTALLOC_DEVICEMAP),
                 "memory for the number of experts", err))
        return false;
    b->host.n_active = n_active;
    memset(n_active, 0, n_bytes);
    return cuda_ok(d, d->cuMemHostGetDevicePointer(&b->host.n_active_at, n_active, 0),
                   "mapping host memory", err);
}

static bool open_host(struct backend *b, struct bn_error *err)
{
    const struct model *m = b->model;
    struct cuda_driver *d = &b->device.driver;
    struct cuda_host *h = &b->host;
    void *table = NULL, *found = NULL, *embd = NULL;
    const size_t embd_bytes = b->n_ubatch * b->shape.widths.h_stride * sizeof *h->embd;
    const size_t widest = size_max(size_max(b->shape.widths.qkv_stride, b->shape.widths.ffn_stride),
                                   size_max(b->shape.widths.h_stride, b->shape.widths.attn_stride));
    const size_t table_bytes = cuda_pass_layout(m, b->n_ubatch, b->n_ubatch).end;
    if (!cuda_ok(d, d->cuMemHostAlloc(&table, table_bytes, CU_MEMHOSTALLOC_DEVICEMAP),
                 "memory for uploads", err))
        return false;
    h->table = table;
    if (!cuda_ok(
            d,
            d->cuMemHostAlloc(&found, HEAD_PASS_ROWS * sizeof *h->found, CU_MEMHOSTALLOC_DEVICEMAP),
            "memory for results", err))
        return false;
    h->found = found;
    if (m->ternary_embd.bytes) {
        if (!cuda_ok(d, d->cuMemHostAlloc(&embd, embd_bytes, CU_MEMHOSTALLOC_DEVICEMAP),
                     "memory for embeddings", err))
            return false;
        h->embd = embd;
        memset(embd, 0, embd_bytes); /* the padding of rows stays zero */
        if (!cuda_ok(d, d->cuMemHostGetDevicePointer(&h->embd_at, embd, 0), "mapping host memory",
                     err))
            return false;
    }
    if (!cuda_ok(d, d->cuMemHostGetDevicePointer(&h->table_at, table, 0), "mapping host memory",
                 err) ||
        !cuda_ok(d, d->cuMemHostGetDevicePointer(&h->found_at, found, 0), "mapping host memory",
                 err))
        return false;
    if (!open_host_experts(b, err))
        return false;
    h->cands = mem_alloc(m->hp.n_vocab, sizeof *h->cands);
    h->z = mem_alloc(m->hp.n_vocab, sizeof *h->z);
    h->seen = mem_alloc(m->hp.n_vocab / 64 + 1, sizeof *h->seen);
    h->ids = mem_alloc(IDS_CHUNK, sizeof *h->ids);
    h->gathered = mem_alloc(IDS_CHUNK, sizeof *h->gathered);
    h->requests = mem_alloc(b->n_ubatch, sizeof *h->requests);
    h->trace = b->cfg.trace ? mem_alloc(widest, sizeof *h->trace) : NULL;
    h->ring_block = b->shape.ring.n_blocks > 0
                        ? mem_alloc(b->shape.ring_kv.block_elems, sizeof *h->ring_block)
                        : NULL;
    if (b->shape.ring.n_blocks > 0 && !h->ring_block)
        return bn_fail(err, BN_ENOMEM, "no memory for a block of %zu elements",
                       (size_t)b->shape.ring_kv.block_elems);
    if (!h->cands || !h->z || !h->seen || !h->ids || !h->gathered || !h->requests ||
        (b->cfg.trace && !h->trace))
        return bn_fail(err, BN_ENOMEM, "no memory for %zu candidates", m->hp.n_vocab);
    return true;
}

bool cuda_scratch_open(struct backend *b, struct bn_error *err)
{
    struct cuda_driver *d = &b->device.driver;
    struct arena a = {0};
    place_scratch(&a, &b->shape, b->model, b->n_ubatch, &b->scratch);
    CUdeviceptr memory = 0;
    if (!cuda_ok(d, d->cuMemAlloc(&memory, a.n_bytes), "GPU memory for scratch", err))
        return false;
    a = (struct arena){.at = memory};
    place_scratch(&a, &b->shape, b->model, b->n_ubatch, &b->scratch);
    b->scratch.memory = memory;
    /* n_ended and expert_counts start at 0. The other zeros keep the padding of rows defined. */
    return cuda_ok(d, d->cuMemsetD8(memory, 0, a.n_bytes), "clearing GPU memory", err) &&
           open_host(b, err);
}

/* Ignores all errors: after a device is lost, every call fails, but the rest must be freed. */
void cuda_scratch_close(struct backend *b)
{
    struct cuda_driver *d = &b->device.driver;
    struct cuda_host *h = &b->host;
    if (h->table)
        (void)d->cuMemFreeHost(h->table);
    if (h->found)
        (void)d->cuMemFreeHost(h->found);
    if (h->embd)
        (void)d->cuMemFreeHost(h->embd);
    if (h->n_active)
        (void)d->cuMemFreeHost(h->n_active);
    if (b->scratch.memory)
        (void)d->cuMemFree(b->scratch.memory);
    mem_free(h->ring_block);
    mem_free(h->cands);
    mem_free(h->z);
    mem_free(h->seen);
    mem_free(h->ids);
    mem_free(h->gathered);
    mem_free(h->requests);
    mem_free(h->trace);
}
