/*
 * Packing to R1-256 against its definition: byte b of a line, bits 2i, is the code of column
 * 256 line + 64 i + b; columns past the end are code 1.
 */
#include "engine/cpu/cpu_pack.h"

#include "engine/base/memory.h"
#include "engine/base/noise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    uint8_t *codes, *file, *lines, *room;
    size_t n_lines;
    struct ternary_source src;
};

static void setup(struct fixture *f, enum tensor_type type, enum i2s_layout layout, size_t n_cols,
                  size_t n_rows)
{
    struct bn_error err;
    size_t n_bytes;
    assert_true(tensor_bytes(type, n_cols, n_rows, &n_bytes));
    *f = (struct fixture){.codes = mem_alloc(n_rows, n_cols),
                          .file = mem_alloc(n_bytes, 1),
                          .room = mem_alloc(PACK_ROWS, n_cols),
                          .n_lines = (n_cols + LINE_COLS - 1) / LINE_COLS};
    f->lines = mem_alloc(n_rows * f->n_lines, LINE_BYTES);
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
    mem_free(f->room);
}

/* Rows row0 .. row1 - 1 land where they should and are what they should be. */
static void check_rows(struct fixture *f, size_t row0, size_t row1)
{
    struct bn_error err;
    if (!pack_rows(&f->src, row0, row1, f->lines, f->room, &err))
        fail_msg("%s", err.text);
    for (size_t r = row0; r < row1; r++)
        for (size_t c = 0; c < f->n_lines * LINE_COLS; c++) {
            const uint8_t *line = f->lines + ((r - row0) * f->n_lines + c / LINE_COLS) * LINE_BYTES;
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
        enum i2s_layout layout;
        size_t n_cols, n_rows;
    } cases[] = {
        {TENSOR_I2_S, I2S_A, 256, 1},  {TENSOR_I2_S, I2S_A, 2560, 19},
        {TENSOR_I2_S, I2S_A, 6912, 3}, {TENSOR_I2_S, I2S_A, 128, 5},
        {TENSOR_I2_S, I2S_A, 96, 4},   {TENSOR_I2_S, I2S_A, 384, 7},
        {TENSOR_I2_S, I2S_B, 512, 6},  {TENSOR_I2_S, I2S_C, 300, 8},
        {TENSOR_TQ1_0, I2S_A, 512, 9}, {TENSOR_TQ2_0, I2S_A, 768, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture f;
        setup(&f, cases[i].type, cases[i].layout, cases[i].n_cols, cases[i].n_rows);
        check_rows(&f, 0, cases[i].n_rows);
        check_rows(&f, cases[i].n_rows / 2, cases[i].n_rows);
        check_rows(&f, cases[i].n_rows, cases[i].n_rows);
        teardown(&f);
    }
}

/* In any byte and any of its four fields, on the direct path and on the plain one. */
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
            setup(&f, TENSOR_I2_S, I2S_A, n_cols[k], 6);
            f.file[at] |= (uint8_t)(3 << (2 * field));
            assert_false(pack_rows(&f.src, 0, 6, f.lines, f.room, &err));
            assert_int_equal(err.code, BN_EFORMAT);
            assert_non_null(strstr(err.text, "blk.3.ffn_up.weight"));
            (void)snprintf(offset, sizeof offset, "%zu", 4096 + at);
            if (!strstr(err.text, offset))
                fail_msg("no %s in: %s", offset, err.text);
            assert_true(pack_rows(&f.src, 0, 3, f.lines, f.room, &err));
            teardown(&f);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_container_packs_to_the_definition),
        cmocka_unit_test(code_three_is_refused_by_name_and_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
