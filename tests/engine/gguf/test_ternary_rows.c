/*
 * Ternary types with a scale per row: classes of scales, rows of zeros, damaged rows.
 * test_ternary_codec.c has their known bytes and round trips.
 */
#include "engine/gguf/ternary_codec.h"

#include "engine/base/memory.h"
#include "tests/support/ternary_encode.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const enum tensor_type row_types[] = {TENSOR_IQ1_BN, TENSOR_IQ2_BN, TENSOR_IQ2_BN_R4};
#define N_ROW_TYPES (sizeof(row_types) / sizeof(row_types[0]))
#define ROW_COLS 192
#define N_ROWS 8

/* Codes without a period, which could hide a wrong layout. */
static uint8_t *some_codes(size_t n)
{
    uint8_t *codes = mem_alloc(n, 1);
    uint32_t x = 12345;
    assert_non_null(codes);
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        codes[i] = (uint8_t)((x >> 24) % 3);
    }
    return codes;
}

static struct ternary_source source_of(enum tensor_type type, const uint8_t *bytes)
{
    struct ternary_source s = {.name = "t",
                               .type = type,
                               .bytes = bytes,
                               .file_offset = 1000,
                               .n_cols = ROW_COLS,
                               .n_rows = N_ROWS};
    assert_true(tensor_bytes(type, ROW_COLS, N_ROWS, &s.n_bytes));
    return s;
}

static void a_scale_per_row_has_its_class(void **state)
{
    (void)state;
    static const float expected[N_ROWS] = {0.5f, 0.5f, -0.25f, 0.0f, 3.0f, 0.5f, 0.5f, 2.0f};
    for (size_t i = 0; i < N_ROW_TYPES; i++) {
        uint8_t *codes = some_codes(ROW_COLS * N_ROWS), bytes[N_ROWS * (4 + ROW_COLS / 4)];
        uint8_t decoded[ROW_COLS * N_ROWS];
        float scales[N_ROWS];
        struct ternary_scales s;
        struct bn_error err;
        const struct ternary_source src = source_of(row_types[i], bytes);
        assert_true(
            ternary_encode(row_types[i], BN_I2S_A, codes, ROW_COLS, N_ROWS, 0.5f, bytes, &err));
        ternary_put_row_scale(row_types[i], bytes, ROW_COLS, 3, -0.0f); /* fits any scale */
        assert_true(ternary_scan(&src, &s, &err));
        assert_true(s.scaling == SCALE_TENSOR && s.tensor_scale == 0.5f);
        memset(codes + 3 * ROW_COLS, 1, ROW_COLS);
        assert_true(ternary_decode(&src, 0, N_ROWS, decoded, &err));
        assert_memory_equal(decoded, codes, sizeof(decoded));
        for (size_t row = 0; row < N_ROWS; row++)
            ternary_put_row_scale(row_types[i], bytes, ROW_COLS, row, expected[row]);
        assert_true(ternary_scan(&src, &s, &err));
        assert_true(s.scaling == SCALE_ROW && s.tensor_scale == 1.0f && s.block_cols == 0);
        ternary_row_scales(&src, 0, N_ROWS, scales);
        assert_memory_equal(scales, expected, sizeof(scales));
        ternary_row_scales(&src, 4, 5, scales);
        assert_true(scales[0] == 3.0f);
        assert_true(ternary_decode(&src, 0, N_ROWS, decoded, &err));
        assert_memory_equal(decoded, codes, sizeof(decoded));
        mem_free(codes);
    }
}

static void row_scales_must_be_numbers(void **state)
{
    (void)state;
    /* of row 5; rows of IQ1_BN have 41 bytes, the others 52, and a unit of four begins at row 4 */
    static const char *const places[] = {"row 5, at byte 1205,", "row 5, at byte 1260,",
                                         "row 5, at byte 1212,"};
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < 3 * N_ROW_TYPES; i++) {
        const enum tensor_type type = row_types[i / 3];
        uint8_t *codes = some_codes(ROW_COLS * N_ROWS), bytes[N_ROWS * (4 + ROW_COLS / 4)];
        struct ternary_scales s;
        struct bn_error err;
        const struct ternary_source src = source_of(type, bytes);
        assert_true(ternary_encode(type, BN_I2S_A, codes, ROW_COLS, N_ROWS, 0.5f, bytes, &err));
        /* The class is known before this row. */
        ternary_put_row_scale(type, bytes, ROW_COLS, 0, 2.0f);
        ternary_put_row_scale(type, bytes, ROW_COLS, 5, bad[i % 3]);
        assert_false(ternary_scan(&src, &s, &err));
        assert_int_equal(err.code, BN_EFORMAT);
        assert_non_null(strstr(err.text, "tensor 't'"));
        assert_non_null(strstr(err.text, places[i / 3]));
        mem_free(codes);
    }
}

static void code_3_of_a_row_is_refused(void **state)
{
    (void)state;
    /* Row 6, column 150, which is element 22 of block 2: byte 6 of the block in IQ2_BN, and byte
     * 16 + 4 k + 2 in IQ2_BN_R4. */
    static const struct {
        enum tensor_type type;
        size_t at, shift;
    } cases[] = {{TENSOR_IQ2_BN, 6 * 52 + 4 + 2 * 16 + 6, 2},
                 {TENSOR_IQ2_BN_R4, 4 * 52 + 16 + 2 * 64 + 16 + 4 * 2 + 2, 2}};
    for (size_t i = 0; i < 2; i++) {
        uint8_t *codes = some_codes(ROW_COLS * N_ROWS), bytes[N_ROWS * (4 + ROW_COLS / 4)];
        uint8_t decoded[ROW_COLS * N_ROWS];
        char place[32];
        struct bn_error err;
        const struct ternary_source src = source_of(cases[i].type, bytes);
        assert_true(
            ternary_encode(cases[i].type, BN_I2S_A, codes, ROW_COLS, N_ROWS, 0.5f, bytes, &err));
        bytes[cases[i].at] |= (uint8_t)(3 << cases[i].shift);
        (void)snprintf(place, sizeof(place), "byte at %zu ", 1000 + cases[i].at);
        assert_false(ternary_decode(&src, 6, 7, decoded, &err));
        assert_int_equal(err.code, BN_EFORMAT);
        assert_non_null(strstr(err.text, place));
        assert_true(ternary_decode(&src, 0, 6, decoded, &err));
        assert_true(ternary_decode(&src, 7, 8, decoded, &err));
        mem_free(codes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scale_per_row_has_its_class),
        cmocka_unit_test(row_scales_must_be_numbers),
        cmocka_unit_test(code_3_of_a_row_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
