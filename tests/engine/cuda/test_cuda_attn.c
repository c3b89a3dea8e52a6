/*
 * Compares attn_apply with engine/cpu/ref, byte for byte, on the twin: passes that continue
 * sequences, windows, rings, several sequences in a pass, heads and groups of odd sizes. Positions
 * that no token sees hold random bits, many of them NaN or infinity, which must have no effect.
 */
#include "engine/base/fp16.h"
#include "engine/base/size.h"
#include "tests/engine/cuda/attn_kit.h"

#define MAX_SEQS 3
#define KV_HEADS 2
#define LAYERS 2 /* attention runs in the second one */

struct attn_case {
    uint32_t head_dim, n_q_per_kv, window;
    uint32_t ring_blocks; /* 0: no ring */
    uint32_t gap;         /* elements between the queries of two KV heads, as for gates */
    struct {
        uint32_t pos, n; /* first position and number of tokens; n 0: no sequence */
    } seqs[MAX_SEQS];
};

struct attn_data {
    struct attn_case c;
    struct kv_shape kv;
    uint32_t n_blocks[MAX_SEQS]; /* places for position blocks */
    uint16_t *caches[MAX_SEQS];
    uint32_t n_tokens, q_kv_stride, qkv_stride, out_stride;
    struct cuda_token *tokens;
    float *qkv, *out;
};

/* Keys of a position block in the layer under test. */
static uint16_t *keys_of(const struct attn_data *d, uint32_t seq, uint32_t kv_head, uint32_t block)
{
    return d->caches[seq] + block % d->n_blocks[seq] * d->kv.block_elems +
           (LAYERS - 1) * d->kv.layer_elems + kv_head * d->kv.head_elems;
}

/* Fills a cache with random bits and the visible positions with finite numbers. */
static void fill_cache(struct attn_data *d, uint32_t seq, struct random *r)
{
    const struct attn_case *c = &d->c;
    const uint32_t end = c->seqs[seq].pos + c->seqs[seq].n;
    const size_t n_elems = d->n_blocks[seq] * d->kv.block_elems;
    d->caches[seq] = zeros(n_elems, sizeof **d->caches);
    for (size_t i = 0; i < n_elems; i++)
        d->caches[seq][i] = (uint16_t)next_u32(r);
    for (uint32_t pos = kit_oldest(c->window, c->seqs[seq].pos); pos < end; pos++)
        for (uint32_t head = 0; head < KV_HEADS; head++) {
            uint16_t *keys = keys_of(d, seq, head, pos / KV_BLOCK);
            uint16_t *values =
                keys + c->head_dim * KV_BLOCK + pos % KV_BLOCK * (size_t)d->kv.v_stride;
            for (uint32_t i = 0; i < c->head_dim; i++) {
                keys[i * KV_BLOCK + pos % KV_BLOCK] = f32_to_f16(next_float(r));
                values[i] = f32_to_f16(next_float(r));
            }
        }
}

static struct attn_data attn_make(struct attn_case c, struct random *r)
{
    struct attn_data d = {.c = c, .q_kv_stride = c.n_q_per_kv * c.head_dim + c.gap};
    const uint32_t v_stride = (uint32_t)size_round_up(c.head_dim, 32);
    const uint64_t head_elems = (uint64_t)KV_BLOCK * (c.head_dim + v_stride);
    d.kv = (struct kv_shape){.block_elems = LAYERS * KV_HEADS * head_elems,
                             .layer_elems = KV_HEADS * head_elems,
                             .head_elems = head_elems,
                             .head_dim = c.head_dim,
                             .v_stride = v_stride,
                             .is_ring = c.ring_blocks > 0};
    d.qkv_stride = KV_HEADS * d.q_kv_stride + 8;
    d.out_stride = KV_HEADS * c.n_q_per_kv * c.head_dim + 3;
    for (uint32_t seq = 0; seq < MAX_SEQS; seq++)
        d.n_tokens += c.seqs[seq].n;
    d.tokens = zeros(d.n_tokens, sizeof *d.tokens);
    d.qkv = floats(r, (size_t)d.n_tokens * d.qkv_stride);
    d.out = floats(r, (size_t)d.n_tokens * d.out_stride);
    uint32_t token = 0;
    for (uint32_t seq = 0; seq < MAX_SEQS && c.seqs[seq].n > 0; seq++) {
        const uint32_t n_all = (c.seqs[seq].pos + c.seqs[seq].n - 1) / KV_BLOCK + 1;
        d.n_blocks[seq] = c.ring_blocks > 0 ? c.ring_blocks : n_all;
        fill_cache(&d, seq, r);
        for (uint32_t i = 0; i < c.seqs[seq].n; i++)
            d.tokens[token++] = (struct cuda_token){.kv = d.caches[seq],
                                                    .ring = d.caches[seq],
                                                    .pos = (int32_t)(c.seqs[seq].pos + i),
                                                    .ring_blocks = c.ring_blocks};
    }
    return d;
}

static void attn_free(struct attn_data *d)
{
    for (uint32_t seq = 0; seq < MAX_SEQS; seq++)
        mem_free(d->caches[seq]);
    FREE_ALL(d->tokens, d->qkv, d->out);
}

static void check_case(struct attn_case c, struct random *r, enum twin_order order)
{
    struct attn_data d = attn_make(c, r);
    const struct attn_args a = {.tokens = d.tokens,
                                .qkv = d.qkv,
                                .out = d.out,
                                .kv = d.kv,
                                .n_tokens = d.n_tokens,
                                .qkv_stride = d.qkv_stride,
                                .out_stride = d.out_stride,
                                .n_heads = KV_HEADS * c.n_q_per_kv,
                                .n_q_per_kv = c.n_q_per_kv,
                                .q_kv_stride = d.q_kv_stride,
                                .layer = LAYERS - 1,
                                .window = c.window};
    const uint32_t n_tiles = (d.n_tokens * c.n_q_per_kv + APPLY_ROWS - 1) / APPLY_ROWS;
    float *out = zeros(c.head_dim, sizeof *out);
    float *before = zeros((size_t)d.n_tokens * d.out_stride, sizeof *before);
    memcpy(before, d.out, (size_t)d.n_tokens * d.out_stride * sizeof *before);
    launch("attn_apply", n_tiles * KV_HEADS * ((c.head_dim + APPLY_ELEMS - 1) / APPLY_ELEMS), 1, 1,
           0, &a, order);
    uint32_t token = 0;
    for (uint32_t seq = 0; seq < MAX_SEQS; seq++)
        for (uint32_t i = 0; i < c.seqs[seq].n; i++, token++) {
            float *const row = d.out + (size_t)token * d.out_stride;
            for (uint32_t h = 0; h < KV_HEADS * c.n_q_per_kv; h++) {
                const float *q = d.qkv + (size_t)token * d.qkv_stride +
                                 h / c.n_q_per_kv * (size_t)d.q_kv_stride +
                                 h % c.n_q_per_kv * (size_t)c.head_dim;
                const uint32_t pos = c.seqs[seq].pos + i;
                expect_attention(&d.kv, keys_of(&d, seq, h / c.n_q_per_kv, 0), d.n_blocks[seq],
                                 kit_oldest(c.window, pos), pos, q, out);
                assert_same(row + h * c.head_dim, out, c.head_dim * sizeof *out, "attention");
            }
            /* nothing is written behind the heads */
            assert_same(row + KV_HEADS * c.n_q_per_kv * c.head_dim,
                        before + (size_t)token * d.out_stride +
                            KV_HEADS * c.n_q_per_kv * c.head_dim,
                        3 * sizeof *row, "the rest of the row");
        }
    FREE_ALL(out, before);
    attn_free(&d);
}

static void heads_and_groups_of_any_size(void **state)
{
    (void)state;
    /* with tokens before the pass; some thread blocks end between two heads of a token */
    static const struct attn_case cases[] = {
        {.head_dim = 128, .n_q_per_kv = 4, .seqs = {{100, 37}}},
        {.head_dim = 64, .n_q_per_kv = 4, .seqs = {{1100, 5}}},
        {.head_dim = 64, .n_q_per_kv = 1, .seqs = {{63, 70}}},
        {.head_dim = 80, .n_q_per_kv = 2, .seqs = {{1, 33}}},
        {.head_dim = 96, .n_q_per_kv = 5, .seqs = {{64, 13}}},
        {.head_dim = 256, .n_q_per_kv = 6, .gap = 1536, .seqs = {{130, 11}}},
        {.head_dim = 130, .n_q_per_kv = 9, .seqs = {{0, 4}}},
        {.head_dim = 33, .n_q_per_kv = 7, .seqs = {{50, 20}}},
        {.head_dim = 1, .n_q_per_kv = 8, .seqs = {{126, 5}}},
        {.head_dim = 44, .n_q_per_kv = 3, .gap = 2, .seqs = {{62, 3}}},
    };
    CHECK_CASES(cases, 11);
}

static void windows_and_rings(void **state)
{
    (void)state;
    /* windows within a block, of whole blocks, of one position; rings that wrap around */
    static const struct attn_case cases[] = {
        {.head_dim = 32, .n_q_per_kv = 4, .window = 10, .seqs = {{40, 100}}},
        {.head_dim = 32, .n_q_per_kv = 4, .window = 64, .seqs = {{127, 66}}},
        {.head_dim = 32, .n_q_per_kv = 3, .window = 1, .seqs = {{0, 70}}},
        {.head_dim = 32, .n_q_per_kv = 2, .window = 100, .ring_blocks = 4, .seqs = {{300, 90}}},
        {.head_dim = 64, .n_q_per_kv = 1, .window = 130, .ring_blocks = 5, .seqs = {{0, 200}}},
        {.head_dim = 20, .n_q_per_kv = 4, .window = 64, .ring_blocks = 2, .seqs = {{1000, 40}}},
    };
    CHECK_CASES(cases, 11);
}

static void several_sequences_in_a_pass(void **state)
{
    (void)state;
    /* sequences that share a thread block, at very different positions */
    static const struct attn_case cases[] = {
        {.head_dim = 32, .n_q_per_kv = 4, .seqs = {{200, 2}, {0, 3}, {63, 1}}},
        {.head_dim = 32, .n_q_per_kv = 2, .seqs = {{10, 20}, {128, 40}, {60, 9}}},
        {.head_dim = 48, .n_q_per_kv = 5, .window = 70, .seqs = {{0, 1}, {500, 30}, {3, 2}}},
        {.head_dim = 16,
         .n_q_per_kv = 4,
         .window = 20,
         .ring_blocks = 3,
         .seqs = {{250, 5}, {7, 90}, {130, 1}}},
    };
    CHECK_CASES(cases, 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_and_groups_of_any_size),
        cmocka_unit_test(windows_and_rings),
        cmocka_unit_test(several_sequences_in_a_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
