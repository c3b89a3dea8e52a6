/*
 * Sessions of a model with gated delta nets on the CPU: the same bits for every configuration, and
 * after every undo, retry, edit, failure, save and load the logits of a fresh evaluation.
 */
#include "engine/base/memory.h"
#include "tests/engine/test_engine_kit.h"
#include "tests/support/memory_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N_IDS 70 /* two position blocks */
#define N_VOCAB 261

/* Model 0 is rotated and has heads of 128 columns, two blocks of the kernels. Model 1 has F16
 * layers, and its heads of 48 columns fill only a part of a block. */
static struct synth_spec spec_of(size_t i)
{
    struct synth_spec spec = synth_preset("qwen35-tiny");
    if (i == 0) {
        spec.delta =
            (struct delta_shape){.n_key_heads = 2, .n_value_heads = 6, .dim = 128, .interval = 4};
        spec.rotated_block = 64;
    } else {
        spec.type = TENSOR_F16;
        spec.scale_cols = 0;
        spec.delta =
            (struct delta_shape){.n_key_heads = 3, .n_value_heads = 3, .dim = 48, .interval = 2};
    }
    return spec;
}

static void no_configuration_changes_a_bit(void **state)
{
    (void)state;
    static const struct bn_model_config cfgs[] = {{.isa = "avx2", .n_threads = 1},
                                                  {.isa = "avxvnni", .n_threads = 1},
                                                  {.isa = "avx512vnni", .n_threads = 1},
                                                  {.isa = "amx", .n_threads = 1},
                                                  {.isa = "neon", .n_threads = 1},
                                                  {.isa = "dotprod", .n_threads = 1},
                                                  {.isa = "i8mm", .n_threads = 1},
                                                  {.n_threads = 2},
                                                  {.n_threads = 5, .n_ubatch = 7},
                                                  {.n_threads = 1, .n_ubatch = 1},
                                                  {.n_threads = 3, .n_ubatch = 1},
                                                  {.n_threads = 2, .n_ubatch = 3},
                                                  {.isa = "ref", .n_threads = 2, .n_ubatch = 9}};
    int32_t ids[N_IDS];
    kit_ids(ids, N_IDS, 8);
    for (size_t s = 0; s < 2; s++) {
        const struct synth_spec spec = spec_of(s);
        const struct bn_model_config first = {.isa = "ref", .n_threads = 1};
        float *ref = kit_logits_of(&spec, &first, ids, N_IDS);
        for (size_t i = 0; i < sizeof cfgs / sizeof cfgs[0]; i++) {
            if (cfgs[i].isa && !kit_isa_runs_here(cfgs[i].isa))
                continue;
            float *other = kit_logits_of(&spec, &cfgs[i], ids, N_IDS);
            if (memcmp(other, ref, N_IDS * N_VOCAB * sizeof *ref) != 0)
                fail_msg("spec %zu: %s, %zu threads, micro-batch %zu change the bits", s,
                         cfgs[i].isa ? cfgs[i].isa : "the best instruction set", cfgs[i].n_threads,
                         cfgs[i].n_ubatch);
            mem_free(other);
        }
        mem_free(ref);
    }
}

/* Four sequences of different lengths, a few tokens of each in one pass. */
static void batch_neighbours_change_no_bit(void **state)
{
    (void)state;
    enum { N_SEQS = 4 };
    static const size_t before[N_SEQS] = {5, 40, 0, 1}, n_new[N_SEQS] = {1, 3, 20, 1};
    const struct synth_spec spec = spec_of(0);
    struct bn_session *sessions[N_SEQS];
    struct bn_batch_item items[N_SEQS];
    int32_t ids[N_SEQS][N_IDS];
    struct kit kit;
    struct bn_error err;
    kit_open(&kit, &spec, &(struct bn_model_config){.n_threads = 3});
    for (size_t i = 0; i < N_SEQS; i++) {
        kit_ids(ids[i], N_IDS, 10 + (uint32_t)i);
        sessions[i] = kit_session(&kit, N_IDS);
        if (before[i] > 0)
            assert_true(bn_session_eval(sessions[i], ids[i], before[i], NULL, NULL, 0, NULL, &err));
        items[i] = (struct bn_batch_item){.session = sessions[i],
                                          .ids = ids[i] + before[i],
                                          .n_ids = n_new[i],
                                          .head = {.kind = HEAD_ALL},
                                          .rows = kit_rows(&kit, n_new[i]),
                                          .n_rows = n_new[i]};
    }
    if (!bn_batch_eval(items, N_SEQS, NULL, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < N_SEQS; i++) {
        float *alone = kit_logits(&kit, ids[i], before[i] + n_new[i]);
        for (size_t t = 0; t < n_new[i]; t++)
            for (size_t id = 0; id < N_VOCAB; id++)
                assert_memory_equal(&items[i].rows[t].cands[id].logit,
                                    &alone[(before[i] + t) * N_VOCAB + id], sizeof(float));
        mem_free(alone);
        kit_free_rows(items[i].rows, n_new[i]);
        bn_session_close(sessions[i]);
    }
    kit_close(&kit);
}

/* ---- random steps ---- */

#define MAX_IDS 200

struct rig {
    struct kit kit;
    struct head_row *row;
    int32_t ids[MAX_IDS];
    size_t n_ids;
    uint32_t random;
};

static size_t draw(struct rig *r, size_t n)
{
    r->random = r->random * 1664525u + 1013904223u;
    return (r->random >> 8) % n;
}

static void add_ids(struct rig *r, size_t n)
{
    for (; n > 0 && r->n_ids < MAX_IDS; n--)
        r->ids[r->n_ids++] = (int32_t)draw(r, 256);
}

/* A request that fails after all layers: the row is too small for its gap. */
static void fail_late(struct rig *r)
{
    const struct head_request wide = {.kind = HEAD_TOP, .k = 1, .gap = 1e6f};
    struct head_cand cand;
    struct head_row row = {.cands = &cand, .cap = 1};
    struct bn_error err;
    assert_false(bn_session_sync(r->kit.session, r->ids, r->n_ids, &wide, &row, NULL, NULL, &err));
    assert_int_equal(err.code, BN_EARG);
}

static void cancel(struct rig *r)
{
    struct bn_cancel flag = {0};
    const struct bn_control control = {.cancel = &flag};
    const struct head_request all = {.kind = HEAD_ALL};
    struct bn_error err;
    bn_cancel_request(&flag);
    (void)bn_session_sync(r->kit.session, r->ids, r->n_ids, &all, r->row, &control, NULL, &err);
}

static void random_step(struct rig *r)
{
    const size_t at = r->n_ids > 1 ? 1 + draw(r, r->n_ids - 1) : 1, n = r->n_ids - at;
    switch (draw(r, 7)) {
    case 0: /* undo */
        r->n_ids = at;
        break;
    case 1: /* retry */
        break;
    case 2: /* edit */
        r->n_ids = at;
        add_ids(r, n);
        break;
    case 3: /* a question */
        add_ids(r, draw(r, 30));
        break;
    case 4:
        add_ids(r, 1);
        fail_late(r);
        break;
    case 5:
        add_ids(r, 3);
        cancel(r);
        break;
    default: /* an answer */
        add_ids(r, 1);
    }
    if (r->n_ids >= MAX_IDS - 40)
        r->n_ids = 1;
}

/* The logits of the last id must be those of a session that evaluates all ids at once. */
static void check(struct rig *r, struct bn_session *fresh, struct head_row *expected)
{
    const struct head_request all = {.kind = HEAD_ALL};
    struct bn_error err;
    (void)bn_session_truncate(fresh, 0);
    if (!bn_session_sync(r->kit.session, r->ids, r->n_ids, &all, r->row, NULL, NULL, &err) ||
        !bn_session_eval(fresh, r->ids, r->n_ids, &all, expected, 1, NULL, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < N_VOCAB; i++)
        assert_memory_equal(&r->row->cands[i].logit, &expected->cands[i].logit, sizeof(float));
}

static void every_random_step_gives_the_logits_of_a_fresh_evaluation(void **state)
{
    (void)state;
    struct synth_spec spec = spec_of(1);
    spec.n_layers = 2;
    struct rig *r = mem_alloc(1, sizeof *r);
    kit_open(&r->kit, &spec, &(struct bn_model_config){.n_threads = 1, .n_ubatch = 32});
    struct bn_session *fresh = kit_session(&r->kit, MAX_IDS);
    struct head_row *expected = kit_rows(&r->kit, 1);
    r->row = kit_rows(&r->kit, 1);
    add_ids(r, 20);
    for (size_t step = 0; step < 1000; step++) {
        random_step(r);
        check(r, fresh, expected);
    }
    kit_free_rows(r->row, 1);
    kit_free_rows(expected, 1);
    bn_session_close(fresh);
    kit_close(&r->kit);
    mem_free(r);
}

/* ---- saved sequences ---- */

static void loaded_sequence_continues_with_the_same_bits(void **state)
{
    (void)state;
    const struct synth_spec spec = spec_of(0);
    struct memory_stream saved = {0};
    const struct bn_stream out = memory_stream_writer(&saved), in = memory_stream_reader(&saved);
    int32_t ids[N_IDS];
    struct bn_error err;
    struct kit kit;
    kit_open(&kit, &spec, NULL);
    kit_ids(ids, N_IDS, 3);
    float *all = kit_logits(&kit, ids, N_IDS);
    float *rest = mem_alloc(N_IDS * N_VOCAB, sizeof *rest);
    assert_true(bn_session_eval(kit.session, ids, 40, NULL, NULL, 0, NULL, &err));
    assert_true(bn_session_save(kit.session, &out, &err));
    struct bn_session *other = kit_session(&kit, 100);
    assert_true(bn_session_eval(other, ids + 1, 30, NULL, NULL, 0, NULL, &err));
    assert_true(bn_session_load(other, &in, &err));
    kit_append(&kit, other, ids + 40, N_IDS - 40, rest);
    assert_memory_equal(rest, all + 40 * N_VOCAB, (N_IDS - 40) * N_VOCAB * sizeof *rest);
    assert_int_equal(saved.at, saved.n_bytes);

    /* A file that ends early leaves a session that can be used. */
    saved.n_bytes -= 1;
    saved.at = 0;
    assert_false(bn_session_load(other, &in, &err));
    assert_int_equal(err.code, BN_EIO);
    (void)bn_session_truncate(other, 0);
    kit_append(&kit, other, ids, N_IDS, rest);
    assert_memory_equal(rest, all, N_IDS * N_VOCAB * sizeof *rest);
    bn_session_close(other);
    mem_free(saved.bytes);
    mem_free(rest);
    mem_free(all);
    kit_close(&kit);
}

/* Two copies of three delta nets, and one layer with keys and values. */
static void memory_is_reported(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("qwen35-tiny");
    struct kit kit;
    kit_open(&kit, &spec, NULL);
    const struct bn_model_info *info = bn_model_info(kit.model);
    const size_t state_bytes = 3 * (4 * 64 * 64 + 3 * 8 * 64) * sizeof(float);
    assert_int_equal(info->state_bytes, state_bytes);
    assert_int_equal(info->seq_fixed_bytes, 2 * state_bytes);
    assert_int_equal(info->kv_bytes_per_token, 2 * 2 * 64 * sizeof(uint16_t));
    kit_close(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_configuration_changes_a_bit),
        cmocka_unit_test(batch_neighbours_change_no_bit),
        cmocka_unit_test(every_random_step_gives_the_logits_of_a_fresh_evaluation),
        cmocka_unit_test(loaded_sequence_continues_with_the_same_bits),
        cmocka_unit_test(memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
