/*
 * Valid models that are corrupted everywhere: truncated at each byte, with flipped bytes and with
 * huge counts. Nothing may crash, and memory must stay proportional to the file. One model has one
 * scale per tensor, the others have a ternary embedding and scales per block.
 */
#include "engine/base/memory.h"
#include "engine/gguf/gguf_le.h"
#include "tests/support/le_put.h"
#include "tests/support/synth.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The files have 14 to 50 kB and need about as much memory; a sanitizer also keeps freed memory. */
#if defined(__SANITIZE_ADDRESS__)
#define MAX_BYTES ((size_t)1 << 30)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MAX_BYTES ((size_t)1 << 30)
#endif
#endif
#ifndef MAX_BYTES
#define MAX_BYTES ((size_t)32 << 20)
#endif

struct fixture {
    struct synth_model m;
    uint8_t *copy; /* (n_bytes) corrupted and restored */
    size_t n_bytes, data_start;
    size_t resident_bytes; /* of the process, before any test */
};

static int open_spec(const struct synth_spec *spec, void **state)
{
    static struct fixture f;
    struct bn_error err;
    if (!synth_open(spec, &f.m, &err))
        return -1;
    f.n_bytes = f.m.bytes.n_bytes;
    f.data_start = f.m.gguf->data_start;
    f.copy = mem_alloc(f.n_bytes, 1);
    memcpy(f.copy, f.m.bytes.bytes, f.n_bytes);
    f.resident_bytes = mem_resident_bytes();
    *state = &f;
    return 0;
}

static int open_tensor_scales(void **state)
{
    struct synth_spec spec = synth_preset("tiny");
    spec.n_layers = 1;
    spec.n_embd = spec.n_ff = 32;
    spec.n_heads = spec.n_kv_heads = 1;
    spec.head = TENSOR_Q4_0;
    spec.biases = true;
    return open_spec(&spec, state);
}

static int open_block_scales(enum tensor_type type, size_t scale_cols, void **state)
{
    struct synth_spec spec = synth_preset("tiny");
    spec.arch = "qwen3";
    spec.n_layers = 1;
    spec.n_embd = spec.n_ff = 128;
    spec.n_heads = spec.n_kv_heads = 1;
    spec.type = spec.head = type;
    spec.scale_cols = scale_cols;
    return open_spec(&spec, state);
}

static int open_pq2_0(void **state)
{
    return open_block_scales(TENSOR_PQ2_0, SYNTH_ROW_SCALES, state);
}

static int open_ptq1_0(void **state)
{
    return open_block_scales(TENSOR_PTQ1_0, 128, state);
}

static int open_q2_0(void **state)
{
    return open_block_scales(TENSOR_Q2_0, 64, state);
}

static int open_q2_0_g128(void **state)
{
    return open_block_scales(TENSOR_Q2_0_G128, 128, state);
}

/* A delta net and a layer of attention. */
static int open_delta_net(void **state)
{
    struct synth_spec spec = synth_preset("qwen35-tiny");
    spec.n_layers = 2;
    spec.n_ff = 128;
    spec.n_heads = spec.n_kv_heads = 1;
    spec.head_dim = 128;
    spec.untied = false;
    spec.delta =
        (struct delta_shape){.n_key_heads = 1, .n_value_heads = 2, .dim = 64, .interval = 2};
    spec.n_extra_layers = 1;
    return open_spec(&spec, state);
}

/* Scales per row in types that embeddings cannot have. */
static int open_row_scales(enum tensor_type type, void **state)
{
    struct synth_spec spec = synth_preset("tiny");
    spec.n_layers = 1;
    spec.n_embd = spec.n_ff = 128;
    spec.n_heads = spec.n_kv_heads = 1;
    spec.type = type;
    spec.scale_cols = SYNTH_ROW_SCALES;
    return open_spec(&spec, state);
}

static int open_iq1_bn(void **state)
{
    return open_row_scales(TENSOR_IQ1_BN, state);
}

static int open_iq2_bn_r4(void **state)
{
    return open_row_scales(TENSOR_IQ2_BN_R4, state);
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    synth_close(&f->m);
    mem_free(f->copy);
    return 0;
}

static void read_weights(const struct linear *w)
{
    uint8_t codes[128 * 128];
    uint16_t bits[128 * 2];
    float of_rows[128];
    struct bn_error err;
    if (w->source.n_cols > 128 || w->source.n_rows > 128)
        return;
    (void)ternary_decode(&w->source, 0, w->source.n_rows, codes, &err);
    if (w->scales.scaling == SCALE_BLOCK)
        (void)ternary_block_scales(&w->source, &w->scales, 0, w->source.n_rows, bits, &err);
    else if (w->scales.scaling == SCALE_ROW)
        ternary_row_scales(&w->source, 0, w->source.n_rows, of_rows);
}

/* Try to open the copy. True if it is still a model. A failure must have a message. */
static bool try_open(const struct fixture *f, size_t n_bytes)
{
    struct bn_error err = {0};
    struct bn_file *file = NULL;
    struct model *m = NULL;
    const struct model_config cfg = {0};
    const bool ok = bn_file_open_memory(f->copy, n_bytes, &file, &err) &&
                    model_open(bn_file_gguf(file), &cfg, &m, &err);
    if (ok)
        read_weights(&m->layers[0].down);
    if (!ok)
        assert_true(err.text[0] != '\0' && err.code != BN_OK);
    model_close(m);
    bn_file_close(file);
    return ok;
}

static void memory_stayed_small(const struct fixture *f)
{
    assert_true(mem_peak_bytes() < f->resident_bytes + MAX_BYTES);
}

static void only_the_complete_file_opens(void **state)
{
    const struct fixture *f = *state;
    assert_true(try_open(f, f->n_bytes));
    /* The padding after the last tensor may be missing. */
    const struct gguf_tensor *last = gguf_find_tensor(f->m.gguf, "output_norm.weight");
    const size_t end = last->offset + last->n_bytes;
    assert_true(try_open(f, end));
    for (size_t n = 0; n < end; n += n < f->data_start || n > end - 100 ? 1 : 17)
        assert_false(try_open(f, n));
    memory_stayed_small(f);
}

static void flipped_bytes_are_harmless(void **state)
{
    const struct fixture *f = *state;
    size_t n_refused = 0;
    for (size_t i = 0; i < f->data_start; i++) {
        const uint8_t kept = f->copy[i];
        f->copy[i] = (uint8_t)(kept ^ 1 << i % 8);
        n_refused += !try_open(f, f->n_bytes);
        f->copy[i] = (uint8_t)~kept;
        n_refused += !try_open(f, f->n_bytes);
        f->copy[i] = kept;
    }
    assert_true(n_refused >
                1000); /* flips in token texts are harmless, flips in the structure are not */
    assert_true(try_open(f, f->n_bytes));
    memory_stayed_small(f);
}

/* A wrong code or scale of the embedding is refused at once, one of a layer when it is read. */
static void flipped_weights_are_refused_or_harmless(void **state)
{
    const struct fixture *f = *state;
    const struct tensor_ref *embd = &f->m.model->embd;
    const bool has_2_bits = embd->type != TENSOR_PTQ1_0;
    size_t n_refused = 0;
    for (size_t i = f->data_start; i < f->n_bytes; i += 3) {
        const uint8_t kept = f->copy[i];
        f->copy[i] = 0xff;
        const bool is_embd = i >= embd->file_offset && i < embd->file_offset + embd->n_bytes;
        n_refused += !try_open(f, f->n_bytes) && is_embd;
        f->copy[i] = kept;
    }
    if (f->m.model->ternary_embd.bytes && has_2_bits) /* some blocks have the scale 0 */
        assert_true(n_refused > embd->n_bytes / 3 * 8 / 10);
    assert_true(try_open(f, f->n_bytes));
}

static void huge_numbers_are_harmless(void **state)
{
    const struct fixture *f = *state;
    static const uint64_t numbers[] = {
        0, 1, 0x7fffffff, 0xffffffff, (uint64_t)1 << 40, INT64_MAX, UINT64_MAX - 31, UINT64_MAX};
    for (size_t i = 4; i + 8 <= f->data_start; i += 2) {
        uint8_t kept[8];
        memcpy(kept, f->copy + i, 8);
        le_put_u64(f->copy + i, numbers[i / 2 % 8]);
        (void)try_open(f, f->n_bytes);
        memcpy(f->copy + i, kept, 8);
    }
    assert_true(try_open(f, f->n_bytes));
    memory_stayed_small(f);
}

static bool is_size_of_tensors(struct bn_str key)
{
    static const char *const ends[] = {".embedding_length", ".feed_forward_length"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const size_t n = strlen(ends[i]);
        if (key.n_bytes > n && memcmp(key.ptr + key.n_bytes - n, ends[i], n) == 0)
            return true;
    }
    return false;
}

/* Set every number of the metadata in turn. Those that give the tensors another shape are refused;
 * the others may open. */
static void wrong_hyperparameters_are_refused_or_harmless(void **state)
{
    const struct fixture *f = *state;
    static const uint32_t numbers[] = {0, 1, 2, 31, 33, 1024, 1 << 20, 0x7fffffff, 0xffffffff};
    size_t n_refused = 0;
    for (size_t k = 0; k < f->m.gguf->n_kvs; k++) {
        const struct gguf_kv *kv = &f->m.gguf->kvs[k];
        if (kv->kind != GGUF_U32)
            continue;
        uint8_t *at = f->copy + (kv->value - f->m.bytes.bytes);
        const uint32_t kept = le_u32(at);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
            le_put_u32(at, numbers[i]);
            const bool ok = try_open(f, f->n_bytes);
            if (numbers[i] != kept && is_size_of_tensors(kv->key)) {
                assert_false(ok);
                n_refused++;
            }
        }
        le_put_u32(at, kept);
    }
    assert_true(n_refused > 0);
    assert_true(try_open(f, f->n_bytes));
    memory_stayed_small(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_complete_file_opens),
        cmocka_unit_test(flipped_bytes_are_harmless),
        cmocka_unit_test(flipped_weights_are_refused_or_harmless),
        cmocka_unit_test(huge_numbers_are_harmless),
        cmocka_unit_test(wrong_hyperparameters_are_refused_or_harmless),
    };
    int n_failed = 0;
    const CMFixtureFunction opens[] = {open_tensor_scales, open_pq2_0,     open_ptq1_0,
                                       open_q2_0,          open_q2_0_g128, open_iq1_bn,
                                       open_iq2_bn_r4,     open_delta_net};
    for (size_t i = 0; i < sizeof(opens) / sizeof(opens[0]); i++)
        n_failed += cmocka_run_group_tests(tests, opens[i], close_fixture);
    return n_failed;
}
