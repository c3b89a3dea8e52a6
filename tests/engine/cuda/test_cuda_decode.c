/*
 * Compares attn_split, attention in decode, with engine/cpu/ref on the twin, byte for byte: one
 * token for each of several sequences, with QK norm, RoPE, windows and rings, heads and groups of
 * odd sizes, and any number of thread blocks for a token. Positions that no token sees hold random
 * bits, many of them NaN or infinity, which must have no effect.
 */
#include "engine/base/fp16.h"
#include "engine/base/size.h"
#include "tests/engine/cuda/attn_kit.h"

#define MAX_SEQS 3
#define KV_HEADS 2
#define LAYERS 2 /* attention runs in the second one */
#define PAD 3    /* floats behind the results of a token */

struct decode_case {
    /* n_shares: thread blocks that share the position blocks of a token */
    uint32_t head_dim, n_q_per_kv, n_rot, n_shares;
    uint32_t window, ring_blocks;  /* ring_blocks 0: no ring */
    uint32_t gap;                  /* floats between the queries of two KV heads */
    bool neox, has_norm, has_nan;  /* has_nan: all scores of the first visible block are NaN */
    uint32_t n_seqs, at[MAX_SEQS]; /* position of each sequence's token */
};

struct decode_data {
    struct decode_case c;
    struct kv_shape kv;
    size_t cache_elems[MAX_SEQS];
    uint16_t *caches[MAX_SEQS], *expected[MAX_SEQS];
    float *slots[MAX_SEQS];
    struct cuda_token tokens[MAX_SEQS];
    struct rope_args rope;
    struct attn_args attn;
    float *qkv, *row, *cs, *norms; /* row: that of one token, by the reference */
    float *out;
    uint32_t *n_ended;
};

/* Keys of a position block in the layer under test. */
static uint16_t *keys_of(const struct decode_data *d, uint16_t *cache, uint32_t kv_head,
                         uint32_t block)
{
    const uint32_t place = d->c.ring_blocks > 0 ? block % d->c.ring_blocks : block;
    return cache + place * d->kv.block_elems + (LAYERS - 1) * d->kv.layer_elems +
           kv_head * d->kv.head_elems;
}

static uint16_t *value_of(const struct decode_data *d, uint16_t *keys, uint32_t pos)
{
    return keys + d->c.head_dim * KV_BLOCK + pos % KV_BLOCK * (size_t)d->kv.v_stride;
}

/* Makes a cache of random bits with finite numbers in the visible positions before the token. */
static void make_sequence(struct decode_data *d, uint32_t seq, struct random *r)
{
    const struct decode_case *c = &d->c;
    const uint32_t n_blocks = c->at[seq] / KV_BLOCK + 1, oldest = kit_oldest(c->window, c->at[seq]);
    const size_t n = (c->ring_blocks > 0 ? c->ring_blocks : n_blocks) * d->kv.block_elems;
    uint16_t *cache = zeros(n, sizeof *cache);
    for (size_t i = 0; i < n; i++)
        cache[i] = (uint16_t)next_u32(r);
    for (uint32_t pos = oldest; pos < c->at[seq]; pos++)
        for (uint32_t head = 0; head < KV_HEADS; head++) {
            uint16_t *keys = keys_of(d, cache, head, pos / KV_BLOCK);
            for (uint32_t i = 0; i < c->head_dim; i++) {
                keys[i * KV_BLOCK + pos % KV_BLOCK] = f32_to_f16(next_float(r));
                value_of(d, keys, pos)[i] = f32_to_f16(next_float(r));
            }
            if (c->has_nan && pos / KV_BLOCK == oldest / KV_BLOCK)
                keys[pos % KV_BLOCK] = 0x7E00;
        }
    d->caches[seq] = cache;
    d->cache_elems[seq] = n;
    d->expected[seq] = zeros(n, sizeof *cache);
    memcpy(d->expected[seq], cache, n * sizeof *cache);
    d->slots[seq] =
        zeros((size_t)n_blocks * KV_HEADS * c->n_q_per_kv, SLOT_FLOATS(c->head_dim) * 4);
    d->tokens[seq] = (struct cuda_token){.kv = c->ring_blocks > 0 ? NULL : cache,
                                         .ring = c->ring_blocks > 0 ? cache : NULL,
                                         .slots = d->slots[seq],
                                         .pos = (int32_t)c->at[seq],
                                         .ring_blocks = c->ring_blocks};
}

/* The arguments without pointers to the data. */
static void set_shapes(struct decode_data *d)
{
    const struct decode_case *c = &d->c;
    const uint32_t v_stride = (uint32_t)size_round_up(c->head_dim, 32);
    const uint64_t head_elems = (uint64_t)KV_BLOCK * (c->head_dim + v_stride);
    const uint32_t q_kv_stride = c->n_q_per_kv * c->head_dim + c->gap,
                   kv_width = KV_HEADS * c->head_dim;
    d->kv = (struct kv_shape){.block_elems = LAYERS * KV_HEADS * head_elems,
                              .layer_elems = KV_HEADS * head_elems,
                              .head_elems = head_elems,
                              .head_dim = c->head_dim,
                              .v_stride = v_stride,
                              .is_ring = c->ring_blocks > 0};
    d->rope = (struct rope_args){.kv = d->kv,
                                 .qkv_stride = KV_HEADS * q_kv_stride + 2 * kv_width + 5,
                                 .q_floats = KV_HEADS * q_kv_stride,
                                 .q_kv_stride = q_kv_stride,
                                 .kv_width = kv_width,
                                 .n_q_per_kv = c->n_q_per_kv,
                                 .n_rot = c->n_rot,
                                 .layer = LAYERS - 1,
                                 .neox = c->neox,
                                 .q_scale = (float)(1.0 / sqrt((double)c->head_dim)),
                                 .eps = 1e-5f};
    d->attn = (struct attn_args){.kv = d->kv,
                                 .n_tokens = c->n_seqs,
                                 .qkv_stride = d->rope.qkv_stride,
                                 .out_stride = KV_HEADS * c->n_q_per_kv * c->head_dim + PAD,
                                 .n_heads = KV_HEADS * c->n_q_per_kv,
                                 .n_q_per_kv = c->n_q_per_kv,
                                 .q_kv_stride = q_kv_stride,
                                 .layer = LAYERS - 1,
                                 .window = c->window};
}

static struct decode_data decode_make(struct decode_case c, struct random *r)
{
    struct decode_data d = {.c = c};
    set_shapes(&d);
    d.qkv = floats(r, (size_t)c.n_seqs * d.rope.qkv_stride);
    d.row = zeros(d.rope.qkv_stride, sizeof *d.row);
    d.cs = floats(r, (size_t)c.n_seqs * c.n_rot + 1);
    d.norms = floats(r, 2 * (size_t)c.head_dim);
    d.out = floats(r, (size_t)c.n_seqs * d.attn.out_stride);
    d.n_ended = zeros((size_t)c.n_seqs * KV_HEADS * c.n_q_per_kv, sizeof *d.n_ended);
    for (uint32_t seq = 0; seq < c.n_seqs; seq++)
        make_sequence(&d, seq, r);
    d.rope.qkv = d.qkv;
    d.rope.c = d.cs;
    d.rope.s = d.cs + c.n_seqs * (c.n_rot / 2);
    d.rope.q_norm = c.has_norm ? d.norms : NULL;
    d.rope.k_norm = c.has_norm ? d.norms + c.head_dim : NULL;
    d.attn.qkv = d.qkv;
    d.attn.out = d.out;
    return d;
}

static void decode_free(struct decode_data *d)
{
    for (uint32_t seq = 0; seq < d->c.n_seqs; seq++)
        FREE_ALL(d->caches[seq], d->expected[seq], d->slots[seq]);
    FREE_ALL(d->qkv, d->row, d->cs, d->norms, d->out, d->n_ended);
}

static void rope_one(const struct decode_data *d, uint32_t seq, float *x, const float *norm)
{
    const size_t n_pairs = d->c.n_rot / 2;
    if (norm)
        rms_norm_ref(x, norm, d->c.head_dim, d->rope.eps, x);
    (d->c.neox ? rope_neox_ref : rope_norm_ref)(x, d->rope.c + seq * n_pairs,
                                                d->rope.s + seq * n_pairs, d->c.n_rot);
}

/* Computes d->row from q, k and v of a token, which are in d->qkv, and appends the key and value to
 * the expected cache. Both by the reference. */
static void expect_append(const struct decode_data *d, uint32_t seq)
{
    const uint32_t head_dim = d->c.head_dim, pos = d->c.at[seq];
    uint16_t k16[SPLIT_HEAD];
    memcpy(d->row, d->qkv + (size_t)seq * d->rope.qkv_stride, d->rope.qkv_stride * sizeof *d->row);
    for (uint32_t head = 0; head < KV_HEADS; head++) {
        float *q = d->row + head * (size_t)d->rope.q_kv_stride;
        float *k = d->row + d->rope.q_floats + head * (size_t)head_dim;
        uint16_t *keys = keys_of(d, d->expected[seq], head, pos / KV_BLOCK);
        for (uint32_t h = 0; h < d->c.n_q_per_kv; h++)
            rope_one(d, seq, q + h * (size_t)head_dim, d->rope.q_norm);
        for (uint32_t i = 0; i < d->c.n_q_per_kv * head_dim; i++)
            q[i] = q[i] * d->rope.q_scale;
        rope_one(d, seq, k, d->rope.k_norm);
        to_f16_ref(k, head_dim, k16);
        for (uint32_t i = 0; i < head_dim; i++)
            keys[i * KV_BLOCK + pos % KV_BLOCK] = k16[i];
        to_f16_ref(k + d->rope.kv_width, head_dim, value_of(d, keys, pos));
    }
}

static void check_token(const struct decode_data *d, uint32_t seq, const float *before)
{
    const uint32_t head_dim = d->c.head_dim, n_heads = d->attn.n_heads;
    const float *row = d->out + (size_t)seq * d->attn.out_stride;
    float *out = zeros(head_dim, sizeof *out);
    expect_append(d, seq);
    assert_same(d->caches[seq], d->expected[seq], d->cache_elems[seq] * 2, "the cache");
    for (uint32_t h = 0; h < n_heads; h++) {
        const float *q = d->row + h / d->c.n_q_per_kv * (size_t)d->rope.q_kv_stride +
                         h % d->c.n_q_per_kv * (size_t)head_dim;
        expect_attention(&d->kv, keys_of(d, d->expected[seq], h / d->c.n_q_per_kv, 0),
                         d->c.ring_blocks > 0 ? d->c.ring_blocks : UINT32_MAX,
                         kit_oldest(d->c.window, d->c.at[seq]), d->c.at[seq], q, out);
        assert_same(row + h * (size_t)head_dim, out, head_dim * sizeof *out, "attention");
    }
    assert_same(row + n_heads * (size_t)head_dim,
                before + (size_t)seq * d->attn.out_stride + n_heads * (size_t)head_dim,
                PAD * sizeof *row, "the rest of the row");
    mem_free(out);
}

static void check_case(struct decode_case c, struct random *r, enum twin_order order)
{
    struct decode_data d = decode_make(c, r);
    const uint32_t n_chunks = KV_HEADS * ((c.n_q_per_kv + ATTN_HEADS - 1) / ATTN_HEADS);
    const size_t n_out = (size_t)c.n_seqs * d.attn.out_stride;
    const size_t n_qkv = (size_t)c.n_seqs * d.rope.qkv_stride;
    float *before = zeros(n_out, sizeof *before), *qkv = zeros(n_qkv, sizeof *qkv);
    d.rope.tokens = d.attn.tokens = d.tokens;
    memcpy(before, d.out, n_out * sizeof *before);
    memcpy(qkv, d.qkv, n_qkv * sizeof *qkv);
    const struct split_args args = {d.rope, d.attn, d.n_ended, n_chunks};
    launch("attn_split", c.n_shares, n_chunks, c.n_seqs, 0, &args, order);
    assert_same(d.qkv, qkv, n_qkv * sizeof *qkv, "the product");
    for (uint32_t i = 0; i < c.n_seqs * n_chunks; i++)
        assert_int_equal(d.n_ended[i], 0);
    for (uint32_t seq = 0; seq < c.n_seqs; seq++)
        check_token(&d, seq, before);
    FREE_ALL(before, qkv);
    decode_free(&d);
}

static void heads_and_groups_of_any_size(void **state)
{
    (void)state;
    static const struct decode_case cases[] = {
        {128, 4, 128, 2, .neox = true, .n_seqs = 1, .at = {130}},
        {128, 1, 64, 3, .n_seqs = 1, .at = {200}},
        {64, 2, 64, 1, .neox = true, .has_norm = true, .n_seqs = 1, .at = {100}},
        {80, 3, 20, 2, .has_norm = true, .n_seqs = 1, .at = {70}},
        {34, 9, 34, 2, .neox = true, .n_seqs = 1, .at = {150}},
        {33, 5, 8, 2, .has_norm = true, .n_seqs = 1, .at = {129}},
        {1, 8, 0, 2, .n_seqs = 1, .at = {66}},
        {130, 6, 130, 2, .neox = true, .n_seqs = 1, .at = {127}},
        {256, 7, 64, 3, .gap = 256, .neox = true, .has_norm = true, .n_seqs = 1, .at = {192}},
        {200, 3, 200, 2, .n_seqs = 1, .at = {191}},
    };
    CHECK_CASES(cases, 12);
}

static void any_number_of_position_blocks(void **state)
{
    (void)state;
    /* One position block and many, so that the merge has batches of every length; also more and
     * fewer thread blocks than position blocks. */
    static const struct decode_case cases[] = {
        {16, 4, 16, 4, .n_seqs = 1, .at = {0}},
        {16, 4, 16, 4, .n_seqs = 1, .at = {63}},
        {16, 4, 16, 4, .n_seqs = 1, .at = {64}},
        {8, 4, 8, 3, .n_seqs = 1, .at = {8 * 64 + 63}},
        {8, 4, 8, 16, .n_seqs = 1, .at = {9 * 64}},
        {8, 4, 8, 20, .n_seqs = 1, .at = {16 * 64 + 1}},
        {8, 4, 8, 7, .n_seqs = 1, .at = {17 * 64 + 30}},
        {8, 4, 8, 33, .n_seqs = 1, .at = {32 * 64 + 2}},
        {8, 4, 8, 12, .n_seqs = 1, .at = {33 * 64 + 9}},
        {8, 4, 8, 64, .n_seqs = 1, .at = {70 * 64 + 5}},
        {8, 3, 8, 9, .has_nan = true, .n_seqs = 1, .at = {20 * 64 + 5}},
        {140, 2, 8, 5, .has_nan = true, .n_seqs = 1, .at = {20 * 64 + 5}},
    };
    CHECK_CASES(cases, 12);
}

static void windows_and_rings(void **state)
{
    (void)state;
    /* windows within a block, of whole blocks, of one position; rings in which the first and the
     * last position block have the same place */
    static const struct decode_case cases[] = {
        {32, 4, 32, 2, .window = 10, .n_seqs = 1, .at = {139}},
        {32, 4, 32, 2, .window = 10, .n_seqs = 1, .at = {132}},
        {32, 4, 0, 2, .window = 64, .n_seqs = 1, .at = {192}},
        {32, 3, 32, 2, .window = 1, .n_seqs = 1, .at = {70}},
        {32, 2, 32, 3, .window = 100, .ring_blocks = 4, .n_seqs = 1, .at = {389}},
        {20, 6, 20, 2, .window = 64, .ring_blocks = 1, .n_seqs = 1, .at = {1000}},
        {64, 1, 64, 2, .window = 128, .ring_blocks = 2, .n_seqs = 1, .at = {1001}},
        {256, 5, 64, 3, .window = 120, .ring_blocks = 2, .n_seqs = 1, .at = {301}},
    };
    CHECK_CASES(cases, 12);
}

static void tokens_of_several_sequences(void **state)
{
    (void)state;
    static const struct decode_case cases[] = {
        {32, 4, 32, 3, .n_seqs = 3, .at = {200, 0, 63}},
        {48, 5, 48, 2, .window = 70, .has_norm = true, .n_seqs = 3, .at = {529, 3, 64}},
        {16, 9, 16, 4, .window = 20, .ring_blocks = 3, .n_seqs = 2, .at = {250, 7}},
    };
    CHECK_CASES(cases, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_and_groups_of_any_size),
        cmocka_unit_test(any_number_of_position_blocks),
        cmocka_unit_test(windows_and_rings),
        cmocka_unit_test(tokens_of_several_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
