/*
 * Ternary types with a scale per row: IQ1_BN, IQ2_BN and IQ2_BN_R4. docs/formats.md has their
 * layouts.
 *
 * Rows are stored in units of 1 or 4 rows. A unit consists of the scales of its rows, followed by
 * blocks of columns. In a block of 4 rows, runs of run_bytes bytes of rows 0, 1, 2, 3, 0, 1, ...
 * alternate. A tensor can begin at any address, and rows of IQ1_BN can begin at odd offsets, so
 * scales are read with le_u16 and le_u32, which need no alignment. A row with a scale of +0 or -0
 * decodes to codes 1.
 */
#include "engine/gguf/ternary_layout.h"

#include "engine/base/fp16.h"
#include "engine/gguf/gguf_le.h"

#include <math.h>

#define MAX_BLOCK_BYTES 16 /* of one row: IQ2_BN and IQ2_BN_R4 */

/* ---- decoders of one block ---- */

/* IQ1_BN: four quarters of 16 elements. Each has 15 in three bytes of five trits and the last one
 * in byte 12. A byte is a number of five trits (base-3 digits) as a fraction of 256
 * (docs/formats.md, "TQ1_0"): times 3^n, modulo 256, drops the n most significant trits, and then
 * times 3, divided by 256, is the next one. Here the first element is the least significant
 * trit. */
bool iq1_bn_block_decode(const uint8_t *block, uint8_t *codes)
{
    static const uint8_t powers_of_3[5] = {81, 27, 9, 3, 1};
    for (size_t i = 0; i < 64; i++) {
        const size_t quarter = i / 16, in_quarter = i % 16;
        const bool is_last = in_quarter == 15;
        const uint8_t byte = block[is_last ? 12 : 3 * quarter + in_quarter / 5];
        const uint8_t q = (uint8_t)(byte * powers_of_3[is_last ? quarter : in_quarter % 5]);
        codes[i] = (uint8_t)(q * 3u >> 8);
    }
    return true;
}

/* IQ2_BN: 64 elements in 16 bytes, with the first quarter in the lowest bits. */
bool iq2_bn_block_decode(const uint8_t *block, uint8_t *codes)
{
    bool bad = false;
    for (size_t k = 0; k < 4; k++)
        bad |= ternary_decode_run(block, 16, 2 * (unsigned)k, codes + 16 * k);
    return !bad;
}

/* IQ2_BN_R4: four runs of 16 elements in 4 bytes, the first quarter of each in the lowest bits. */
bool iq2_bn_r4_block_decode(const uint8_t *block, uint8_t *codes)
{
    bool bad = false;
    for (size_t i = 0; i < 16; i++) /* quarter i % 4 of run i / 4 */
        bad |= ternary_decode_run(block + i / 4 * 4, 4, 2 * (unsigned)(i % 4), codes + 4 * i);
    return !bad;
}

/* ---- places ---- */

/* The places of the bytes of a row. */
struct row_place {
    const uint8_t *scale;
    const uint8_t *first_run; /* the first run of the first block */
    size_t run_bytes;         /* bytes of a run */
    size_t run_step;          /* bytes from a run of the row to its next one */
};

static struct row_place place_of(const struct ternary_source *src, size_t row)
{
    const struct tensor_geometry *g = &tensor_geometries[src->type];
    const size_t unit = g->row_unit == 0 ? 1 : g->row_unit, in_unit = row % unit;
    const size_t row_bytes = g->row_scale_bytes + src->n_cols / g->block_cols * g->block_bytes;
    const size_t run_bytes = ternary_layouts[src->type].run_bytes;
    const uint8_t *start = src->bytes + (row - in_unit) * row_bytes;
    return (struct row_place){
        .scale = start + in_unit * g->row_scale_bytes,
        .first_run = start + unit * g->row_scale_bytes + in_unit * run_bytes,
        .run_bytes = run_bytes,
        .run_step = unit * run_bytes,
    };
}

/* Byte i of the blocks of a row. */
static const uint8_t *byte_at(const struct row_place *p, size_t i)
{
    return p->first_run + i / p->run_bytes * p->run_step + i % p->run_bytes;
}

/* ---- scales ---- */

/* The scale as bits, 0 for a zero of either sign. */
static uint32_t scale_bits(const struct ternary_source *src, size_t row)
{
    const uint8_t *at = place_of(src, row).scale;
    const bool is_f16 = tensor_geometries[src->type].row_scale_bytes == 2;
    const uint32_t bits = is_f16 ? le_u16(at) : le_u32(at);
    return (bits & (is_f16 ? 0x7fffu : 0x7fffffffu)) == 0 ? 0 : bits;
}

static float scale_value(const struct ternary_source *src, uint32_t bits)
{
    const bool is_f16 = tensor_geometries[src->type].row_scale_bytes == 2;
    return is_f16 ? f16_to_f32((uint16_t)bits) : f32_from_bits(bits);
}

bool rows_scan(const struct ternary_source *src, struct ternary_scales *out, struct bn_error *err)
{
    struct scale_classes c = {.is_tensor = true, .is_row = true};
    for (size_t row = 0; row < src->n_rows; row++) {
        const uint32_t bits = scale_bits(src, row);
        if (!isfinite(scale_value(src, bits)))
            return bn_fail(
                err, BN_EFORMAT, "tensor '%s': the scale of row %zu, at byte %zu, is not finite",
                src->name, row, src->file_offset + (size_t)(place_of(src, row).scale - src->bytes));
        scale_classes_add(&c, 0, bits); /* a row counts as one block */
        scale_classes_end_row(&c);
    }
    /* block_cols is 0, because the result is never SCALE_BLOCK. */
    *out = scale_classes_result(&c, 0, scale_value(src, c.of_tensor));
    return true;
}

float rows_row_scale(const struct ternary_source *src, size_t row)
{
    return scale_value(src, scale_bits(src, row));
}

/* ---- codes ---- */

/* Report the first code 3 of a row, searching from byte `first` of its blocks. */
static bool bad_code(const struct ternary_source *src, const struct row_place *p, size_t first,
                     struct bn_error *err)
{
    size_t i = first;
    /* In a code 3 both bits are set. The row has one, so the loop ends. */
    while ((*byte_at(p, i) & *byte_at(p, i) >> 1 & 0x55) == 0)
        i++;
    return bn_fail(err, BN_EFORMAT,
                   "tensor '%s': the byte at %zu holds code 3, which no ternary weight has",
                   src->name, src->file_offset + (size_t)(byte_at(p, i) - src->bytes));
}

static bool decode_row(const struct ternary_source *src, size_t row, uint8_t *codes,
                       struct bn_error *err)
{
    const struct tensor_geometry *g = &tensor_geometries[src->type];
    const struct row_place p = place_of(src, row);
    const size_t n_bytes = src->n_cols / g->block_cols * g->block_bytes;
    for (size_t at = 0; at < n_bytes; at += g->block_bytes, codes += g->block_cols) {
        uint8_t block[MAX_BLOCK_BYTES];
        for (size_t i = 0; i < g->block_bytes; i += p.run_bytes)
            memcpy(block + i, byte_at(&p, at + i), p.run_bytes);
        if (!ternary_layouts[src->type].decode_block(block, codes))
            return bad_code(src, &p, at, err);
    }
    return true;
}

bool rows_decode(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                 struct bn_error *err)
{
    for (size_t row = row0; row < row1; row++, codes += src->n_cols) {
        if (scale_bits(src, row) == 0)
            memset(codes, 1, src->n_cols);
        else if (!decode_row(src, row, codes, err))
            return false;
    }
    return true;
}
