/*
 * Every ternary layout against known bytes, and round trips with unusual shapes.
 *
 * The codes of the known bytes come from a generator: x = 1; x = (x * 1103515245 + 12345) mod 2^31,
 * code = (x >> 16) mod 3; the scale is 0.5. The TQ bytes come from the original quantiser of these
 * types, all others from their published description.
 */
#include "engine/gguf/ternary_codec.h"

#include "engine/base/fp16.h"
#include "engine/base/memory.h"
#include "tests/support/le_put.h"
#include "tests/support/ternary_encode.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void known_codes(uint8_t codes[256])
{
    uint32_t x = 1;
    for (size_t j = 0; j < 256; j++) {
        x = (x * 1103515245u + 12345u) & 0x7fffffff;
        codes[j] = (uint8_t)((x >> 16) % 3);
    }
}

struct vector {
    enum tensor_type type;
    enum bn_i2s_layout layout;
    size_t n_cols, n_rows;
    const char *hex; /* without the tail of I2_S */
};

static const struct vector vectors[] = {
    {TENSOR_TQ1_0, BN_I2S_A, 256, 1,
     "f47341a786d30a0c4e4166b42e47bae454050a3fd59db829073755dc7ac8d6bc"
     "f62a4392aa96c367e9902a429cab5975bbcb1a170038"},
    {TENSOR_TQ2_0, BN_I2S_A, 256, 1,
     "9a05886925161010288891829458520aa84010485659521480a4a82685065692"
     "98111106a546a8568a45108255090604a995081a296a10225809"
     "96a9994092550038"},
    {TENSOR_Q2_0, BN_I2S_A, 64, 1, "0038460990a0002680a9a6050a8982496415"},
    {TENSOR_Q2_0_G128, BN_I2S_A, 128, 1,
     "0038460990a0002680a9a6050a8982496415815612151255a8506200a81646152a92"},
    {TENSOR_PQ2_0, BN_I2S_A, 128, 1,
     "0038460990a0002680a9a6050a8982496415815612151255a8506200a81646152a92"},
    {TENSOR_PTQ1_0, BN_I2S_A, 128, 1, "c65f13719dd83a0516175de72b51e8f7c041a84a5d5a7672fab10038"},
    {TENSOR_IQ1_BN, BN_I2S_A, 64, 1, "00387803b3ab08f4a7e5439161811c"},
    {TENSOR_IQ2_BN, BN_I2S_A, 64, 1, "0000003fa21120a1599608402060814a54684a2a"},
    {TENSOR_IQ2_BN_R4, BN_I2S_A, 64, 4,
     "0000003f0000003f0000003f0000003f"
     "060990a1694454066459812a49011904488488a0062465644519a05a5a095469"
     "66a5028282606221669448456a14082446586016a6256481aa2912629246a060"},
    {TENSOR_I2_S, BN_I2S_A, 128, 2,
     "a65022695894040428224682162585a02a01042195658514021a2a9852909586"
     "264444905a912a95a2510482556090106a5620a468a904882560966a66018655"},
    {TENSOR_I2_S, BN_I2S_B, 128, 2,
     "8a44084a65962001080942a11529a1a86a01188591515150822a6a284a445512"
     "1a5142a656a608a48a5621925648a4156a524010a82598641904522a56011211"},
    {TENSOR_I2_S, BN_I2S_C, 64, 4,
     "9145056866981219280451881514988026051009965a911a012429a645809995"
     "aa40a09446450a058aa5202265981484aa160898589910402968a64a6a415225"},
};

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    for (unsigned byte; sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
        out[n] = (uint8_t)byte;
    return n;
}

static struct ternary_source source_of(enum tensor_type type, enum bn_i2s_layout layout,
                                       const uint8_t *bytes, size_t n_cols, size_t n_rows)
{
    struct ternary_source s = {.name = "t",
                               .type = type,
                               .layout = layout,
                               .bytes = bytes,
                               .file_offset = 1000,
                               .n_cols = n_cols,
                               .n_rows = n_rows};
    assert_true(tensor_bytes(type, n_cols, n_rows, &s.n_bytes));
    return s;
}

static void known_bytes_decode_and_encode(void **state)
{
    (void)state;
    uint8_t codes[256], bytes[128], decoded[256], encoded[128];
    struct bn_error err;
    known_codes(codes);
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        const struct vector *v = &vectors[i];
        memset(bytes, 0, sizeof(bytes));
        const size_t n_bytes = from_hex(v->hex, bytes);
        if (v->type == TENSOR_I2_S)
            le_put_u32(bytes + n_bytes, 0x3f000000); /* 0.5 */
        const struct ternary_source s = source_of(v->type, v->layout, bytes, v->n_cols, v->n_rows);
        struct ternary_scales scales;
        assert_true(ternary_scan(&s, &scales, &err));
        assert_true(scales.scaling == SCALE_TENSOR && scales.tensor_scale == 0.5f);
        assert_true(ternary_decode(&s, 0, v->n_rows, decoded, &err));
        assert_memory_equal(decoded, codes, v->n_cols * v->n_rows);
        assert_true(
            ternary_encode(v->type, v->layout, codes, v->n_cols, v->n_rows, 0.5f, encoded, &err));
        assert_memory_equal(encoded, bytes, s.n_bytes);
    }
}

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

/* Codes that the type can hold: Q1_0 has no code 1. */
static uint8_t *codes_of(enum tensor_type type, size_t n)
{
    uint8_t *codes = some_codes(n);
    for (size_t i = 0; type == TENSOR_Q1_0 && i < n; i++)
        codes[i] = codes[i] == 1 ? (uint8_t)(i % 5 < 2 ? 0 : 2) : codes[i];
    return codes;
}

static void round_trip(enum tensor_type type, enum bn_i2s_layout layout, size_t n_cols,
                       size_t n_rows)
{
    struct bn_error err;
    size_t n_bytes = 0;
    assert_true(tensor_bytes(type, n_cols, n_rows, &n_bytes));
    uint8_t *codes = codes_of(type, n_cols * n_rows), *bytes = mem_alloc(n_bytes, 1);
    uint8_t *decoded = mem_alloc(n_cols * n_rows, 1);
    assert_true(ternary_encode(type, layout, codes, n_cols, n_rows, 0.25f, bytes, &err));
    const struct ternary_source s = source_of(type, layout, bytes, n_cols, n_rows);
    struct ternary_scales scales;
    assert_true(ternary_scan(&s, &scales, &err));
    assert_true(scales.scaling == SCALE_TENSOR && scales.tensor_scale == 0.25f);
    assert_true(ternary_decode(&s, 0, n_rows, decoded, &err));
    assert_memory_equal(decoded, codes, n_cols * n_rows);
    /* every range of rows on its own */
    for (size_t row0 = 0; row0 < n_rows; row0 += 3) {
        const size_t row1 = row0 + 2 < n_rows ? row0 + 2 : n_rows;
        memset(decoded, 9, n_cols * n_rows);
        assert_true(ternary_decode(&s, row0, row1, decoded, &err));
        assert_memory_equal(decoded, codes + row0 * n_cols, (row1 - row0) * n_cols);
    }
    mem_free(decoded);
    mem_free(bytes);
    mem_free(codes);
}

/* Rows are not a multiple of a block, so blocks cross row ends in layouts A and B. */
static void layouts_hold_unusual_shapes(void **state)
{
    (void)state;
    round_trip(TENSOR_I2_S, BN_I2S_A, 640, 400);
    round_trip(TENSOR_I2_S, BN_I2S_A, 400, 640);
    round_trip(TENSOR_I2_S, BN_I2S_A, 100, 32);
    round_trip(TENSOR_I2_S, BN_I2S_A, 1, 128);
    round_trip(TENSOR_I2_S, BN_I2S_B, 100, 16);
    round_trip(TENSOR_I2_S, BN_I2S_B, 64, 1);
    round_trip(TENSOR_I2_S, BN_I2S_C, 100, 8);
    round_trip(TENSOR_I2_S, BN_I2S_C, 1, 4);
    round_trip(TENSOR_TQ1_0, BN_I2S_A, 512, 7);
    round_trip(TENSOR_TQ2_0, BN_I2S_A, 512, 7);
    round_trip(TENSOR_Q2_0, BN_I2S_A, 192, 7);
    round_trip(TENSOR_Q2_0_G128, BN_I2S_A, 384, 7);
    round_trip(TENSOR_PQ2_0, BN_I2S_A, 384, 7);
    round_trip(TENSOR_PTQ1_0, BN_I2S_A, 384, 7);
    round_trip(TENSOR_Q1_0, BN_I2S_A, 384, 7);
    round_trip(TENSOR_IQ1_BN, BN_I2S_A, 192, 7);
    round_trip(TENSOR_IQ2_BN, BN_I2S_A, 192, 7);
    round_trip(TENSOR_IQ2_BN_R4, BN_I2S_A, 192, 12);
}

static void shapes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct {
        enum tensor_type type;
        enum bn_i2s_layout layout;
        size_t n_cols, n_rows;
    } cases[] = {{TENSOR_I2_S, BN_I2S_A, 64, 3},     {TENSOR_I2_S, BN_I2S_B, 32, 3},
                 {TENSOR_I2_S, BN_I2S_C, 64, 3},     {TENSOR_TQ1_0, BN_I2S_A, 128, 2},
                 {TENSOR_TQ2_0, BN_I2S_A, 128, 2},   {TENSOR_Q8_0, BN_I2S_A, 128, 2},
                 {TENSOR_Q2_0, BN_I2S_A, 96, 2},     {TENSOR_Q2_0_G128, BN_I2S_A, 64, 2},
                 {TENSOR_PQ2_0, BN_I2S_A, 64, 2},    {TENSOR_PTQ1_0, BN_I2S_A, 64, 2},
                 {TENSOR_Q1_0, BN_I2S_A, 64, 2},     {TENSOR_IQ1_BN, BN_I2S_A, 96, 2},
                 {TENSOR_IQ2_BN, BN_I2S_A, 96, 2},   {TENSOR_IQ2_BN_R4, BN_I2S_A, 96, 4},
                 {TENSOR_IQ2_BN_R4, BN_I2S_A, 64, 3}};
    uint8_t codes[384] = {0}, out[256];
    struct bn_error err;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct ternary_source s = {.name = "t",
                                         .type = cases[i].type,
                                         .layout = cases[i].layout,
                                         .bytes = out,
                                         .n_bytes = sizeof(out),
                                         .n_cols = cases[i].n_cols,
                                         .n_rows = cases[i].n_rows};
        assert_false(ternary_encode(cases[i].type, cases[i].layout, codes, cases[i].n_cols,
                                    cases[i].n_rows, 1.0f, out, &err));
        assert_int_equal(err.code, BN_EARG);
        assert_false(ternary_check(&s, &err));
        assert_non_null(strstr(err.text, "'t'"));
    }
}

static void too_few_bytes_are_refused(void **state)
{
    (void)state;
    static const enum tensor_type types[] = {
        TENSOR_I2_S,   TENSOR_TQ1_0,  TENSOR_TQ2_0,    TENSOR_Q2_0, TENSOR_Q2_0_G128,
        TENSOR_PQ2_0,  TENSOR_PTQ1_0, TENSOR_F16,      TENSOR_F32,  TENSOR_Q1_0,
        TENSOR_IQ1_BN, TENSOR_IQ2_BN, TENSOR_IQ2_BN_R4};
    uint8_t bytes[4096] = {0}, codes[1024];
    struct bn_error err;
    struct ternary_scales scales;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct ternary_source s = source_of(types[i], BN_I2S_A, bytes, 256, 4);
        assert_true(ternary_scan(&s, &scales, &err));
        s.n_bytes--;
        assert_false(ternary_scan(&s, &scales, &err));
        assert_int_equal(err.code, BN_EFORMAT);
        assert_false(ternary_decode(&s, 0, 1, codes, &err));
    }
}

static void code_3_is_refused_with_its_offset(void **state)
{
    (void)state;
    uint8_t bytes[256] = {0}, codes[512];
    struct bn_error err;
    for (enum bn_i2s_layout layout = BN_I2S_A; layout <= BN_I2S_C; layout++) {
        const struct ternary_source s = source_of(TENSOR_I2_S, layout, bytes, 128, 4);
        bytes[37] = 0x0c; /* one of four codes is 3 */
        assert_false(ternary_decode(&s, 0, 4, codes, &err));
        assert_int_equal(err.code, BN_EFORMAT);
        assert_non_null(strstr(err.text, "tensor 't'"));
        assert_non_null(strstr(err.text, "1037")); /* file_offset 1000 + byte 37 */
        bytes[37] = 0;
        assert_true(ternary_decode(&s, 0, 4, codes, &err));
    }
    const struct ternary_source tq2 = source_of(TENSOR_TQ2_0, BN_I2S_A, bytes, 256, 1);
    le_put_u16(bytes + 64, 0x3800);
    bytes[40] = 0x30;
    assert_false(ternary_decode(&tq2, 0, 1, codes, &err));
    assert_non_null(strstr(err.text, "1040"));
    le_put_u16(bytes + 64, 0); /* a block with scale 0 decodes to zeros */
    assert_true(ternary_decode(&tq2, 0, 1, codes, &err));
    for (size_t i = 0; i < 256; i++)
        assert_int_equal(codes[i], 1);
}

/* The types with blocks, and blocks of 4 rows of 512 columns. */
static const enum tensor_type block_types[] = {TENSOR_TQ1_0, TENSOR_TQ2_0,     TENSOR_Q2_0,
                                               TENSOR_PQ2_0, TENSOR_Q2_0_G128, TENSOR_PTQ1_0,
                                               TENSOR_Q1_0};
#define N_BLOCK_TYPES (sizeof(block_types) / sizeof(block_types[0]))
#define COLS 512
#define ROWS 4

struct blocks {
    struct ternary_source s;
    uint8_t *codes; /* (ROWS, COLS) */
    uint8_t bytes[COLS * ROWS];
    size_t row_blocks;
};

static void blocks_init(struct blocks *b, enum tensor_type type)
{
    struct bn_error err;
    b->codes = codes_of(type, COLS * ROWS);
    b->row_blocks = COLS / tensor_geometries[type].block_cols;
    b->s = source_of(type, BN_I2S_A, b->bytes, COLS, ROWS);
    assert_true(ternary_encode(type, BN_I2S_A, b->codes, COLS, ROWS, 0.5f, b->bytes, &err));
}

static void put_scale(struct blocks *b, size_t row, size_t block, uint16_t scale)
{
    ternary_put_scale(b->s.type, b->bytes, row * b->row_blocks + block, scale);
}

static struct ternary_scales scan(const struct blocks *b)
{
    struct ternary_scales scales;
    struct bn_error err;
    assert_true(ternary_scan(&b->s, &scales, &err));
    return scales;
}

/* Every block has a scale of its own in `scales`, 0 for a block of zeros. */
static void check_rows(const struct blocks *b, const float *scales, size_t block_cols)
{
    float values[COLS];
    struct bn_error err;
    assert_true(ternary_verify(&b->s, &err));
    for (size_t row = 0; row < ROWS; row++) {
        ternary_row_decode(&b->s, row, values);
        for (size_t c = 0; c < COLS; c++) {
            const float scale = scales[(row * COLS + c) / block_cols];
            assert_true(values[c] == (float)(b->codes[row * COLS + c] - 1) * scale);
        }
    }
}

static void equal_scales_are_one_scale(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_BLOCK_TYPES; i++) {
        struct blocks b;
        blocks_init(&b, block_types[i]);
        put_scale(&b, 0, 0, 0x8000); /* zeros of both signs fit */
        put_scale(&b, 2, 1, 0);
        const struct ternary_scales s = scan(&b);
        assert_true(s.scaling == SCALE_TENSOR && s.tensor_scale == 0.5f && s.block_cols == 0);
        for (size_t k = 0; k < ROWS * b.row_blocks; k++)
            ternary_put_scale(b.s.type, b.bytes, k, 0);
        assert_true(scan(&b).scaling == SCALE_TENSOR && scan(&b).tensor_scale == 0.0f);
        mem_free(b.codes);
    }
}

static void scales_that_are_equal_in_rows_are_found(void **state)
{
    (void)state;
    static const float expected[ROWS] = {0.5f, -0.25f, 0.0f, 3.0f};
    for (size_t i = 0; i < N_BLOCK_TYPES; i++) {
        struct blocks b;
        float scales[ROWS], all[ROWS * COLS];
        blocks_init(&b, block_types[i]);
        for (size_t k = 0; k < ROWS * b.row_blocks; k++) {
            all[k] = expected[k / b.row_blocks];
            ternary_put_scale(b.s.type, b.bytes, k, f32_to_f16(all[k]));
        }
        put_scale(&b, 3, 0, 0x8000);
        all[3 * b.row_blocks] = 0.0f;
        const struct ternary_scales s = scan(&b);
        assert_true(s.scaling == SCALE_ROW && s.tensor_scale == 1.0f && s.block_cols == 0);
        ternary_row_scales(&b.s, 0, ROWS, scales);
        assert_memory_equal(scales, expected, sizeof(scales));
        ternary_row_scales(&b.s, 1, 2, scales);
        assert_true(scales[0] == -0.25f);
        check_rows(&b, all, tensor_geometries[b.s.type].block_cols);
        mem_free(b.codes);
    }
}

static void differing_scales_keep_their_blocks(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_BLOCK_TYPES; i++) {
        struct blocks b;
        struct bn_error err;
        uint16_t bits[ROWS * COLS / 64], expected[ROWS * COLS / 64];
        float all[ROWS * COLS / 64];
        blocks_init(&b, block_types[i]);
        const size_t n = ROWS * b.row_blocks;
        for (size_t k = 0; k < n; k++) {
            expected[k] = k == 1 ? 0 : (uint16_t)(0x3800 + k);
            all[k] = f16_to_f32(expected[k]);
            ternary_put_scale(b.s.type, b.bytes, k, k == 1 ? 0x8000 : expected[k]);
        }
        const struct ternary_scales s = scan(&b);
        assert_true(s.scaling == SCALE_BLOCK && s.tensor_scale == 1.0f);
        assert_int_equal(s.block_cols, tensor_geometries[b.s.type].block_cols);
        assert_int_equal(ternary_row_blocks(&b.s, &s), b.row_blocks);
        assert_true(ternary_block_scales(&b.s, &s, 0, ROWS, bits, &err));
        assert_memory_equal(bits, expected, n * sizeof(bits[0]));
        assert_true(ternary_block_scales(&b.s, &s, 2, 3, bits, &err));
        assert_memory_equal(bits, expected + 2 * b.row_blocks, b.row_blocks * sizeof(bits[0]));
        check_rows(&b, all, s.block_cols);
        mem_free(b.codes);
    }
}

static void scales_of_64_that_are_equal_in_pairs_are_merged(void **state)
{
    (void)state;
    struct blocks b;
    struct bn_error err;
    uint16_t bits[ROWS * 4];
    blocks_init(&b, TENSOR_Q2_0);
    for (size_t k = 0; k < ROWS * 8; k++)
        ternary_put_scale(b.s.type, b.bytes, k, (uint16_t)(0x3800 + k / 2));
    put_scale(&b, 0, 2, 0);      /* a block of zeros fits its neighbour */
    put_scale(&b, 1, 1, 0x8000); /* also as the second of a pair */
    put_scale(&b, 3, 6, 0);
    put_scale(&b, 3, 7, 0x8000);
    struct ternary_scales s = scan(&b);
    assert_true(s.scaling == SCALE_BLOCK && s.block_cols == 128);
    assert_int_equal(ternary_row_blocks(&b.s, &s), 4);
    assert_true(ternary_block_scales(&b.s, &s, 0, ROWS, bits, &err));
    for (size_t k = 0; k < ROWS * 4; k++)
        assert_int_equal(bits[k], k == 15 ? 0 : 0x3800 + k);
    put_scale(&b, 3, 5, 0x3801); /* one pair in the last row differs */
    assert_int_equal(scan(&b).block_cols, 64);
    mem_free(b.codes);
}

/* Only blocks of 64 are merged: nothing is gained from larger ones. */
static void larger_blocks_are_not_merged(void **state)
{
    (void)state;
    static const enum tensor_type types[] = {TENSOR_PQ2_0, TENSOR_Q2_0_G128, TENSOR_PTQ1_0};
    for (size_t i = 0; i < 3; i++) {
        struct blocks b;
        blocks_init(&b, types[i]);
        for (size_t k = 0; k < ROWS * 4; k++)
            ternary_put_scale(b.s.type, b.bytes, k, (uint16_t)(0x3800 + k / 2));
        assert_int_equal(scan(&b).block_cols, 128);
        mem_free(b.codes);
    }
}

/* Rows of an odd number of blocks: the last block of a row has no partner. */
static void odd_rows_of_64_are_merged(void **state)
{
    (void)state;
    uint8_t *codes = some_codes(192 * 3), bytes[3 * 3 * 18];
    uint16_t bits[6];
    struct bn_error err;
    struct ternary_scales scales;
    const struct ternary_source s = source_of(TENSOR_Q2_0, BN_I2S_A, bytes, 192, 3);
    assert_true(ternary_encode(TENSOR_Q2_0, BN_I2S_A, codes, 192, 3, 0.5f, bytes, &err));
    for (size_t row = 0; row < 3; row++)
        ternary_put_scale(TENSOR_Q2_0, bytes, 3 * row + 2, (uint16_t)(0x3c00 + row));
    assert_true(ternary_scan(&s, &scales, &err));
    assert_true(scales.scaling == SCALE_BLOCK && scales.block_cols == 128);
    assert_int_equal(ternary_row_blocks(&s, &scales), 2);
    assert_true(ternary_block_scales(&s, &scales, 0, 3, bits, &err));
    for (size_t k = 0; k < 6; k++)
        assert_int_equal(bits[k], k % 2 == 0 ? 0x3800 : 0x3c00 + k / 2);
    mem_free(codes);
}

static void block_scales_must_be_numbers(void **state)
{
    (void)state;
    static const uint16_t not_numbers[] = {0x7c00, 0xfc00, 0x7e00};
    for (size_t i = 0; i < N_BLOCK_TYPES; i++) {
        struct blocks b;
        struct bn_error err;
        struct ternary_scales s;
        uint16_t bits[COLS / 64 * ROWS];
        char place[64];
        const enum tensor_type type = block_types[i];
        const size_t block_bytes = tensor_geometries[type].block_bytes;
        blocks_init(&b, type);
        const size_t last = ROWS * b.row_blocks - 1;
        const bool at_start = block_bytes == 18 || block_bytes == 34;
        (void)snprintf(place, sizeof(place), "block %zu, at byte %zu,", last,
                       1000 + last * block_bytes + (at_start ? 0 : block_bytes - 2));
        for (size_t k = 0; k < 3; k++) {
            ternary_put_scale(type, b.bytes, last, not_numbers[k]);
            assert_false(ternary_scan(&b.s, &s, &err));
            assert_int_equal(err.code, BN_EFORMAT);
            assert_non_null(strstr(err.text, "tensor 't'"));
            assert_non_null(strstr(err.text, place));
            assert_false(ternary_verify(&b.s, &err));
            assert_non_null(strstr(err.text, place));
        }
        /* The class can be known before this scale is read. */
        for (size_t k = 0; k < last; k++)
            ternary_put_scale(type, b.bytes, k, (uint16_t)(0x3800 + k));
        assert_true(ternary_scan(&b.s, &s, &err));
        assert_int_equal(s.scaling, SCALE_BLOCK);
        assert_true(ternary_block_scales(&b.s, &s, 0, ROWS - 1, bits, &err));
        assert_false(ternary_block_scales(&b.s, &s, ROWS - 1, ROWS, bits, &err));
        assert_non_null(strstr(err.text, place));
        mem_free(b.codes);
    }
}

static void code_3_of_a_block_is_refused(void **state)
{
    (void)state;
    static const enum tensor_type types[] = {TENSOR_TQ2_0, TENSOR_Q2_0, TENSOR_Q2_0_G128,
                                             TENSOR_PQ2_0};
    for (size_t i = 0; i < 4; i++) {
        struct blocks b;
        struct bn_error err;
        uint8_t codes[COLS];
        char place[32];
        blocks_init(&b, types[i]);
        /* The first, the last and another byte with codes of the last block. */
        const size_t at = (ROWS * b.row_blocks - 1) * tensor_geometries[types[i]].block_bytes;
        const size_t first = types[i] == TENSOR_TQ2_0 ? 0 : 2;
        const size_t n_code_bytes = tensor_geometries[types[i]].block_bytes - 2;
        for (size_t k = 0; k < 3; k++) {
            uint8_t *byte = b.bytes + at + first + k * (n_code_bytes - 1) / 2;
            const uint8_t before = *byte;
            *byte = (uint8_t)(before | 3 << 2 * k);
            (void)snprintf(place, sizeof(place), "byte at %zu ", (size_t)(byte - b.bytes) + 1000);
            assert_false(ternary_decode(&b.s, ROWS - 1, ROWS, codes, &err));
            assert_int_equal(err.code, BN_EFORMAT);
            assert_non_null(strstr(err.text, "tensor 't'"));
            assert_non_null(strstr(err.text, place));
            assert_false(ternary_verify(&b.s, &err));
            assert_non_null(strstr(err.text, place));
            assert_true(ternary_decode(&b.s, 0, 1, codes, &err));
            *byte = before;
        }
        b.bytes[at + first] = 0xff;
        put_scale(&b, ROWS - 1, b.row_blocks - 1, 0x8000); /* codes of scale 0 do not count */
        assert_true(ternary_verify(&b.s, &err));
        assert_true(ternary_decode(&b.s, ROWS - 1, ROWS, codes, &err));
        assert_int_equal(codes[COLS - 1], 1);
        mem_free(b.codes);
    }
}

/* A type with a row in the table of geometries but without a codec must not be decoded as another
 * one. */
static void a_type_without_codec_is_refused(void **state)
{
    (void)state;
    uint8_t bytes[4096] = {0}, codes[1024];
    struct bn_error err;
    for (enum tensor_type t = TENSOR_F32; t < TENSOR_N_TYPES; t++) {
        const struct ternary_source s = {
            .name = "t", .type = t, .bytes = bytes, .n_bytes = 4096, .n_cols = 256, .n_rows = 4};
        struct ternary_scales scales;
        const bool is_linear = tensor_is_linear(t);
        assert_int_equal(ternary_decode(&s, 0, 4, codes, &err), is_linear);
        assert_int_equal(ternary_scan(&s, &scales, &err), is_linear);
        if (!is_linear)
            assert_int_equal(err.code, BN_EUNSUPPORTED);
    }
}

static void i2s_scale_must_be_a_number(void **state)
{
    (void)state;
    uint8_t bytes[96] = {0};
    struct bn_error err;
    struct ternary_scales scales;
    const struct ternary_source s = source_of(TENSOR_I2_S, BN_I2S_A, bytes, 128, 2);
    le_put_u32(bytes + 64, f32_bits(-2.5f));
    memset(bytes + 68, 0xff, 28); /* unused bytes */
    assert_true(ternary_scan(&s, &scales, &err));
    assert_true(scales.scaling == SCALE_TENSOR && scales.tensor_scale == -2.5f);
    le_put_u32(bytes + 64, 0x7fc00000);
    assert_false(ternary_scan(&s, &scales, &err));
    assert_int_equal(err.code, BN_EFORMAT);
    assert_non_null(strstr(err.text, "1064"));
}

static void put_float(enum tensor_type type, uint8_t *at, float v)
{
    if (type == TENSOR_F32)
        le_put_u32(at, f32_bits(v));
    else if (type == TENSOR_F16)
        le_put_u16(at, f32_to_f16(v));
    else
        le_put_u16(at, (uint16_t)(f32_bits(v) >> 16));
}

static void floats_of_one_magnitude_are_ternary(void **state)
{
    (void)state;
    static const enum tensor_type types[] = {TENSOR_F32, TENSOR_F16, TENSOR_BF16};
    uint8_t bytes[6000 * 4] = {0}, decoded[6000], *codes = some_codes(6000);
    struct bn_error err;
    for (size_t i = 0; i < 3; i++) {
        const struct ternary_source s = source_of(types[i], BN_I2S_A, bytes, 60, 100);
        const size_t unit = tensor_geometries[types[i]].block_bytes;
        struct ternary_scales scales;
        memset(bytes, 0, sizeof(bytes));
        assert_true(ternary_scan(&s, &scales, &err));
        assert_true(scales.scaling == SCALE_TENSOR && scales.tensor_scale == 0.0f);
        for (size_t k = 0; k < 6000; k++)
            put_float(types[i], bytes + k * unit,
                      k % 7 == 3 && codes[k] == 1 ? -0.0f : (float)(codes[k] - 1) * 0.375f);
        assert_true(ternary_scan(&s, &scales, &err));
        assert_true(scales.scaling == SCALE_TENSOR && scales.tensor_scale == 0.375f);
        assert_true(ternary_decode(&s, 0, 100, decoded, &err));
        assert_memory_equal(decoded, codes, 6000);
        put_float(types[i], bytes + 5999 * unit, 0.5f); /* only the last element differs */
        assert_false(ternary_scan(&s, &scales, &err));
        assert_int_equal(err.code, BN_EUNSUPPORTED);
        assert_non_null(strstr(err.text, "element 5999 (row 99) is 0.5"));
        put_float(types[i], bytes + 5999 * unit, INFINITY);
        assert_false(ternary_scan(&s, &scales, &err));
        assert_int_equal(err.code, BN_EFORMAT);
    }
    mem_free(codes);
}

/* Floats with the magnitudes of `scales`, one per 64 columns of 3 rows of `cols` columns. */
static void put_blocks(enum tensor_type type, uint8_t *bytes, const uint8_t *codes,
                       const float *scales, size_t cols)
{
    const size_t unit = tensor_geometries[type].block_bytes, row_blocks = (cols + 63) / 64;
    for (size_t i = 0; i < 3 * cols; i++)
        put_float(type, bytes + i * unit,
                  (float)(codes[i] - 1) * scales[i / cols * row_blocks + i % cols / 64]);
}

static void floats_have_the_classes_of_blocks(void **state)
{
    (void)state;
    static const enum tensor_type types[] = {TENSOR_F32, TENSOR_F16, TENSOR_BF16};
    static const struct {
        enum ternary_scaling scaling;
        size_t block_cols;
        float scales[12]; /* 4 for each row of 200 columns; the last block has 8 */
    } cases[] = {
        {SCALE_TENSOR, 0, {2, 2, 2, 2, 0, 0, 0, 0, 2, 0, 2, 2}},
        {SCALE_ROW, 0, {2, 2, 2, 0, 0, 0, 0, 0, 3, 3, 0, 3}},
        {SCALE_BLOCK, 128, {2, 2, 3, 3, 0, 4, 5, 0, 3, 3, 0, 0}},
        {SCALE_BLOCK, 64, {2, 2, 3, 3, 0, 4, 5, 0, 3, 3, 1, 7}},
    };
    uint8_t bytes[600 * 4], decoded[600], *codes = some_codes(600);
    for (size_t i = 0; i < 12; i++) {
        struct bn_error err;
        const size_t c = i / 3;
        const struct ternary_source s = source_of(types[i % 3], BN_I2S_A, bytes, 200, 3);
        struct ternary_scales scales;
        uint16_t bits[12];
        float rows[3];
        put_blocks(types[i % 3], bytes, codes, cases[c].scales, 200);
        assert_true(ternary_scan(&s, &scales, &err));
        assert_int_equal(scales.scaling, cases[c].scaling);
        assert_int_equal(scales.block_cols, cases[c].block_cols);
        assert_true(scales.tensor_scale == (c == 0 ? 2.0f : 1.0f));
        assert_true(ternary_decode(&s, 0, 3, decoded, &err));
        for (size_t k = 0; k < 600; k++)
            assert_int_equal(decoded[k],
                             cases[c].scales[k / 200 * 4 + k % 200 / 64] == 0.0f ? 1 : codes[k]);
        if (scales.scaling == SCALE_ROW) {
            ternary_row_scales(&s, 0, 3, rows);
            assert_true(rows[0] == 2.0f && rows[1] == 0.0f && rows[2] == 3.0f);
        } else if (scales.scaling == SCALE_BLOCK) {
            const size_t n = ternary_row_blocks(&s, &scales), per = scales.block_cols / 64;
            assert_int_equal(n, 4 / per);
            assert_true(ternary_block_scales(&s, &scales, 0, 3, bits, &err));
            for (size_t k = 0; k < 3 * n; k++) {
                const float *pair = cases[c].scales + k * per;
                assert_true(f16_to_f32(bits[k]) == fmaxf(pair[0], pair[per - 1]));
            }
        }
    }
    mem_free(codes);
}

/* A scale per row is a float; a scale per block is 16 bits wide. */
static void block_magnitudes_that_f16_cannot_hold_are_refused(void **state)
{
    (void)state;
    const float fine = 1.0f + 0x1p-12f, scales[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, fine, 1, 1};
    const float rows[12] = {1, 1, 1, 1, 1, 1, 1, 1, fine, fine, fine, fine};
    uint8_t bytes[600 * 4], *codes = some_codes(600);
    struct ternary_scales s;
    struct bn_error err;
    float values[3];
    const struct ternary_source src = source_of(TENSOR_F32, BN_I2S_A, bytes, 200, 3);
    put_blocks(TENSOR_F32, bytes, codes, rows, 200);
    assert_true(ternary_scan(&src, &s, &err));
    assert_int_equal(s.scaling, SCALE_ROW);
    ternary_row_scales(&src, 0, 3, values);
    assert_true(values[2] == fine);
    put_blocks(TENSOR_F32, bytes, codes, scales, 200);
    assert_false(ternary_scan(&src, &s, &err));
    assert_int_equal(err.code, BN_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "cannot be stored as F16"));
    mem_free(codes);
}

static void every_byte_of_tq1_decodes_to_trits(void **state)
{
    (void)state;
    uint8_t bytes[54], codes[256];
    struct bn_error err;
    for (unsigned b = 0; b < 256; b++) {
        memset(bytes, (int)b, sizeof(bytes));
        le_put_u16(bytes + 52, 0x3c00);
        const struct ternary_source s = source_of(TENSOR_TQ1_0, BN_I2S_A, bytes, 256, 1);
        assert_true(ternary_decode(&s, 0, 1, codes, &err));
        for (size_t i = 0; i < 256; i++)
            assert_true(codes[i] <= 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_bytes_decode_and_encode),
        cmocka_unit_test(layouts_hold_unusual_shapes),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused),
        cmocka_unit_test(too_few_bytes_are_refused),
        cmocka_unit_test(code_3_is_refused_with_its_offset),
        cmocka_unit_test(equal_scales_are_one_scale),
        cmocka_unit_test(scales_that_are_equal_in_rows_are_found),
        cmocka_unit_test(differing_scales_keep_their_blocks),
        cmocka_unit_test(scales_of_64_that_are_equal_in_pairs_are_merged),
        cmocka_unit_test(larger_blocks_are_not_merged),
        cmocka_unit_test(odd_rows_of_64_are_merged),
        cmocka_unit_test(block_scales_must_be_numbers),
        cmocka_unit_test(code_3_of_a_block_is_refused),
        cmocka_unit_test(a_type_without_codec_is_refused),
        cmocka_unit_test(i2s_scale_must_be_a_number),
        cmocka_unit_test(floats_of_one_magnitude_are_ternary),
        cmocka_unit_test(floats_have_the_classes_of_blocks),
        cmocka_unit_test(block_magnitudes_that_f16_cannot_hold_are_refused),
        cmocka_unit_test(every_byte_of_tq1_decodes_to_trits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
