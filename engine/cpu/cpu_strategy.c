/*
 * Chooses and describes strategies. The limits for threads and attention are one table here. Those
 * between the linear methods are in kernels.c (medium_from, many_from) and kernels_r16.h
 * (R16_FEW).
 */
#include "engine/cpu/cpu_strategy.h"

#include "engine/base/size.h"

#include <stdio.h>

/* Each thread needs so much work that its waits are short in comparison. A layer has about eight
 * barriers. Each takes a fraction of a microsecond on a quiet machine, and up to milliseconds if
 * another program uses a core. */
static const struct {
    size_t thread_bytes; /* weights read by a thread: 0.2 ms at 20 GB/s */
    size_t thread_macs;  /* multiply-adds of linear layers for a thread: 0.2 ms at 300 GMAC/s */
    size_t load_bytes;   /* weights packed by a thread: 1 ms at 4 GB/s */
} limits = {.thread_bytes = (size_t)4 << 20,
            .thread_macs = (size_t)64 << 20,
            .load_bytes = (size_t)4 << 20};

static size_t clamp_threads(size_t n, size_t n_threads)
{
    return size_max(size_min(n, n_threads), 1);
}

enum linear_method strategy_linear(const struct cpu_kernels *k, size_t n_tokens)
{
    if (n_tokens == 1)
        return LINEAR_MATVEC;
    if (n_tokens >= k->many_from)
        return LINEAR_MANY;
    return n_tokens >= k->medium_from ? LINEAR_MEDIUM : LINEAR_FEW;
}

const struct ternary_gemm *strategy_gemm(const struct cpu_kernels *k, enum linear_method method)
{
    if (method == LINEAR_MANY)
        return &k->many;
    return method == LINEAR_MEDIUM ? &k->medium : &k->few;
}

struct strategy strategy_for_pass(const struct strategy_model *m, const struct strategy_work *w)
{
    const size_t n_bytes = m->line_bytes + (w->n_requested_rows > 0 ? m->head_bytes : 0);
    const size_t n_macs = 4 * m->line_bytes * w->n_tokens; /* four weights per byte */
    /* Up to four tokens the bytes decide, beyond that the multiply-adds can. */
    const size_t n_useful = size_max(n_bytes / limits.thread_bytes, n_macs / limits.thread_macs);
    struct strategy p = {
        .n_active = m->all_threads ? m->n_threads : clamp_threads(n_useful, m->n_threads),
        .linear = strategy_linear(m->k, w->n_tokens),
        .attn = ATTN_TOKEN_BLOCKS,
    };
    if (p.n_active > 1 && w->n_token_blocks == w->n_tokens &&
        w->n_token_blocks * m->n_kv_heads < ATTN_ITEMS_PER_THREAD * p.n_active)
        p.attn = ATTN_SPLIT;
    return p;
}

size_t strategy_load_threads(size_t weight_bytes, size_t n_threads)
{
    return clamp_threads(weight_bytes / limits.load_bytes, n_threads);
}

/* The instruction set of the kernels for linear layers. AMX has kernels of R1-256 for 5 tokens and
 * more, and of R16 for more than R16_FEW; for fewer the AVX-512 kernels are used. I8MM has only
 * kernels of R1-256 for several tokens; in all other cases those of dotprod are used. Only ref
 * multiplies activations that are not quantised. */
static const char *linear_title(const struct strategy_model *m, enum linear_method method)
{
    const bool is_few = method != LINEAR_MEDIUM && method != LINEAR_MANY;
    if (m->uses_r16 && !m->is_quantised)
        return cpu_isa_title(ISA_REF);
    if (m->k->isa == ISA_AMX && is_few)
        return cpu_isa_title(ISA_AVX512VNNI);
    if (m->k->isa == ISA_I8MM && (is_few || m->uses_r16))
        return cpu_isa_title(ISA_DOTPROD);
    return cpu_isa_title(m->k->isa);
}

static void describe_linear(const struct strategy_model *m, const struct strategy *p,
                            size_t n_tokens_now, char *text, size_t text_bytes)
{
    const struct ternary_gemm *gemm = strategy_gemm(m->k, p->linear);
    const size_t n_rows = m->uses_r16 ? R16_PANEL * R16_ROWS : gemm->panel_rows;
    const size_t n_tokens = m->uses_r16 ? R16_TOKENS : gemm->call_tokens;
    const bool is_single = m->uses_r16 && (n_tokens_now <= R16_FEW || !m->is_quantised);
    if (p->linear == LINEAR_MATVEC || is_single)
        (void)snprintf(text, text_bytes, "rows split over the threads%s, %s",
                       n_tokens_now > 1 ? ", one token at a time" : "",
                       linear_title(m, LINEAR_MATVEC));
    else
        (void)snprintf(text, text_bytes, "panels of %zu rows by %zu tokens, %s", n_rows, n_tokens,
                       linear_title(m, p->linear));
}

size_t strategy_explain(const struct strategy_model *m, const struct strategy_work *w, char *text,
                        size_t text_bytes)
{
    const struct strategy p = strategy_for_pass(m, w);
    char linear[100], attn[100];
    describe_linear(m, &p, w->n_tokens, linear, sizeof linear);
    if (p.attn == ATTN_SPLIT)
        (void)snprintf(attn, sizeof attn, "blocks of %d positions split over the threads",
                       KV_BLOCK);
    else
        (void)snprintf(attn, sizeof attn, "%zu items, each a token block and a KV head",
                       w->n_token_blocks * m->n_kv_heads);
    const int n =
        snprintf(text, text_bytes,
                 "tokens           %zu at once, %zu at most\n"
                 "threads          %zu of %zu%s\n"
                 "linear layers    %s, %.1f MB\n"
                 "attention        %s\n"
                 "KV cache         %s, %.1f kB a token\n"
                 "head             %zu row%s, %s, %.1f MB\n",
                 w->n_tokens, m->n_ubatch, p.n_active, m->n_threads,
                 m->all_threads              ? ", as requested"
                 : p.n_active < m->n_threads ? ", more would have too little work"
                                             : "",
                 linear, (double)m->line_bytes / 1e6, attn, m->kv_form,
                 (double)m->kv_bytes_per_token / 1e3, w->n_requested_rows,
                 w->n_requested_rows == 1 ? "" : "s", m->head_form, (double)m->head_bytes / 1e6);
    return n > 0 ? (size_t)n : 0;
}
