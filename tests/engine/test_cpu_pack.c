/*
 * Packing to R1-256 against its definition: bits 2i of byte b of a line hold the code of column 256
 * line + 64 i + b; columns past the end have code 1.
 */
#include "engine/cpu/cpu_pack_columns.h"

#include "engine/base/memory.h"
#include "engine/base/noise.h"
#include "engine/cpu/cpu_linear.h"
#include "tests/support/ternary_encode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    uint8_t *codes, *file, *lines, *scratch;
    size_t n_lines;
    struct ternary_source src;
};

static void setup(struct fixture *f, enum tensor_type type, enum bn_i2s_layout layout,
                  size_t n_cols, size_t n_rows)
{
    struct bn_error err;
    size_t n_bytes;
    assert_true(tensor_bytes(type, n_cols, n_rows, &n_bytes));
    *f = (struct fixture){.codes = mem_alloc(n_rows, n_cols),
                          .file = mem_alloc(n_bytes, 1),
                          .scratch = mem_alloc(R1_PACK_ROWS, n_cols),
                          .n_lines = (n_cols + LINE_COLS - 1) / LINE_COLS};
    f->lines = mem_alloc(2 * n_rows * f->n_lines, LINE_BYTES);
    for (size_t i = 0; i < n_rows * n_cols; i++)
        f->codes[i] = (uint8_t)(noise_bits(n_cols, i) % 3);
    if (!ternary_encode(type, layout, f->codes, n_cols, n_rows, 0.5f, f->file, &err))
        fail_msg("%s", err.text);
    f->src = (struct ternary_source){.name = "blk.3.ffn_up.weight",
                                     .type = type,
                                     .layout = layout,
                                     .bytes = f->file,
                                     .n_bytes = n_bytes,
                                     .file_offset = 4096,
                                     .n_cols = n_cols,
                                     .n_rows = n_rows};
}

static void teardown(struct fixture *f)
{
    mem_free(f->codes);
    mem_free(f->file);
    mem_free(f->lines);
    mem_free(f->scratch);
}

/* Check that these rows have the right place and contents. */
static void check_rows(struct fixture *f, size_t row0, size_t row1, size_t stride)
{
    struct bn_error err;
    if (!r1_pack_rows(&f->src, row0, row1, f->lines, stride, f->scratch, &err))
        fail_msg("%s", err.text);
    for (size_t r = row0; r < row1; r++)
        for (size_t c = 0; c < f->n_lines * LINE_COLS; c++) {
            const uint8_t *line = f->lines + (r - row0) * stride + c / LINE_COLS * LINE_BYTES;
            const unsigned code = line[c % 64] >> (2 * (c % LINE_COLS / 64)) & 3;
            const unsigned expected = c < f->src.n_cols ? f->codes[r * f->src.n_cols + c] : 1;
            assert_int_equal(code, expected);
        }
}

static void every_container_packs_to_the_definition(void **state)
{
    (void)state;
    static const struct {
        enum tensor_type type;
        enum bn_i2s_layout layout;
        size_t n_cols, n_rows;
    } cases[] = {
        {TENSOR_I2_S, BN_I2S_A, 256, 1},      {TENSOR_I2_S, BN_I2S_A, 2560, 19},
        {TENSOR_I2_S, BN_I2S_A, 6912, 3},     {TENSOR_I2_S, BN_I2S_A, 128, 5},
        {TENSOR_I2_S, BN_I2S_A, 96, 4},       {TENSOR_I2_S, BN_I2S_A, 384, 7},
        {TENSOR_I2_S, BN_I2S_B, 512, 6},      {TENSOR_I2_S, BN_I2S_C, 300, 8},
        {TENSOR_TQ1_0, BN_I2S_A, 512, 9},     {TENSOR_TQ2_0, BN_I2S_A, 768, 5},
        {TENSOR_Q2_0, BN_I2S_A, 320, 5},      {TENSOR_Q2_0_G128, BN_I2S_A, 384, 6},
        {TENSOR_PQ2_0, BN_I2S_A, 640, 5},     {TENSOR_PTQ1_0, BN_I2S_A, 384, 7},
        {TENSOR_IQ1_BN, BN_I2S_A, 320, 5},    {TENSOR_IQ2_BN, BN_I2S_A, 320, 5},
        {TENSOR_IQ2_BN_R4, BN_I2S_A, 320, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture f;
        setup(&f, cases[i].type, cases[i].layout, cases[i].n_cols, cases[i].n_rows);
        const size_t n_rows = cases[i].n_rows, row_bytes = f.n_lines * LINE_BYTES;
        check_rows(&f, 0, n_rows, row_bytes);
        check_rows(&f, n_rows / 2, n_rows, 2 * row_bytes);
        check_rows(&f, n_rows, n_rows, row_bytes);
        teardown(&f);
    }
}

/* In any byte and any of its four fields, for rows that are rearranged directly and rows that are
 * decoded. */
static void code_three_is_refused_by_name_and_offset(void **state)
{
    (void)state;
    static const size_t n_cols[] = {512, 384};
    for (size_t k = 0; k < 2; k++)
        for (size_t field = 0; field < 4; field++) {
            struct fixture f;
            struct bn_error err = {0};
            char offset[32];
            const size_t at = n_cols[k] / 4 * 3 + 45 + field;
            setup(&f, TENSOR_I2_S, BN_I2S_A, n_cols[k], 6);
            f.file[at] |= (uint8_t)(3 << (2 * field));
            assert_false(
                r1_pack_rows(&f.src, 0, 6, f.lines, f.n_lines * LINE_BYTES, f.scratch, &err));
            assert_int_equal(err.code, BN_EFORMAT);
            assert_non_null(strstr(err.text, "blk.3.ffn_up.weight"));
            (void)snprintf(offset, sizeof offset, "%zu", 4096 + at);
            if (!strstr(err.text, offset))
                fail_msg("no %s in: %s", offset, err.text);
            assert_true(
                r1_pack_rows(&f.src, 0, 3, f.lines, f.n_lines * LINE_BYTES, f.scratch, &err));
            teardown(&f);
        }
}

/* Bits 2i of byte b of line l of column c hold row 256 l + 64 i + b; rows past the end have code
 * 1. */
static void columns_hold_the_same_codes(void **state)
{
    (void)state;
    static const size_t shapes[][2] = {{256, 256}, {512, 700}, {768, 255}, {6912, 3}};
    for (size_t k = 0; k < 4; k++) {
        struct fixture f;
        struct bn_error err;
        const size_t n_cols = shapes[k][0], n_rows = shapes[k][1];
        const size_t n_lines = (n_rows + LINE_COLS - 1) / LINE_COLS;
        setup(&f, TENSOR_I2_S, BN_I2S_A, n_cols, n_rows);
        uint8_t *lines = mem_alloc(n_cols * n_lines, LINE_BYTES);
        uint8_t *rows = mem_alloc(LINE_COLS * f.n_lines, LINE_BYTES);
        for (size_t l = 0; l < n_lines; l++)
            assert_true(pack_columns(&f.src, l, l + 1, n_lines, lines, rows, f.scratch, &err));
        for (size_t c = 0; c < n_cols; c++)
            for (size_t r = 0; r < n_lines * LINE_COLS; r++) {
                const uint8_t *line = lines + (c * n_lines + r / LINE_COLS) * LINE_BYTES;
                const unsigned code = line[r % 64] >> (2 * (r % LINE_COLS / 64)) & 3;
                assert_int_equal(code, r < n_rows ? f.codes[r * n_cols + c] : 1);
            }
        mem_free(rows);
        mem_free(lines);
        teardown(&f);
    }
}

/* The file's bytes, read as a line of R1-256, times activations in file order. */
static void file_order_multiplies_the_files_own_lines(void **state)
{
    (void)state;
    struct fixture f;
    int8_t q[768], turned[768];
    setup(&f, TENSOR_I2_S, BN_I2S_A, 768, 1);
    int32_t expected = 0, sum = 0;
    for (size_t c = 0; c < 768; c++) {
        turned[c] = q[c] = (int8_t)(noise_bits(5, c) % 255 - 127);
        expected += f.codes[c] * q[c];
    }
    linear_acts_to_file_order(turned, 3);
    for (size_t c = 0; c < 768; c++)
        sum += (f.file[c / 256 * 64 + c % 64] >> (2 * (c % 256 / 64)) & 3) * turned[c];
    assert_int_equal(sum, expected);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_container_packs_to_the_definition),
        cmocka_unit_test(columns_hold_the_same_codes),
        cmocka_unit_test(file_order_multiplies_the_files_own_lines),
        cmocka_unit_test(code_three_is_refused_by_name_and_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
