/*
 * Opening and closing the CPU backend, and one evaluation: check the items, cut them into token
 * blocks and run the pass. The lengths of the sequences and of the result rows change only after
 * its success.
 */
#include "engine/cpu/cpu_backend.h"

#include "engine/base/clock.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_attn.h"
#include "engine/cpu/cpu_delta.h"
#include "engine/cpu/cpu_experts.h"
#include "engine/cpu/cpu_forward.h"
#include "engine/cpu/cpu_head_load.h"
#include "engine/cpu/cpu_kv.h"
#include "engine/cpu/cpu_measure.h"
#include "engine/cpu/cpu_pack.h"
#include "engine/cpu/cpu_profile.h"
#include "engine/cpu/cpu_sizes.h"
#include "engine/cpu/cpu_threads.h"
#include "engine/model/rope.h"

#include <stdio.h>
#include <string.h>

static bool cpu_probe(const struct backend_config *cfg, char *text, size_t text_bytes)
{
    struct cpu_caps caps;
    enum cpu_isa best = ISA_REF;
    if (cfg->index != 0) {
        (void)snprintf(text, text_bytes, "there is one CPU device, number 0");
        return false;
    }
    cpu_caps_detect(&caps);
    for (enum cpu_isa isa = ISA_REF; isa < ISA_N; isa++)
        if (caps.has[isa])
            best = isa;
    const size_t n_threads = cpu_default_threads();
    (void)snprintf(text, text_bytes, "%zu thread%s, %s", n_threads, n_threads == 1 ? "" : "s",
                   cpu_isa_title(best));
    return true;
}

/* Use the instruction sets that the machine has, up to the requested one, except those that failed
 * the self-test. */
static bool choose_kernels(struct backend *b, struct bn_error *err)
{
    struct cpu_caps caps;
    char why[800]; /* a line for each of at most four instruction sets */
    cpu_caps_detect(&caps);
    if (!cpu_caps_limit(&caps, b->cfg.isa, err))
        return false;
    cpu_caps_self_test(&caps, why, sizeof why);
    struct bn_str line; /* one for each instruction set that failed */
    for (size_t at = 0; bn_str_next_line(bn_str_of(why), &at, &line);)
        bn_log(&b->cfg.log, BN_LOG_WARNING, "%.*s", (int)line.n_bytes, line.ptr);
    cpu_kernels_init(&b->k, &caps);
    if (!b->k.skips_zeros)
        b->cfg.skip = BN_SKIP_OFF;
    return true;
}

static const char *head_form(const struct backend *b)
{
    if (b->head_map.ptr)
        return "rows at eight bits, approximate";
    if (b->ternary_head.n_groups > 0)
        return "ternary";
    return b->coarse.n_blocks > 0 ? "screened at four bits" : "read from the file";
}

/* Bytes of the experts that one token does not use. */
static size_t unused_expert_bytes(const struct backend *b)
{
    const struct hparams *hp = &b->model->hp;
    if (hp->n_experts == 0)
        return 0;
    return b->expert_bytes / hp->n_experts * (hp->n_experts - hp->n_used_experts);
}

/* With rings, the bytes of seq_save have only the window of each layer with a ring. */
static const char *kv_version(const struct backend *b)
{
    if (b->shape.ring.n_blocks > 0)
        return b->cfg.kv == BN_KV_Q8 ? "cpu-q8-ring-1" : "cpu-f16-ring-1";
    return b->cfg.kv == BN_KV_Q8 ? "cpu-q8-1" : "cpu-f16-1";
}

static void fill_info(struct backend *b, const struct backend_plan *plan)
{
    const struct model *m = b->model;
    /* A screened head also reads some rows of the table. Their number depends on the input, so they
     * are not counted here. */
    const size_t head_bytes =
        b->coarse.n_blocks ? b->coarse_bytes : m->hp.n_vocab * b->shape.head_row_bytes;
    const size_t unused_bytes = unused_expert_bytes(b);
    size_t recurrent = 0;
    (void)recurrent_bytes(&m->hp, &recurrent); /* the plan has shown that it fits size_t */
    b->info = (struct backend_info){
        .isa = cpu_isa_name(b->k.isa),
        .n_threads = b->n_threads,
        .plan = *plan,
        .bytes_per_token = b->line_bytes + b->n_floats * sizeof(float) - unused_bytes + head_bytes +
                           b->shape.row_bytes + 2 * recurrent,
        .head_bytes = head_bytes,
        .kv_type = b->cfg.kv == BN_KV_Q8 ? "q8" : "f16",
        .kv_version = kv_version(b),
    };
    b->strategy_model = (struct strategy_model){.k = &b->k,
                                                .line_bytes = b->line_bytes - unused_bytes,
                                                .head_bytes = head_bytes,
                                                .n_kv_heads = m->hp.n_kv_heads,
                                                .n_ubatch = b->n_ubatch,
                                                .uses_r16 = pass_uses_r16(m),
                                                .is_quantised = m->act_scheme != ACT_FLOAT,
                                                .head_form = head_form(b),
                                                .kv_form = b->cfg.kv == BN_KV_Q8 ? "bytes" : "F16",
                                                .kv_bytes_per_token = plan->kv_bytes_per_token,
                                                .n_threads = b->n_threads,
                                                .all_threads = b->cfg.n_threads > 0};
    (void)snprintf(b->info.text, sizeof b->info.text, "CPU, %zu thread%s, %s%s%s", b->n_threads,
                   b->n_threads == 1 ? "" : "s", cpu_isa_title(b->k.isa),
                   b->head_map.ptr ? ", head at 8 bits" : "",
                   b->cfg.kv == BN_KV_Q8 ? ", KV cache at 8 bits" : "");
}

static void cpu_close(struct backend *b)
{
    if (!b)
        return;
    mem_map_close(&b->scratch.map);
    mem_map_close(&b->lines);
    screen_close(b);
    mem_map_close(&b->head_map);
    mem_free(b->floats);
    mem_free(b->layers);
    mem_free(b->rope_freq);
    team_unpin(b->pins);
    mem_free(b);
}

/* Whether there are kernels for the types of both tables. A ternary embedding and a ternary output
 * head need none. */
static bool check_tables(const struct backend *b, struct bn_error *err)
{
    const struct model *m = b->model;
    const bool has_embd = m->ternary_embd.bytes || b->k.row_decode[m->embd.type];
    const bool has_head = m->head_linear.source.bytes || b->k.rows_dot[m->head.type];
    return (has_embd && has_head) ||
           bn_fail(err, BN_EUNSUPPORTED, "tables of type %s are not supported",
                   tensor_geometries[has_embd ? m->head.type : m->embd.type].name);
}

/* On failure the caller closes b. */
static bool open_backend(struct backend *b, const struct backend_control *control,
                         struct bn_error *err)
{
    const struct model *m = b->model;
    struct backend_plan plan;
    if (!cpu_sizes_plan(m, &b->cfg, &plan, err) || !choose_kernels(b, err) || !check_tables(b, err))
        return false;
    b->n_threads = team_start(b->cfg.n_threads ? b->cfg.n_threads : cpu_default_threads());
    /* Threads are pinned before they first write memory, so that its pages are near them. */
    if (b->cfg.pin && !team_pin(b->n_threads, &b->pins, err))
        return false;
    b->rope_freq = mem_alloc(m->hp.n_rot, sizeof(double)); /* two tables of n_rot / 2 */
    if (!b->rope_freq)
        return bn_fail(err, BN_ENOMEM, "no memory for the RoPE table");
    if (!cpu_sizes_shape(&b->shape, m, &b->cfg, b->n_threads, err) ||
        !rope_freq_init(b->rope_freq, m, false, err) ||
        !rope_freq_init(b->rope_freq + m->hp.n_rot / 2, m, true, err) ||
        !cpu_scratch_open(b, err) || !pack_model(b, control, err))
        return false;
    fill_info(b, &plan);
    return true;
}

static bool cpu_open(const struct model *m, const struct backend_config *cfg,
                     const struct backend_control *control, struct backend **out,
                     struct bn_error *err)
{
    struct backend *b = mem_alloc(1, sizeof *b);
    if (!b)
        return bn_fail(err, BN_ENOMEM, "no memory for the backend");
    b->model = m;
    b->head = m->head;
    b->cfg = *cfg;
    b->n_ubatch = cfg->n_ubatch;
    b->pass.b = b;
    if (!open_backend(b, control, err)) {
        cpu_close(b);
        return false;
    }
    *out = b;
    return true;
}

/* Assumes that the new ids of every sequence begin at a multiple of ATTN_TILE. */
static size_t cpu_explain(const struct backend *b, size_t n_items, size_t n_ids, char *text,
                          size_t text_bytes)
{
    const struct strategy_work work = {
        .n_tokens = n_items * n_ids,
        .n_token_blocks = n_items * ((n_ids + ATTN_TILE - 1) / ATTN_TILE),
        .n_requested_rows = n_items,
    };
    return strategy_explain(&b->strategy_model, &work, text, text_bytes);
}

static size_t cpu_expert_counts(const struct backend *b, uint64_t *out, size_t cap)
{
    const size_t n = b->model->hp.n_layers * b->model->hp.n_experts;
    if (n > 0 && cap > 0)
        memcpy(out, b->scratch.n_chosen, size_min(n, cap) * sizeof *out);
    return n;
}

static size_t cpu_free_bytes(struct backend *b)
{
    (void)b;
    return mem_free_bytes();
}

static const struct backend_info *cpu_info(const struct backend *b)
{
    return &b->info;
}

/* Cut an item into token blocks, each within one aligned group of ATTN_TILE positions. */
static void add_token_blocks(struct pass *pass, const struct eval_item *item, size_t token0)
{
    struct token_block *blocks = pass->b->scratch.token_blocks;
    const size_t pos0 = item->seq->length;
    for (size_t i = 0; i < item->n_ids;) {
        const size_t pos = pos0 + i;
        const size_t n = size_min(ATTN_TILE - pos % ATTN_TILE, item->n_ids - i);
        blocks[pass->n_token_blocks++] = (struct token_block){item->seq, token0 + i, n, pos};
        i += n;
    }
}

/* The tokens of an item are one run. The pass writes their recurrent state to the copy that is not
 * current. */
static void add_run(struct pass *pass, const struct eval_item *item, size_t token0)
{
    if (item->n_ids == 0)
        return;
    pass->b->scratch.runs[pass->n_runs++] =
        (struct token_block){item->seq, token0, item->n_ids, item->seq->length};
    copies_begin(&item->seq->recurrent.copies);
}

static void add_requested_rows(struct pass *pass, const struct eval_item *item, size_t token0)
{
    const size_t first = item->n_ids - item->n_rows;
    if (item->head.kind == HEAD_NONE)
        return;
    for (size_t i = 0; i < item->n_rows; i++)
        pass->b->scratch.requested_rows[pass->n_requested_rows++] = (struct requested_row){
            .request = &item->head,
            .row = &item->rows[i],
            .token = token0 + first + i,
            .position = item->seq->length + first + i + 1,
        };
}

/* Bytes that a pass reads, without output head and experts: the weights once, rows of the
 * embedding, the keys and values once per token block. The recurrent states count twice, because
 * they are also written. */
static uint64_t pass_bytes(const struct pass *pass)
{
    const struct backend *b = pass->b;
    return b->line_bytes + b->n_floats * sizeof(float) - b->expert_bytes +
           pass->n_tokens * b->shape.row_bytes + attn_bytes(pass) + delta_bytes(pass);
}

/* Whether the micro-batch and the contexts have room for the new ids. BN_EARG, BN_ECONTEXT. */
static bool items_fit(const struct backend *b, const struct eval_item *items, size_t n_items,
                      struct bn_error *err)
{
    size_t n_tokens = 0;
    for (size_t i = 0; i < n_items; n_tokens += items[i++].n_ids)
        if (!eval_item_fits(&items[i], n_tokens, b->n_ubatch, items[i].seq->length,
                            items[i].seq->n_ctx, err))
            return false;
    return true;
}

/* Prepare b->pass for items that fit. */
static void begin_pass(struct backend *b, const struct eval_item *items, size_t n_items,
                       const struct backend_control *control)
{
    struct pass *pass = &b->pass;
    pass->items = items;
    pass->n_tokens = pass->n_token_blocks = pass->n_runs = pass->n_requested_rows = 0;
    pass->control = control;
    pass->stopped = false;
    pass->n_experts_read = 0;
    for (size_t i = 0; i < b->n_threads; i++)
        b->scratch.threads[i].up_skipped = b->scratch.threads[i].down_skipped = 0;
    atomic_store(&pass->head_bytes, 0);
    atomic_store(&pass->not_finite, false);
    atomic_store(&pass->min_cap, 0);
    for (size_t i = 0; i < n_items; i++) {
        add_token_blocks(pass, &items[i], pass->n_tokens);
        add_run(pass, &items[i], pass->n_tokens);
        add_requested_rows(pass, &items[i], pass->n_tokens);
        pass->n_tokens += items[i].n_ids;
    }
    pass->strategy = strategy_for_pass(
        &b->strategy_model, &(struct strategy_work){.n_tokens = pass->n_tokens,
                                                    .n_token_blocks = pass->n_token_blocks,
                                                    .n_requested_rows = pass->n_requested_rows});
    pass->gemm = strategy_gemm(&b->k, pass->strategy.linear);
    pass->n_bytes = pass_bytes(pass);
}

static bool cpu_eval(struct backend *b, struct eval_item *items, size_t n_items,
                     const struct backend_control *control, uint64_t *n_bytes, struct bn_error *err)
{
    struct pass *pass = &b->pass;
    /* First, because add_run already changes sequences with recurrent states. */
    if (!items_fit(b, items, n_items, err))
        return false;
    begin_pass(b, items, n_items, control);
    *n_bytes = 0;
    if (pass->n_tokens == 0)
        return true;
    for (size_t i = 0; i < n_items; i++)
        kv_begin(items[i].seq, items[i].n_ids);
    profile_begin(pass);
    const bool ok = forward_run(pass, err);
    profile_end(pass);
    if (!ok)
        return false;
    for (size_t i = 0; i < n_items; i++)
        items[i].seq->length += items[i].n_ids;
    for (size_t i = 0; i < pass->n_runs; i++) {
        struct seq *s = b->scratch.runs[i].seq;
        copies_commit(&s->recurrent.copies, s->length);
    }
    for (size_t i = 0; i < pass->n_requested_rows; i++)
        b->scratch.requested_rows[i].row->n = b->scratch.requested_rows[i].n_found;
    *n_bytes = pass->n_bytes + experts_pass_bytes(pass) +
               atomic_load_explicit(&pass->head_bytes, memory_order_relaxed);
    for (size_t i = 0; i < b->n_threads; i++)
        *n_bytes -= b->scratch.threads[i].up_skipped + b->scratch.threads[i].down_skipped;
    return true;
}

const struct backend_ops cpu_backend_ops = {
    .name = "cpu",
    .probe = cpu_probe,
    .plan = cpu_sizes_plan,
    .open = cpu_open,
    .close = cpu_close,
    .info = cpu_info,
    .bandwidth = cpu_measure_bandwidth,
    .mac_peak = cpu_measure_mac_peak,
    .explain = cpu_explain,
    .expert_counts = cpu_expert_counts,
    .free_bytes = cpu_free_bytes,
    .profile = cpu_profile,
    .seq_open = kv_open,
    .seq_close = kv_close,
    .eval = cpu_eval,
    .reachable = kv_reachable,
    .truncate = kv_truncate,
    .state_save = kv_state_save,
    .state_load = kv_state_load,
    .seq_save = kv_save,
    .seq_save_bytes = kv_save_bytes,
    .seq_load = kv_load,
};
