/*
 * Packing to R16 against its definition in r16_pack.h, with scratch memory of exactly the size
 * that r16_pack_scratch returns.
 */
#include "engine/layout/r16_pack.h"

#include "engine/base/memory.h"
#include "engine/base/noise.h"
#include "engine/base/size.h"
#include "tests/support/ternary_encode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define GUARD_BYTES 64
#define SCALE 0x3800 /* 0.5 in F16 */

struct fixture {
    uint8_t *codes, *file, *packed, *scratch;
    size_t scratch_bytes;
    struct ternary_source src;
    struct ternary_scales scales;
    struct group_shape shape;
};

/* The scales of the file are per block of its type. */
static void setup(struct fixture *f, enum tensor_type type, size_t n_cols, size_t n_rows)
{
    struct bn_error err;
    size_t n_bytes;
    assert_true(tensor_bytes(type, n_cols, n_rows, &n_bytes));
    *f = (struct fixture){.codes = mem_alloc(n_rows, n_cols),
                          .file = mem_alloc(n_bytes, 1),
                          .scratch_bytes = r16_pack_scratch(n_cols)};
    for (size_t i = 0; i < n_rows * n_cols; i++)
        f->codes[i] = (uint8_t)(noise_bits(n_cols, i) % 3);
    if (!ternary_encode(type, BN_I2S_A, f->codes, n_cols, n_rows, 0.5f, f->file, &err))
        fail_msg("%s", err.text);
    f->src = (struct ternary_source){.name = "blk.3.ffn_up.weight",
                                     .type = type,
                                     .bytes = f->file,
                                     .n_bytes = n_bytes,
                                     .n_cols = n_cols,
                                     .n_rows = n_rows};
    f->scales = (struct ternary_scales){.scaling = SCALE_BLOCK,
                                        .tensor_scale = 1.0f,
                                        .block_cols = tensor_geometries[type].block_cols};
    assert_true(group_shape_of(&f->src, &f->scales, &f->shape));
    f->packed = mem_alloc(f->shape.n_bytes, 1);
    f->scratch = mem_alloc(f->scratch_bytes + GUARD_BYTES, 1);
    memset(f->scratch + f->scratch_bytes, 0x5a, GUARD_BYTES);
}

static void teardown(struct fixture *f)
{
    mem_free(f->codes);
    mem_free(f->file);
    mem_free(f->packed);
    mem_free(f->scratch);
}

static unsigned packed_code(const struct fixture *f, size_t row, size_t col)
{
    const size_t line = row / R16_ROWS * f->shape.n_lines + col / R16_LINE_COLS;
    const size_t in_line = col % R16_LINE_COLS, i = in_line / 4, k = in_line % 4;
    return f->packed[line * LINE_BYTES + row % R16_ROWS * 4 + k] >> 2 * i & 3;
}

/* Compare codes and scales; those past the end are 1 and 0. */
static void check_packed(const struct fixture *f)
{
    const size_t n_rows = f->src.n_rows, n_cols = f->src.n_cols;
    for (size_t r = 0; r < f->shape.n_groups * R16_ROWS; r++) {
        for (size_t c = 0; c < f->shape.n_lines * R16_LINE_COLS; c++) {
            const bool is_inside = r < n_rows && c < n_cols;
            if (packed_code(f, r, c) != (is_inside ? f->codes[r * n_cols + c] : 1u))
                fail_msg("row %zu, column %zu of %zu x %zu differs", r, c, n_rows, n_cols);
        }
        for (size_t span = 0; span < f->shape.n_spans; span++) {
            uint16_t scale;
            const size_t at = (r / R16_ROWS * f->shape.n_spans + span) * R16_ROWS + r % R16_ROWS;
            memcpy(&scale, f->packed + f->shape.line_bytes + at * sizeof scale, sizeof scale);
            assert_int_equal(scale, r < n_rows && span * f->shape.span_cols < n_cols ? SCALE : 0);
        }
    }
}

static void packs_to_the_definition_within_its_scratch(void **state)
{
    (void)state;
    static const struct {
        enum tensor_type type;
        size_t n_cols, n_rows;
    } cases[] = {{TENSOR_Q2_0, 64, 1},    {TENSOR_Q2_0, 192, 19},   {TENSOR_Q2_0, 1024, 16},
                 {TENSOR_PQ2_0, 384, 40}, {TENSOR_PTQ1_0, 128, 17}, {TENSOR_TQ2_0, 768, 33}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture f;
        struct bn_error err;
        setup(&f, cases[i].type, cases[i].n_cols, cases[i].n_rows);
        for (size_t g = 0; g < f.shape.n_groups; g++) /* each group by its own call */
            if (!r16_pack(&f.src, &f.scales, &f.shape, g, g + 1, f.packed, f.scratch, &err))
                fail_msg("%s", err.text);
        check_packed(&f);
        for (size_t k = 0; k < GUARD_BYTES; k++)
            assert_int_equal(f.scratch[f.scratch_bytes + k], 0x5a);
        teardown(&f);
    }
}

/* Each thread that packs has scratch memory of its own. */
static void scratch_holds_the_codes_of_one_row(void **state)
{
    (void)state;
    static const size_t widths[] = {1, 128, 129, 2560, 6912};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        const size_t n_padded = size_round_up(widths[i], R16_PAD_COLS);
        const size_t scale_bytes = R16_ROWS * n_padded / 64 * sizeof(uint16_t);
        assert_int_equal(r16_pack_scratch(widths[i]), n_padded + scale_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_to_the_definition_within_its_scratch),
        cmocka_unit_test(scratch_holds_the_codes_of_one_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
