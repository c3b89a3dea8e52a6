/*
 * Reproducible results: the same bits for every instruction set, thread count, micro-batch size and
 * set of batch neighbours, with cached and recomputed keys and values, and on every machine.
 */
#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "tests/engine/test_engine_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N_STEPS 20  /* tokens to decode one by one; few, because each one synchronises threads */
#define N_IDS 150   /* three position blocks, the last one incomplete */
#define N_VOCAB 262 /* of SYNTH_VOCAB_BYTES */
#define N_QWEN_VOCAB 261 /* of SYNTH_VOCAB_QWEN */

/* A model with grouped attention heads and widths that do not fill whole lines of weights. */
static struct synth_spec spec_of(const char *arch)
{
    struct synth_spec spec = synth_preset("tiny");
    spec.arch = arch;
    spec.n_embd = 320;
    spec.n_heads = 6;
    spec.n_kv_heads = 2;
    spec.head_dim = 48;
    spec.n_ff = 416;
    spec.type = TENSOR_F16;
    if (strcmp(arch, "qwen3") == 0) {
        spec.yarn = 4.0f;
        spec.yarn_ctx = 64;
    }
    return spec;
}

static void same_bits(const float *a, const float *b, size_t n, const char *cause)
{
    if (memcmp(a, b, n * sizeof *a) != 0)
        fail_msg("%s changes the bits", cause);
}

/* Compare the logits of every instruction set of this machine with those of ref. */
static void compare_isas(enum bn_kv_type kv)
{
    static const char *const isas[] = {"avx2", "avxvnni", "avx512vnni", "amx",
                                       "neon", "dotprod", "i8mm"};
    static const struct {
        const char *arch;
        size_t rotated_block;
    } models[] = {{"bitnet-b1.58", 0}, {"llama", 0}, {"qwen3", 0}, {"llama", 32}};
    int32_t ids[N_IDS];
    kit_ids(ids, N_IDS, 1);
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        struct synth_spec spec = spec_of(models[m].arch);
        spec.rotated_block = models[m].rotated_block;
        struct bn_model_config cfg = {
            .isa = "ref", .n_threads = 1, .kv = kv, .activations = BN_ACT_TOKEN};
        float *ref = kit_logits_of(&spec, &cfg, ids, N_IDS);
        for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
            if (!kit_isa_runs_here(isas[i]) || !kit_takes_case())
                continue;
            cfg.isa = isas[i];
            float *other = kit_logits_of(&spec, &cfg, ids, N_IDS);
            same_bits(other, ref, N_IDS * N_VOCAB, isas[i]);
            mem_free(other);
        }
        mem_free(ref);
    }
}

static void instruction_set_changes_no_bit(void **state)
{
    (void)state;
    compare_isas(BN_KV_F16);
    compare_isas(BN_KV_Q8);
}

static void compare_threads(enum bn_kv_type kv, size_t rotated_block)
{
    struct synth_spec spec = spec_of("bitnet-b1.58");
    spec.rotated_block = rotated_block;
    spec.untied = rotated_block > 0;
    static const struct bn_model_config cfgs[] = {
        {.n_threads = 2},
        {.n_threads = 3, .n_ubatch = 7},
        {.n_threads = 1, .n_ubatch = 1},
        {.n_threads = 5, .n_ubatch = 1},
        {.n_threads = 2, .n_ubatch = 16},
        {.n_threads = 9, .n_ubatch = 33},
    };
    const struct bn_model_config one = {.n_threads = 1, .kv = kv};
    int32_t ids[N_IDS];
    kit_ids(ids, N_IDS, 2);
    float *first = kit_logits_of(&spec, &one, ids, N_IDS);
    for (size_t i = 0; i < sizeof cfgs / sizeof cfgs[0]; i++) {
        if (!kit_takes_case())
            continue;
        char cause[64];
        (void)snprintf(cause, sizeof cause, "%zu threads, micro-batch %zu", cfgs[i].n_threads,
                       cfgs[i].n_ubatch);
        struct bn_model_config cfg = cfgs[i];
        cfg.kv = kv;
        float *other = kit_logits_of(&spec, &cfg, ids, N_IDS);
        same_bits(other, first, N_IDS * N_VOCAB, cause);
        mem_free(other);
    }
    mem_free(first);
}

static void threads_and_micro_batch_change_no_bit(void **state)
{
    (void)state;
    compare_threads(BN_KV_F16, 0);
    compare_threads(BN_KV_Q8, 0);
    compare_threads(BN_KV_F16, 16);
}

/* Logits of N_STEPS tokens evaluated one by one, and the bytes read. */
static float *one_by_one(const struct synth_spec *spec, const struct bn_model_config *cfg,
                         const int32_t *ids, uint64_t *n_bytes)
{
    struct kit kit;
    kit_open(&kit, spec, cfg);
    struct bn_session *s = kit_session(&kit, N_STEPS);
    float *logits = mem_alloc(N_STEPS * kit.n_vocab, sizeof *logits);
    struct head_row *row = kit_rows(&kit, 1);
    const struct head_request all = {.kind = HEAD_ALL};
    for (size_t t = 0; t < N_STEPS; t++) {
        struct bn_error err;
        if (!bn_session_sync(s, ids, t + 1, &all, row, NULL, NULL, &err))
            fail_msg("%s", err.text);
        for (size_t i = 0; i < kit.n_vocab; i++)
            logits[t * kit.n_vocab + i] = row->cands[i].logit;
    }
    *n_bytes = bn_model_bytes_read(kit.model);
    kit_free_rows(row, 1);
    bn_session_close(s);
    kit_close(&kit);
    return logits;
}

/* A single token skips rows and columns that are multiplied by zero; several tokens together use
 * all of them, in the order of the file. */
static void skipping_changes_no_bit_and_reads_less(void **state)
{
    (void)state;
    static const char *const isas[] = {"ref", "avx2", "avxvnni", "avx512vnni", "amx"};
    int32_t ids[N_IDS];
    struct synth_spec spec = spec_of("bitnet-b1.58");
    spec.type = TENSOR_I2_S;
    spec.n_ff = 768; /* whole lines: the down projection is stored by columns */
    kit_ids(ids, N_IDS, 3);
    struct bn_model_config cfg = {.isa = "ref", .n_threads = 1, .skip = BN_SKIP_OFF};
    uint64_t n_all, n_read;
    float *plain = one_by_one(&spec, &cfg, ids, &n_all);
    cfg.skip = BN_SKIP_ON;
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        for (size_t n_threads = 1; n_threads <= 3 && kit_isa_runs_here(isas[i]); n_threads += 2) {
            cfg.isa = isas[i];
            cfg.n_threads = n_threads;
            float *skipped = one_by_one(&spec, &cfg, ids, &n_read);
            float *together = kit_logits_of(&spec, &cfg, ids, N_IDS);
            same_bits(plain, skipped, N_STEPS * spec.n_vocab, "skipping");
            same_bits(plain, together, N_STEPS * spec.n_vocab, "the order of the file");
            assert_true(n_read < n_all - n_all / 20);
            mem_free(together);
            mem_free(skipped);
        }
    mem_free(plain);
}

#define N_EXPERT_SPECS 2

/* Experts with few pairs and with more than a kernel multiplies together; a window that ends inside
 * position blocks and a layer that sees all keys. */
static struct synth_spec expert_spec(size_t i)
{
    struct synth_spec spec = synth_preset("maple-tiny");
    spec.type = TENSOR_Q2_0;
    spec.scale_cols = i == 0 ? 64 : SYNTH_ROW_SCALES;
    spec.n_embd = 192;
    spec.head_dim = 48;
    spec.n_ff = i == 0 ? 320 : 64;
    spec.n_experts = i == 0 ? 10 : 4;
    spec.window = 20 + 13 * i;
    return spec;
}

#define N_BLOCK_SPECS 5

/* Models in R16: scales per block of 64 and 128 columns, per row and per tensor, and a rotated
 * model. Each has a ternary output head with an odd number of rows. */
static struct synth_spec block_spec(size_t i)
{
    static const struct {
        enum tensor_type type;
        size_t scale_cols;
    } kinds[N_BLOCK_SPECS] = {{TENSOR_PQ2_0, 128},
                              {TENSOR_Q2_0, 64},
                              {TENSOR_PQ2_0, SYNTH_ROW_SCALES},
                              {TENSOR_PQ2_0, 0},
                              {TENSOR_PQ2_0, 128}};
    struct synth_spec spec = synth_preset("tiny");
    spec.arch = i % 2 == 0 ? "qwen3" : "llama";
    spec.vocab = SYNTH_VOCAB_QWEN;
    spec.n_vocab = N_QWEN_VOCAB;
    spec.n_embd = 384; /* odd numbers of row groups and of spans */
    spec.n_heads = 6;
    spec.n_kv_heads = 2;
    spec.head_dim = 64;
    spec.n_ff = 640;
    spec.type = spec.head = kinds[i].type;
    spec.scale_cols = kinds[i].scale_cols;
    spec.ternary_head = true;
    spec.untied = i % 2 == 1;
    spec.rotated_block = i == 4 ? 128 : 0;
    spec.rotated_version = 2;
    return spec;
}

#define N_BLOCK_IDS 70 /* two position blocks, and more than two blocks of tokens */

/* The configurations that must give the same bits as ref with one thread. */
static void compare_block_configs(const struct synth_spec *spec, enum bn_activations activations,
                                  const int32_t *ids)
{
    static const struct bn_model_config cfgs[] = {
        {.isa = "avx2", .n_threads = 1},
        {.isa = "avxvnni", .n_threads = 1},
        {.isa = "avx512vnni", .n_threads = 1},
        {.isa = "amx", .n_threads = 1},
        {.isa = "neon", .n_threads = 1},
        {.isa = "dotprod", .n_threads = 1},
        {.n_threads = 2},
        {.n_threads = 5, .n_ubatch = 7},
        {.n_threads = 1, .n_ubatch = 1},
        {.n_threads = 3, .n_ubatch = 1},
        {.n_threads = 2, .n_ubatch = 3},
        {.n_threads = 5, .n_ubatch = 12},
    };
    const struct bn_model_config first = {.isa = "ref", .n_threads = 1, .activations = activations};
    float *ref = kit_logits_of(spec, &first, ids, N_BLOCK_IDS);
    for (size_t i = 0; i < sizeof cfgs / sizeof cfgs[0]; i++) {
        struct bn_model_config cfg = cfgs[i];
        cfg.activations = activations;
        if ((cfg.isa && !kit_isa_runs_here(cfg.isa)) || !kit_takes_case())
            continue;
        char cause[80];
        (void)snprintf(cause, sizeof cause, "%s, %zu threads, micro-batch %zu, activations %d",
                       cfg.isa ? cfg.isa : "the best instruction set", cfg.n_threads, cfg.n_ubatch,
                       (int)activations);
        float *other = kit_logits_of(spec, &cfg, ids, N_BLOCK_IDS);
        same_bits(other, ref, N_BLOCK_IDS * spec->n_vocab, cause);
        mem_free(other);
    }
    mem_free(ref);
}

static void scales_per_block_change_no_bit(void **state)
{
    (void)state;
    static const enum bn_activations all[] = {BN_ACT_AUTO, BN_ACT_BLOCK, BN_ACT_16, BN_ACT_TOKEN,
                                              BN_ACT_FLOAT};
    int32_t ids[N_BLOCK_IDS];
    kit_ids(ids, N_BLOCK_IDS, 8);
    for (size_t i = 0; i < N_BLOCK_SPECS; i++) {
        const struct synth_spec spec = block_spec(i);
        for (size_t a = 0; a < sizeof all / sizeof all[0]; a++)
            if (i == 0 || a < 2) /* all kinds of activations once, two with each kind of scale */
                compare_block_configs(&spec, all[a], ids);
    }
}

/* Keys and values as bytes: a window that ends inside blocks, for one token and for several. */
static void compare_windows_q8(const struct synth_spec *spec, const int32_t *ids)
{
    static const struct bn_model_config cfgs[] = {
        {.n_threads = 2}, {.n_threads = 5, .n_ubatch = 7}, {.n_threads = 3, .n_ubatch = 1}};
    const struct bn_model_config first = {.isa = "ref", .n_threads = 1, .kv = BN_KV_Q8};
    float *ref = kit_logits_of(spec, &first, ids, N_BLOCK_IDS);
    for (size_t i = 0; i < sizeof cfgs / sizeof cfgs[0]; i++) {
        struct bn_model_config cfg = cfgs[i];
        cfg.kv = BN_KV_Q8;
        float *other = kit_logits_of(spec, &cfg, ids, N_BLOCK_IDS);
        same_bits(other, ref, N_BLOCK_IDS * spec->n_vocab, "a window of bytes");
        mem_free(other);
    }
    mem_free(ref);
}

static void experts_and_windows_change_no_bit(void **state)
{
    (void)state;
    int32_t ids[N_BLOCK_IDS];
    kit_ids(ids, N_BLOCK_IDS, 9);
    for (size_t i = 0; i < N_EXPERT_SPECS; i++) {
        const struct synth_spec spec = expert_spec(i);
        compare_block_configs(&spec, BN_ACT_AUTO, ids);
        compare_block_configs(&spec, BN_ACT_16, ids);
    }
    const struct synth_spec first = expert_spec(0);
    compare_block_configs(&first, BN_ACT_FLOAT, ids);
    compare_windows_q8(&first, ids);
}

/* Truncate to several lengths and evaluate again, with other tokens in between. */
static void compare_reuse(enum bn_kv_type kv)
{
    const struct bn_model_config cfg = {.n_threads = 2, .kv = kv};
    const struct synth_spec spec = spec_of("llama");
    static const size_t cuts[] = {149, 64, 63, 65, 1, 128, 100};
    int32_t ids[N_IDS], others[N_IDS];
    struct kit kit;
    kit_open(&kit, &spec, &cfg);
    kit_ids(ids, N_IDS, 3);
    kit_ids(others, N_IDS, 4);
    float *fresh = kit_logits(&kit, ids, N_IDS);
    float *again = mem_alloc(N_IDS * kit.n_vocab, sizeof *again);
    kit_append(&kit, kit.session, ids, N_IDS, again);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        const size_t cut = cuts[i];
        bn_session_truncate(kit.session, cut);
        kit_append(&kit, kit.session, others + cut, N_IDS - cut, again + cut * kit.n_vocab);
        bn_session_truncate(kit.session, cut);
        kit_append(&kit, kit.session, ids + cut, N_IDS - cut, again + cut * kit.n_vocab);
        same_bits(again, fresh, N_IDS * kit.n_vocab, "truncation");
    }
    mem_free(again);
    mem_free(fresh);
    kit_close(&kit);
}

static void reuse_changes_no_bit(void **state)
{
    (void)state;
    compare_reuse(BN_KV_F16);
    compare_reuse(BN_KV_Q8);
}

/* The Q8 cache is a close approximation of the F16 cache. */
static void q8_kv_is_close_to_f16_kv(void **state)
{
    (void)state;
    const struct synth_spec spec = spec_of("llama");
    const struct bn_model_config f16 = {.n_threads = 2}, q8 = {.n_threads = 2, .kv = BN_KV_Q8};
    int32_t ids[N_IDS];
    kit_ids(ids, N_IDS, 7);
    float *a = kit_logits_of(&spec, &f16, ids, N_IDS), *b = kit_logits_of(&spec, &q8, ids, N_IDS);
    double far = 0, all = 0;
    for (size_t i = 0; i < N_IDS * N_VOCAB; i++) {
        far += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        all += (double)a[i] * (double)a[i];
    }
    assert_true(far > 0);
    assert_true(far < 0.05 * 0.05 * all);
    mem_free(a);
    mem_free(b);
}

#define N_SEQS 4

/* Four sequences of different lengths, a few tokens of each in one pass. */
static void compare_neighbours(const struct synth_spec *spec)
{
    static const size_t before[N_SEQS] = {5, 64, 130, 1}, n_new[N_SEQS] = {1, 3, 20, 1};
    const struct bn_model_config cfg = {.n_threads = 3};
    struct bn_session *sessions[N_SEQS];
    struct bn_batch_item items[N_SEQS];
    int32_t ids[N_SEQS][N_IDS];
    struct kit kit;
    struct bn_error err;
    kit_open(&kit, spec, &cfg);
    for (size_t i = 0; i < N_SEQS; i++) {
        kit_ids(ids[i], N_IDS, 10 + (uint32_t)i);
        sessions[i] = kit_session(&kit, N_IDS);
        if (!bn_session_eval(sessions[i], ids[i], before[i], NULL, NULL, 0, NULL, &err))
            fail_msg("%s", err.text);
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
        size_t n_held;
        (void)bn_session_ids(sessions[i], &n_held);
        assert_int_equal(n_held, before[i] + n_new[i]);
        for (size_t t = 0; t < n_new[i]; t++)
            for (size_t id = 0; id < kit.n_vocab; id++)
                assert_memory_equal(&items[i].rows[t].cands[id].logit,
                                    &alone[(before[i] + t) * kit.n_vocab + id], sizeof(float));
        mem_free(alone);
        kit_free_rows(items[i].rows, n_new[i]);
        bn_session_close(sessions[i]);
    }
    kit_close(&kit);
}

static void batch_neighbours_change_no_bit(void **state)
{
    (void)state;
    const struct synth_spec tokens = spec_of("bitnet-b1.58"), blocks = block_spec(0);
    compare_neighbours(&tokens);
    compare_neighbours(&blocks);
}

/* A long context with one thread, which computes whole attention heads, and with four, which split
 * the positions of a head in several rounds. */
static void compare_splits(enum bn_kv_type kv)
{
    enum { LONG = 4500 }; /* 71 position blocks: more than one round */
    struct synth_spec spec = synth_preset("tiny");
    spec.arch = "llama";
    spec.n_layers = 1;
    spec.n_embd = 64;
    spec.n_heads = 2;
    spec.n_kv_heads = 1;
    spec.n_ff = 64;
    spec.type = TENSOR_F32;
    int32_t *ids = mem_alloc(LONG, sizeof *ids);
    kit_ids(ids, LONG, 5);
    float rows[2][N_VOCAB];
    for (size_t i = 0; i < 2; i++) {
        const struct bn_model_config cfg = {.n_threads = i == 0 ? 1 : 4, .kv = kv};
        struct kit kit;
        struct bn_error err;
        kit_open(&kit, &spec, &cfg);
        struct bn_session *s = kit_session(&kit, LONG);
        if (!bn_session_eval(s, ids, LONG - (i == 0 ? 2 : 1), NULL, NULL, 0, NULL, &err))
            fail_msg("%s", err.text);
        float two[2 * N_VOCAB];
        if (i == 0) /* two tokens together use the prefill kernels */
            kit_append(&kit, s, ids + LONG - 2, 2, two);
        else
            kit_append(&kit, s, ids + LONG - 1, 1, two + N_VOCAB);
        memcpy(rows[i], two + N_VOCAB, sizeof rows[i]);
        bn_session_close(s);
        kit_close(&kit);
    }
    same_bits(rows[0], rows[1], N_VOCAB, "splitting positions");
    mem_free(ids);
}

static void splitting_positions_changes_no_bit(void **state)
{
    (void)state;
    compare_splits(BN_KV_F16);
    compare_splits(BN_KV_Q8);
}

/* test_cpu_forward verifies that such logits are correct. Their hashes must be the same on every
 * machine and with every compiler. */
static void bits_match_recorded_hashes(void **state)
{
    (void)state;
    static const struct {
        const char *arch;
        uint64_t hash;
    } golden[] = {
        {"bitnet-b1.58", 0x037db2d391bd3133},
        {"llama", 0x443e98eb5fb6229e},
        {"qwen3", 0x47e532d100295acf},
    };
    int32_t ids[N_IDS];
    kit_ids(ids, N_IDS, 6);
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        const struct synth_spec spec = spec_of(golden[i].arch);
        const struct bn_model_config cfg = {.n_threads = 2, .activations = BN_ACT_TOKEN};
        float *logits = kit_logits_of(&spec, &cfg, ids, N_IDS);
        const uint64_t hash = fnv1a_add_bytes(FNV1A_START, logits, N_IDS * N_VOCAB * sizeof(float));
        if (hash != golden[i].hash)
            fail_msg("%s: the logits hash to 0x%016llx", golden[i].arch, (unsigned long long)hash);
        mem_free(logits);
    }
}

static void bits_of_blocks_match_recorded_hashes(void **state)
{
    (void)state;
    static const uint64_t golden[N_BLOCK_SPECS] = {0xcadb50c602bd4d40, 0xfd816e77c8986108,
                                                   0xa338e5f8d6379534, 0xeb7e727804b37306,
                                                   0xcd5f4dc2c84ad53c};
    int32_t ids[N_BLOCK_IDS];
    kit_ids(ids, N_BLOCK_IDS, 9);
    for (size_t i = 0; i < N_BLOCK_SPECS; i++) {
        const struct bn_model_config cfg = {.n_threads = 2, .activations = BN_ACT_AUTO};
        const struct synth_spec spec = block_spec(i);
        float *logits = kit_logits_of(&spec, &cfg, ids, N_BLOCK_IDS);
        const uint64_t hash =
            fnv1a_add_bytes(FNV1A_START, logits, N_BLOCK_IDS * N_QWEN_VOCAB * sizeof(float));
        if (hash != golden[i])
            fail_msg("model %zu: the logits hash to 0x%016llx", i, (unsigned long long)hash);
        mem_free(logits);
    }
}

int main(int argc, char **argv)
{
    kit_read_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instruction_set_changes_no_bit),
        cmocka_unit_test(threads_and_micro_batch_change_no_bit),
        cmocka_unit_test(skipping_changes_no_bit_and_reads_less),
        cmocka_unit_test(reuse_changes_no_bit),
        cmocka_unit_test(q8_kv_is_close_to_f16_kv),
        cmocka_unit_test(batch_neighbours_change_no_bit),
        cmocka_unit_test(splitting_positions_changes_no_bit),
        cmocka_unit_test(scales_per_block_change_no_bit),
        cmocka_unit_test(experts_and_windows_change_no_bit),
        cmocka_unit_test(bits_match_recorded_hashes),
        cmocka_unit_test(bits_of_blocks_match_recorded_hashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
