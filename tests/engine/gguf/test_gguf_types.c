/*
 * Sizes of types; type ids with several meanings, of which the size of the tensor selects one.
 */
#include "engine/gguf/gguf_types.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void sizes_follow_the_blocks(void **state)
{
    (void)state;
    static const struct {
        enum tensor_type type;
        size_t n_cols, n_rows, n_bytes;
    } cases[] = {
        {TENSOR_F32, 3, 5, 60},
        {TENSOR_F16, 3, 5, 30},
        {TENSOR_BF16, 3, 5, 30},
        {TENSOR_Q8_0, 64, 2, 136},
        {TENSOR_Q4_0, 64, 2, 72},
        {TENSOR_Q4_K, 512, 3, 864},
        {TENSOR_Q6_K, 512, 3, 1260},
        {TENSOR_TQ1_0, 256, 2, 108},
        {TENSOR_TQ2_0, 256, 2, 132},
        {TENSOR_Q2_0, 192, 3, 162},
        {TENSOR_Q2_0_G128, 384, 3, 306},
        {TENSOR_PQ2_0, 4096, 151669, 165015872},
        {TENSOR_PTQ1_0, 5120, 248320, 278118400},
        {TENSOR_Q1_0, 384, 3, 162},
        {TENSOR_IQ1_BN, 2560, 3, 1566},
        {TENSOR_IQ2_BN, 2560, 3, 1932},
        {TENSOR_IQ2_BN_R4, 2560, 8, 5152},
        {TENSOR_I2_S, 2560, 2560, 1638432},
        {TENSOR_I2_S, 8640, 3200, 6912032},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t n_bytes = 0;
        assert_true(tensor_bytes(cases[i].type, cases[i].n_cols, cases[i].n_rows, &n_bytes));
        assert_int_equal(n_bytes, cases[i].n_bytes);
    }
}

/* Bytes of all matrices of a qwen3 model of this type. */
static size_t qwen3_bytes(enum tensor_type type, size_t n_layers, size_t embd, size_t q, size_t ff,
                          size_t n_tables)
{
    const size_t kv = 1024, n_vocab = 151669;
    const struct {
        size_t n_cols, n_rows, n;
    } matrices[] = {{embd, q, n_layers},      {embd, kv, 2 * n_layers}, {q, embd, n_layers},
                    {embd, ff, 2 * n_layers}, {ff, embd, n_layers},     {embd, n_vocab, n_tables}};
    size_t sum = 0;
    for (size_t i = 0; i < sizeof(matrices) / sizeof(matrices[0]); i++) {
        size_t n_bytes = 0;
        assert_true(tensor_bytes(type, matrices[i].n_cols, matrices[i].n_rows, &n_bytes));
        sum += matrices[i].n * n_bytes;
    }
    return sum;
}

/* The data of the published Ternary Bonsai files, which are a few megabytes longer. */
static void bonsai_has_its_published_sizes(void **state)
{
    (void)state;
    static const size_t norms[] = {495616, 784384, 1232896};
    static const struct {
        enum tensor_type type;
        size_t n_bytes[3]; /* 1.7B, 4B, 8B */
    } cases[] = {{TENSOR_PQ2_0, {457345184, 1069018824, 2176234112}},
                 {TENSOR_Q2_0_G128, {457345184, 1069018824, 2176234112}},
                 {TENSOR_Q2_0, {484218688, 1131856144, 2304175360}},
                 {TENSOR_PTQ1_0, {376724672, 880506864, 1792410368}}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const enum tensor_type t = cases[i].type;
        assert_int_equal(qwen3_bytes(t, 28, 2048, 2048, 6144, 1) + norms[0], cases[i].n_bytes[0]);
        assert_int_equal(qwen3_bytes(t, 36, 2560, 4096, 9728, 1) + norms[1], cases[i].n_bytes[1]);
        assert_int_equal(qwen3_bytes(t, 36, 4096, 4096, 12288, 2) + norms[2], cases[i].n_bytes[2]);
    }
}

static void overflows_and_partial_blocks_are_refused(void **state)
{
    (void)state;
    size_t n_bytes = 7;
    assert_false(tensor_bytes(TENSOR_F32, SIZE_MAX / 2, 3, &n_bytes));
    assert_false(tensor_bytes(TENSOR_F32, SIZE_MAX / 3, 1, &n_bytes));
    assert_false(tensor_bytes(TENSOR_I2_S, SIZE_MAX, SIZE_MAX, &n_bytes));
    assert_false(tensor_bytes(TENSOR_I2_S, 3, 1, &n_bytes));
    assert_false(tensor_bytes(TENSOR_TQ1_0, 128, 2, &n_bytes));
    assert_false(tensor_bytes(TENSOR_IQ1_BN, 96, 2, &n_bytes));
    assert_false(tensor_bytes(TENSOR_IQ2_BN_R4, 64, 6, &n_bytes));
    assert_false(tensor_bytes(TENSOR_IQ2_BN, (SIZE_MAX / 64) * 64, 5, &n_bytes));
    assert_false(tensor_bytes(TENSOR_OTHER, 1, 1, &n_bytes));
    assert_int_equal(n_bytes, 7);
}

static void known_ids_give_their_types(void **state)
{
    (void)state;
    for (enum tensor_type t = TENSOR_F32; t < TENSOR_OTHER; t++) {
        size_t room = 0;
        assert_true(tensor_bytes(t, 256, 4, &room));
        assert_int_equal(tensor_type_decide(tensor_geometries[t].file_id, 256, 4, room, 32), t);
    }
    assert_int_equal(tensor_type_decide(4711, 256, 4, 1024, 32), TENSOR_OTHER);
}

/* The types of ik_llama.cpp had no row scales before October 2024. */
static void row_scales_are_decided_by_the_room(void **state)
{
    (void)state;
    const size_t n = 2560 * 640;
    assert_int_equal(tensor_type_decide(134, 2560, 640, n / 64 * 13 + 2 * 640, 32), TENSOR_IQ1_BN);
    assert_int_equal(tensor_type_decide(134, 2560, 640, n / 64 * 13, 32), TENSOR_OTHER);
    assert_int_equal(tensor_type_decide(135, 2560, 640, n / 4 + 4 * 640, 32), TENSOR_IQ2_BN);
    assert_int_equal(tensor_type_decide(135, 2560, 640, n / 4, 32), TENSOR_OTHER);
}

/* bitnet.cpp's I2_S and upstream's removed IQ4_NL_4_4 share id 36. */
static void id_36_is_decided_by_the_room(void **state)
{
    (void)state;
    const size_t n = 2560 * 640;
    assert_int_equal(tensor_type_decide(36, 2560, 640, n / 4 + 32, 32), TENSOR_I2_S);
    assert_int_equal(tensor_type_decide(36, 2560, 640, n / 32 * 18, 32), TENSOR_OTHER);
    /* padding after it, or more bytes at the end of the file */
    assert_int_equal(tensor_type_decide(36, 2560, 640, n / 4 + 32 + 31, 32), TENSOR_I2_S);
    assert_int_equal(tensor_type_decide(36, 2560, 640, n / 4 + 4096, 32), TENSOR_I2_S);
}

static void check_unusable(uint32_t id, size_t n_cols, size_t n_rows, size_t room, const char *name,
                           const char *advice)
{
    const struct unusable_type v = tensor_type_unusable(id, n_cols, n_rows, room, 32);
    assert_string_equal(v.name, name);
    if (!strstr(v.advice, advice))
        fail_msg("%s: '%s' does not say '%s'", name, v.advice, advice);
}

static void the_room_selects_the_name_of_an_id(void **state)
{
    (void)state;
    const size_t k = 2560, m = 640, n = k * m;
    check_unusable(36, k, m, n / 32 * 18, "IQ4_NL_4_4 (36, removed upstream)", "ternary original");
    check_unusable(38, k, m, n / 4 + 32, "TL1 (38)", "tuned for one machine");
    check_unusable(39, k, m, n / 32 * 17, "MXFP4 (39)", "ternary original");
    check_unusable(39, k, m, 350000, "TL2 (39)", "tuned for one machine");
    check_unusable(42, k, m, n / 256 * 42, "STQ1_0 (42, of the program ZINC)", "ternary original");
    check_unusable(142, k, m, n / 4, "IQ2_TN (142)", "i2_s");
    check_unusable(143, k, m, n / 256 * 52 + 2 * m, "IQ1_TN (143)", "i2_s");
    check_unusable(134, k, m, n / 64 * 13, "IQ1_BN without row scales (134, before October 2024)",
                   "i2_s");
    check_unusable(135, k, m, n / 4, "IQ2_BN without row scales (135, before October 2024)",
                   "i2_s");
    /* our own type in a place that cannot have it */
    check_unusable(135, k, m, n / 4 + 4 * m, "IQ2_BN", "ternary original");
    check_unusable(36, k, m, n / 4 + 32, "I2_S", "ternary original");
    assert_null(tensor_type_unusable(4711, k, m, n, 32).name);
}

static void ids_have_names_without_a_room(void **state)
{
    (void)state;
    assert_string_equal(tensor_type_id_name(39), "TL2 or MXFP4 (39)");
    assert_string_equal(tensor_type_id_name(0), "F32");
    assert_string_equal(tensor_type_id_name(335), "IQ2_BN_R4");
    assert_null(tensor_type_id_name(4711));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_follow_the_blocks),
        cmocka_unit_test(bonsai_has_its_published_sizes),
        cmocka_unit_test(overflows_and_partial_blocks_are_refused),
        cmocka_unit_test(known_ids_give_their_types),
        cmocka_unit_test(id_36_is_decided_by_the_room),
        cmocka_unit_test(row_scales_are_decided_by_the_room),
        cmocka_unit_test(the_room_selects_the_name_of_an_id),
        cmocka_unit_test(ids_have_names_without_a_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
