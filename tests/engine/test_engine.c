/*
 * Opening a model: devices, instruction sets, files on disk and in memory, damaged files, cancel
 * and progress, and the limits that free memory sets: default context and width of a batch. Also
 * tests that evaluation reports logits that are not numbers, and that it allocates no memory: the
 * linker option --wrap redirects every allocation to the counters in this file.
 */
#include "engine/base/memory.h"
#include "engine/cpu/cpu_caps.h"
#include "engine/engine_internal.h"
#include "tests/engine/test_engine_kit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static size_t n_allocations;

void *__real_malloc(size_t n_bytes);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_malloc(size_t n_bytes)
{
    n_allocations++;
    return __real_malloc(n_bytes);
}

void *__real_calloc(size_t n, size_t unit_bytes);
void *__wrap_calloc(size_t n, size_t unit_bytes);
void *__wrap_calloc(size_t n, size_t unit_bytes)
{
    n_allocations++;
    return __real_calloc(n, unit_bytes);
}

void *__real_realloc(void *p, size_t n_bytes);
void *__wrap_realloc(void *p, size_t n_bytes);
void *__wrap_realloc(void *p, size_t n_bytes)
{
    n_allocations++;
    return __real_realloc(p, n_bytes);
}

void *__real_aligned_alloc(size_t align, size_t n_bytes);
void *__wrap_aligned_alloc(size_t align, size_t n_bytes);
void *__wrap_aligned_alloc(size_t align, size_t n_bytes)
{
    n_allocations++;
    return __real_aligned_alloc(align, n_bytes);
}

void *__real_mmap(void *at, size_t n_bytes, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t n_bytes, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t n_bytes, int prot, int flags, int fd, off_t offset)
{
    n_allocations++;
    return __real_mmap(at, n_bytes, prot, flags, fd, offset);
}

static void evaluation_allocates_nothing(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    const struct bn_model_config cfg = {.n_threads = 3, .n_ubatch = 32};
    const struct head_request heads[] = {{.kind = HEAD_ALL},
                                         {.kind = HEAD_TOP, .k = 262},
                                         {.kind = HEAD_TOP, .k = 5, .gap = 3.0f},
                                         {.kind = HEAD_GUMBEL, .temp = 1.0f}};
    int32_t ids[200];
    struct kit kit;
    struct bn_error err;
    const size_t n_before_open = n_allocations;
    kit_open(&kit, &spec, &cfg);
    assert_true(n_allocations > n_before_open); /* the redirection works */
    kit_ids(ids, 200, 1);
    struct head_row *rows = kit_rows(&kit, 40);
    struct bn_session *other = kit_session(&kit, 64);
    struct bn_batch_item items[2] = {{.session = kit.session, .ids = ids, .n_ids = 3},
                                     {.session = other, .ids = ids, .n_ids = 5}};
    const size_t n_before = n_allocations;
    bool ok = true;
    for (size_t i = 0; i < 4; i++) {
        ok = ok && bn_session_sync(kit.session, ids, 150, &heads[i], rows, NULL, NULL, &err);
        ok = ok && bn_session_eval(kit.session, ids, 40, &heads[i], rows, 40, NULL, &err);
        ok = ok && bn_session_eval(kit.session, ids, 1, &heads[i], rows, 1, NULL, &err);
        bn_session_truncate(kit.session, 7);
    }
    ok = ok && bn_batch_eval(items, 2, NULL, &err);
    const size_t n_after = n_allocations;
    assert_true(ok);
    assert_int_equal(n_after, n_before);
    bn_session_close(other);
    kit_free_rows(rows, 40);
    kit_close(&kit);
}

/* BN_HEAD_Q8 approximates F16, BF16 and F32 matrices, and does not change a Q6_K matrix. */
static void q8_output_head_is_reported_and_changes_logits_little(void **state)
{
    (void)state;
    static const enum tensor_type types[] = {TENSOR_F16, TENSOR_BF16, TENSOR_F32, TENSOR_Q6_K};
    enum { N = 40 };
    int32_t ids[N];
    kit_ids(ids, N, 3);
    for (size_t t = 0; t < 4; t++) {
        struct synth_spec spec = synth_preset("tiny");
        spec.n_embd = 256;
        spec.head = types[t];
        const bool is_wide = types[t] != TENSOR_Q6_K;
        const struct bn_model_config cfgs[2] = {{.n_threads = 2},
                                                {.n_threads = 3, .head = BN_HEAD_Q8}};
        float *logits[2];
        for (size_t i = 0; i < 2; i++) {
            struct kit kit;
            kit_open(&kit, &spec, &cfgs[i]);
            const struct bn_model_info *info = bn_model_info(kit.model);
            logits[i] = kit_logits(&kit, ids, N);
            assert_int_equal(strstr(info->device, "head at 8 bits") != NULL, i == 1 && is_wide);
            if (i == 1 && is_wide)
                assert_int_equal(info->head_bytes, kit.n_vocab * (256 / 32 * 34));
            kit_close(&kit);
        }
        double difference = 0, all = 0; /* sums of squares */
        for (size_t i = 0; i < N * 262; i++) {
            difference += pow((double)logits[0][i] - (double)logits[1][i], 2);
            all += pow((double)logits[0][i], 2);
        }
        assert_int_equal(difference > 0, is_wide);
        assert_true(difference < 0.01 * 0.01 * all); /* 1 % of the L2 norm */
        mem_free(logits[0]);
        mem_free(logits[1]);
    }
}

static void q8_kv_cache_is_reported(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    const struct bn_model_config cfg = {.n_threads = 2, .kv = BN_KV_Q8};
    struct kit kit;
    kit_open(&kit, &spec, &cfg);
    const struct bn_model_info *info = bn_model_info(kit.model);
    assert_non_null(strstr(info->device, "KV cache at 8 bits"));
    assert_string_equal(info->kv_type, "q8");
    assert_int_equal(info->kv_bytes_per_token,
                     2 * 2 * (64 + 64 + 8)); /* per KV head: int8 key and value, two F32 scales */
    assert_string_equal(bn_session_kv_version(kit.session), "cpu-q8-1");
    kit_close(&kit);
}

static bool try_open(const struct synth_model *m, const struct bn_model_config *cfg,
                     struct bn_error *err)
{
    struct bn_model *model = NULL;
    const bool ok = bn_model_open(m->file, cfg, &model, err);
    bn_model_close(model);
    return ok;
}

static void wrong_configurations_are_refused_with_reasons(void **state)
{
    (void)state;
    static const struct {
        struct bn_model_config cfg;
        enum bn_errcode code;
        const char *words;
    } cases[] = {
        {{.device = "cuda:1000"}, BN_EDEVICE, "cuda"},
        {{.device = "cpu:1"}, BN_EDEVICE, "one CPU"},
        {{.device = "tpu"}, BN_EARG, "tpu"},
        {{.device = "cpu:"}, BN_EARG, "cpu:"},
        {{.device = "cpu:x"}, BN_EARG, "cpu:x"},
        {{.device = "cpu:99999999999999999999"}, BN_EARG, "cpu:"},
        {{.isa = "sse9"}, BN_EARG, "sse9"},
        {{.n_threads = 5000}, BN_EARG, "5000"},
        {{.n_ubatch = 1000000}, BN_EARG, "1000000"},
        {{.n_ubatch = 65536}, BN_EARG, "65536 tokens is too large, at most 65535"},
        {{.kv = (enum bn_kv_type)2}, BN_EARG, "KV cache type 2"},
        {{.head = (enum bn_head_mode)7}, BN_EARG, "output head 7"},
        {{.i2s_layout = (enum bn_i2s_layout)5}, BN_EARG, "layout"},
        {{.skip = (enum bn_skip)2}, BN_EARG, "value 2 for skipping zeros"},
    };
    const struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    struct bn_error err;
    assert_true(synth_open(&spec, &m, &err));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_false(try_open(&m, &cases[i].cfg, &err));
        if (err.code != cases[i].code || !strstr(err.text, cases[i].words))
            fail_msg("case %zu: code %d, %s", i, (int)err.code, err.text);
    }
    assert_true(try_open(&m, NULL, &err));
    synth_close(&m);
}

static void devices_are_listed_with_reasons(void **state)
{
    (void)state;
    struct bn_device_line lines[8];
    const size_t n = bn_device_list(lines, 8);
    bool has_cpu = false;
    assert_in_range(n, 1, 8);
    for (size_t i = 0; i < n; i++) {
        assert_true(lines[i].text[0] != '\0');
        has_cpu |= strcmp(lines[i].name, "cpu") == 0 && lines[i].usable;
    }
    assert_true(has_cpu);
}

/* The error has the same text as the device list. */
static void unusable_device_is_refused_with_its_reason(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    struct bn_device_line lines[8];
    struct synth_model m;
    struct bn_error err;
    const size_t n = bn_device_list(lines, 8);
    assert_true(synth_open(&spec, &m, &err));
    for (size_t i = 0; i < n; i++) {
        const struct bn_model_config cfg = {.device = lines[i].name};
        assert_int_equal(try_open(&m, &cfg, &err), lines[i].usable);
        if (lines[i].usable)
            continue;
        assert_int_equal(err.code, BN_EDEVICE);
        assert_non_null(strstr(err.text, lines[i].text));
    }
    synth_close(&m);
}

static void info_describes_the_model(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    const struct bn_model_config cfg = {.n_threads = 3, .isa = "ref"};
    struct kit kit;
    spec.type = TENSOR_TQ1_0;
    kit_open(&kit, &spec, &cfg);
    const struct bn_model_info *info = bn_model_info(kit.model);
    assert_string_equal(info->name, "synthetic-tiny");
    assert_string_equal(info->arch, "bitnet-b1.58");
    assert_string_equal(info->quantisation, "TQ1_0");
    assert_string_equal(info->isa, "ref");
    assert_string_equal(info->device, "CPU, 3 threads, plain C");
    assert_int_equal(info->n_threads, 3);
    assert_int_equal(info->n_vocab, 262);
    assert_int_equal(info->n_ctx_train, 256);
    assert_int_equal(info->kv_bytes_per_token, 2 * 2 * (64 + 64) * 2);
    /* A token reads an embedding row, and the 4-bit copy of the output head, not the F16 table. */
    assert_int_equal(info->head_bytes, 262 * (2 * 64 + 8 * 2));
    assert_int_equal(info->bytes_per_token, info->weight_bytes + 256 * 2);
    assert_true(bn_model_bandwidth(kit.model) > 1e6);
    struct bn_profile_step steps[BN_PROFILE_STEPS];
    assert_int_equal(bn_model_profile(kit.model, steps, BN_PROFILE_STEPS), 0); /* not requested */
    kit_close(&kit);
}

struct watcher {
    size_t n_calls, last, total;
    struct bn_cancel cancel;
    size_t cancel_at;
};

static void watch(void *ud, size_t n_done, size_t n_total)
{
    struct watcher *w = ud;
    assert_true(n_done > w->last && n_done <= n_total);
    w->last = n_done;
    w->total = n_total;
    if (++w->n_calls == w->cancel_at)
        bn_cancel_request(&w->cancel);
}

static void loading_reports_progress_and_can_be_cancelled(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("small");
    struct watcher w = {0};
    struct bn_model_config cfg = {.progress = {watch, &w}, .cancel = &w.cancel, .n_threads = 4};
    struct synth_model m;
    struct bn_error err;
    assert_true(synth_open(&spec, &m, &err));
    assert_true(try_open(&m, &cfg, &err));
    assert_int_equal(w.last, w.total);
    assert_true(w.n_calls >= 4);
    w = (struct watcher){.cancel_at = 3};
    assert_false(try_open(&m, &cfg, &err));
    assert_int_equal(err.code, BN_ECANCELLED);
    assert_int_equal(w.n_calls, 3);
    synth_close(&m);
}

static void file_on_disk_and_in_memory_give_same_bits(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("small");
    char path[] = "/tmp/test_engine_XXXXXX";
    struct kit kit, disk = {0};
    struct bn_file *file;
    struct bn_error err;
    int32_t ids[30];
    kit_open(&kit, &spec, NULL);
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *out = fdopen(fd, "wb");
    assert_int_equal(fwrite(kit.synth.bytes.bytes, 1, kit.synth.bytes.n_bytes, out),
                     kit.synth.bytes.n_bytes);
    assert_int_equal(fclose(out), 0);
    const bool ok = bn_file_open(path, &file, &err);
    (void)unlink(path);
    if (!ok || !bn_model_open(file, NULL, &disk.model, &err))
        fail_msg("%s", err.text);
    disk.n_vocab = kit.n_vocab;
    kit_ids(ids, 30, 2);
    float *a = kit_logits(&kit, ids, 30), *b = kit_logits(&disk, ids, 30);
    assert_memory_equal(a, b, 30 * kit.n_vocab * sizeof *a);
    /* Dropping pages after loading must not zero the caller's memory. */
    float *again = kit_logits(&kit, ids, 30);
    assert_memory_equal(a, again, 30 * kit.n_vocab * sizeof *a);
    mem_free(a);
    mem_free(b);
    mem_free(again);
    bn_model_close(disk.model);
    bn_file_close(file);
    kit_close(&kit);
}

#define I2_S_SCALE_BYTES 32 /* after the codes of a tensor */

static void invalid_ternary_code_is_refused(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    const char *const names[] = {"blk.0.attn_q.weight", "blk.1.attn_v.weight",
                                 "blk.1.ffn_down.weight"};
    for (size_t i = 0; i < 3; i++) {
        struct synth_model m;
        struct bn_error err;
        char offset[32];
        assert_true(synth_open(&spec, &m, &err));
        const struct gguf_tensor *t = gguf_find_tensor(m.gguf, names[i]);
        /* A byte in the middle of the codes. Its code in the top two bits becomes 3; codes are 0
         * to 2. */
        const size_t at = t->offset + (t->n_bytes - I2_S_SCALE_BYTES) / 2;
        m.bytes.bytes[at] |= 0xc0;
        assert_false(try_open(&m, NULL, &err));
        assert_int_equal(err.code, BN_EFORMAT);
        (void)snprintf(offset, sizeof offset, "%zu", at);
        if (!strstr(err.text, names[i]) || !strstr(err.text, offset))
            fail_msg("%s", err.text);
        synth_close(&m);
    }
}

#define NAN_ID 65

/* The embedding of token NAN_ID is NaN. The output head is a separate matrix: with a tied one,
 * every token would get a NaN logit for that id. */
static void check_nan_token(const char *isa)
{
    struct synth_spec spec = synth_preset("tiny");
    spec.arch = "llama";
    spec.head = TENSOR_F32;
    static const int32_t bad[] = {70, NAN_ID}, good[] = {70, 71, 72};
    const struct bn_model_config cfg = {.n_threads = 2, .isa = isa};
    const struct head_request head = {.kind = HEAD_TOP, .k = 3};
    struct head_cand cands[3], expected[3];
    struct head_row row = {cands, 3, 0};
    struct kit kit;
    struct bn_error err;
    size_t n_ids;
    kit_open(&kit, &spec, &cfg);
    const struct gguf_tensor *t = gguf_find_tensor(kit.synth.gguf, "token_embd.weight");
    memset(kit.synth.bytes.bytes + t->offset + (size_t)NAN_ID * spec.n_embd * 4, 0xff,
           spec.n_embd * 4);
    assert_true(bn_session_sync(kit.session, good, 3, &head, &row, NULL, NULL, &err));
    memcpy(expected, cands, sizeof cands);

    row.n = 0;
    bn_session_truncate(kit.session, 0);
    assert_false(bn_session_eval(kit.session, bad, 2, &head, &row, 1, NULL, &err));
    assert_int_equal(err.code, BN_EDEVICE);
    assert_int_equal(row.n, 0);
    (void)bn_session_ids(kit.session, &n_ids);
    assert_int_equal(n_ids, 0);

    /* After a truncation the NaN values in the cache have no effect. */
    assert_true(bn_session_eval(kit.session, bad, 2, NULL, NULL, 0, NULL, &err));
    assert_true(bn_session_sync(kit.session, good, 1, NULL, NULL, NULL, NULL, &err));
    assert_true(bn_session_sync(kit.session, good, 3, &head, &row, NULL, NULL, &err));
    assert_memory_equal(cands, expected, sizeof cands);
    kit_close(&kit);
}

static void nan_logits_are_an_error(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    struct bn_error err;
    assert_true(synth_open(&spec, &m, &err));
    for (enum cpu_isa isa = ISA_REF; isa < ISA_N; isa++) {
        const char *name = cpu_isa_name(isa);
        if (try_open(&m, &(struct bn_model_config){.isa = name}, &err))
            check_nan_token(name);
        else
            assert_int_equal(err.code, BN_EUNSUPPORTED); /* this machine cannot run it */
    }
    synth_close(&m);
}

/* Packed, rows of four weights would be 64 times larger than in the file. */
static void model_that_grows_when_packed_is_refused(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    spec.arch = "llama";
    spec.n_layers = 4;
    spec.n_embd = 4;
    spec.n_heads = 1;
    spec.n_kv_heads = 1;
    spec.head_dim = 32;
    spec.n_ff = (size_t)1 << 20;
    struct synth_model m;
    struct bn_error err;
    if (!synth_open(&spec, &m, &err))
        fail_msg("%s", err.text);
    assert_false(try_open(&m, NULL, &err));
    assert_int_equal(err.code, BN_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "too short"));
    synth_close(&m);
}

/* Try to open a model while the process can allocate only n_megabytes. Skips without /proc. */
static void open_with_little_memory(const struct synth_model *m, const struct bn_model_config *cfg,
                                    size_t n_megabytes, struct bn_error *err)
{
    struct rlimit before, less;
    struct bn_model *model = NULL;
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f)
        skip();
    assert_int_equal(fscanf(f, "%llu", &pages), 1);
    (void)fclose(f); /* the file was only read */
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    less = before;
    less.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)n_megabytes << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
    const bool ok = bn_model_open(m->file, cfg, &model, err);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_false(ok);
    assert_int_equal(err->code, BN_ENOMEM);
}

/* The weights fit, but not the scratch memory of a pass, which is only used at a long prompt. */
static void a_model_without_room_for_a_pass_is_refused(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    const struct bn_model_config cfg = {.device = "cpu", .n_ubatch = 65535};
    struct synth_model m;
    struct bn_error err;
    if (!synth_open(&spec, &m, &err))
        fail_msg("%s", err.text);
    open_with_little_memory(&m, &cfg, 100, &err);
    if (!strstr(err.text, " MB for the work on a prompt, but only "))
        fail_msg("%s", err.text);
    synth_close(&m);
}

/* The weights need 3.1 MB. A scale that is not a number would be reported if a weight was read. */
static void a_model_without_room_is_refused_before_reading(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("small");
    spec.type = TENSOR_TQ2_0;
    struct synth_model m;
    struct bn_model *model = NULL;
    struct bn_error err;
    if (!synth_open(&spec, &m, &err))
        fail_msg("%s", err.text);
    const struct gguf_tensor *t = gguf_find_tensor(m.gguf, "blk.0.attn_q.weight");
    memset(m.bytes.bytes + t->offset + 64, 0xff, 2); /* the scale of the first block */
    const struct bn_model_config cfg = {.device = "cpu"};
    open_with_little_memory(&m, &cfg, 2, &err);
    assert_non_null(strstr(err.text, "the model needs 3 MB of memory for its weights, but only "));
    assert_false(bn_model_open(m.file, &cfg, &model, &err));
    assert_int_equal(err.code, BN_EFORMAT);
    synth_close(&m);
}

/* A context of a million tokens uses memory only for the tokens that it holds. */
static void unused_context_uses_no_memory(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    struct kit kit;
    struct bn_error err;
    int32_t ids[100];
    kit_open(&kit, &spec, NULL);
    kit_ids(ids, 100, 1);
    const size_t before = mem_resident_bytes();
    struct bn_session *s = kit_session(&kit, (size_t)1 << 20);
    assert_true(bn_session_eval(s, ids, 100, NULL, NULL, 0, NULL, &err));
    assert_true(mem_resident_bytes() < before + ((size_t)64 << 20));
    bn_session_close(s);
    kit_close(&kit);
}

#define KV_BYTES 76800 /* per token of the 2B4T model */
#define MB ((size_t)1 << 20)

static void batch_width_uses_half_of_free_memory(void **state)
{
    (void)state;
    assert_int_equal(engine_batch_width(1200 * MB, KV_BYTES, 0, 4096), 2);
    assert_int_equal(engine_batch_width(6000 * MB, KV_BYTES, 0, 4096), 10);
    assert_int_equal(engine_batch_width((size_t)KV_BYTES * 4096 * 6, KV_BYTES, 0, 4096), 3);
    assert_int_equal(engine_batch_width((size_t)KV_BYTES * 4096 * 6 - 1, KV_BYTES, 0, 4096), 2);
}

static void batch_width_grows_for_a_shorter_context(void **state)
{
    (void)state;
    assert_int_equal(engine_batch_width(1200 * MB, KV_BYTES, 0, 1024), 8);
    assert_int_equal(engine_batch_width(1200 * MB, KV_BYTES, 0, 512), 16);
}

static void batch_width_is_from_one_to_sixteen(void **state)
{
    (void)state;
    assert_int_equal(engine_batch_width(0, KV_BYTES, 0, 4096), 1);
    assert_int_equal(engine_batch_width(100 * MB, KV_BYTES, 0, 4096), 1);
    assert_int_equal(engine_batch_width(SIZE_MAX, KV_BYTES, 0, 4096), 16);
    assert_int_equal(engine_batch_width(SIZE_MAX, 0, 0, 0), 16);
    assert_int_equal(engine_batch_width(SIZE_MAX - 1, SIZE_MAX, 0, 2), 1);
}

static void default_context_takes_half_of_free_memory(void **state)
{
    (void)state;
    assert_int_equal(engine_default_ctx(1200 * MB, KV_BYTES, 0, 4096), 4096);
    assert_int_equal(engine_default_ctx(600 * MB, KV_BYTES, 0, 4096), 4096);
    assert_int_equal(engine_default_ctx((size_t)KV_BYTES * 4096 * 2, KV_BYTES, 0, 4096), 4096);
    assert_int_equal(engine_default_ctx((size_t)KV_BYTES * 4096 * 2 - 1, KV_BYTES, 0, 4096), 3840);
    assert_int_equal(engine_default_ctx(300 * MB, KV_BYTES, 0, 4096), 2048);
}

static void default_context_has_bounds(void **state)
{
    (void)state;
    assert_int_equal(engine_default_ctx(0, KV_BYTES, 0, 4096), 512);
    assert_int_equal(engine_default_ctx(0, KV_BYTES, 0, 300), 300);
    assert_int_equal(engine_default_ctx(SIZE_MAX, SIZE_MAX, 0, 4096), 4096); /* unknown */
    assert_int_equal(engine_default_ctx(MB, 0, 0, 4096), 4096);
    assert_int_equal(engine_default_ctx(SIZE_MAX - 1, 1, 0, (size_t)1 << 30), (size_t)1 << 30);
}

/* 2^30 tokens of 1 kB do not fit into half of the memory of any machine. */
static void sessions_use_the_default_context(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    struct kit kit;
    kit_open(&kit, &spec, NULL);
    assert_int_equal(bn_model_info(kit.model)->n_ctx_default, 256);
    kit_close(&kit);
    spec.n_ctx = (size_t)1 << 30;
    kit_open(&kit, &spec, NULL);
    const struct bn_model_info *info = bn_model_info(kit.model);
    assert_int_equal(info->n_ctx_train, spec.n_ctx);
    assert_true(info->n_ctx_default >= 512 && info->n_ctx_default < spec.n_ctx);
    assert_int_equal(info->n_ctx_default % 256, 0);
    assert_int_equal(bn_session_n_ctx(kit.session), info->n_ctx_default);
    struct bn_session *s = kit_session(&kit, 4096);
    assert_int_equal(bn_session_n_ctx(s), 4096); /* an explicit context is not limited */
    bn_session_close(s);
    kit_close(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_allocates_nothing),
        cmocka_unit_test(q8_output_head_is_reported_and_changes_logits_little),
        cmocka_unit_test(q8_kv_cache_is_reported),
        cmocka_unit_test(wrong_configurations_are_refused_with_reasons),
        cmocka_unit_test(devices_are_listed_with_reasons),
        cmocka_unit_test(unusable_device_is_refused_with_its_reason),
        cmocka_unit_test(info_describes_the_model),
        cmocka_unit_test(loading_reports_progress_and_can_be_cancelled),
        cmocka_unit_test(file_on_disk_and_in_memory_give_same_bits),
        cmocka_unit_test(invalid_ternary_code_is_refused),
        cmocka_unit_test(nan_logits_are_an_error),
        cmocka_unit_test(model_that_grows_when_packed_is_refused),
        cmocka_unit_test(a_model_without_room_is_refused_before_reading),
        cmocka_unit_test(a_model_without_room_for_a_pass_is_refused),
        cmocka_unit_test(unused_context_uses_no_memory),
        cmocka_unit_test(default_context_takes_half_of_free_memory),
        cmocka_unit_test(default_context_has_bounds),
        cmocka_unit_test(sessions_use_the_default_context),
        cmocka_unit_test(batch_width_uses_half_of_free_memory),
        cmocka_unit_test(batch_width_grows_for_a_shorter_context),
        cmocka_unit_test(batch_width_is_from_one_to_sixteen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
