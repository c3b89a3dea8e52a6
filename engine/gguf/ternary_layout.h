/*
 * The parts of the codec of a ternary type. Private to the codec: ternary_codec.c has the table and
 * I2_S, ternary_blocks.c the types with a scale per block, ternary_rows.c those with a scale per
 * row, ternary_floats.c the float types.
 */
#ifndef ENGINE_GGUF_TERNARY_LAYOUT_H
#define ENGINE_GGUF_TERNARY_LAYOUT_H

#include "engine/gguf/ternary_codec.h"

struct ternary_layout {
    /* As ternary_scan and ternary_decode, after their checks. NULL: not a type with
     * tensor_is_linear. */
    bool (*scan)(const struct ternary_source *src, struct ternary_scales *out,
                 struct bn_error *err);
    bool (*decode)(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                   struct bn_error *err);
    /* One row of ternary_block_scales, and one of ternary_row_scales. NULL if the type never has
     * this class of scales. */
    bool (*block_scales)(const struct ternary_source *src, size_t block_cols, size_t row,
                         uint16_t *out, struct bn_error *err);
    float (*row_scale)(const struct ternary_source *src, size_t row);
    /* Only for types with blocks along a row: decode one block to (block_cols) codes. False if a
     * code is 3. */
    bool (*decode_block)(const uint8_t *block, uint8_t *codes);
    bool has_2_bits; /* codes have 2 bits and can be 3; else base-3 digits, 1 bit (Q1_0), floats */
    size_t scale_at; /* for a scale per block: its offset, the first or last two bytes of a block */
    /* Only for types with a scale per row: adjacent bytes that belong to one row. As many bytes of
     * each other row of the same unit (tensor_geometry.row_unit rows) follow. */
    size_t run_bytes;
};
extern const struct ternary_layout ternary_layouts[TENSOR_N_TYPES];

/* Blocks of this size are merged in pairs if, in the whole tensor, both blocks of a pair have the
 * same scale. */
#define PAIR_COLS 64

/* The classes that the scales read so far allow. Scales are compared as bits; 0 fits any scale. The
 * first three members begin as 0, the others as true (in_pairs only for blocks of PAIR_COLS). */
struct scale_classes {
    /* the scale shared so far in the tensor, row, pair; 0 if all are 0 */
    uint32_t of_tensor, of_row, of_pair;
    bool is_tensor, is_row, in_pairs; /* one scale per tensor, per row, per pair of blocks */
};

/* Whether a scale differs from the shared one. The first nonzero scale becomes the shared one. */
static inline bool scale_differs(uint32_t bits, uint32_t *shared)
{
    if (bits == 0 || bits == *shared)
        return false;
    if (*shared != 0)
        return true;
    *shared = bits;
    return false;
}

/* Add the scale of block i of a row, 0 for a zero of either sign. */
static inline void scale_classes_add(struct scale_classes *c, size_t i, uint32_t bits)
{
    if (i == 0)
        c->of_row = 0;
    if (i % 2 == 0)
        c->of_pair = 0;
    c->in_pairs &= !scale_differs(bits, &c->of_pair);
    c->is_row &= !scale_differs(bits, &c->of_row);
}

/* Call it after the last block of a row. Only then is_tensor takes this row into account. */
static inline void scale_classes_end_row(struct scale_classes *c)
{
    c->is_tensor &= c->is_row && !scale_differs(c->of_row, &c->of_tensor);
}

/* The coarsest class. tensor_scale: the value of of_tensor. */
static inline struct ternary_scales scale_classes_result(const struct scale_classes *c,
                                                         size_t block_cols, float tensor_scale)
{
    if (c->is_tensor)
        return (struct ternary_scales){SCALE_TENSOR, tensor_scale, 0};
    if (c->is_row)
        return (struct ternary_scales){SCALE_ROW, 1.0f, 0};
    return (struct ternary_scales){SCALE_BLOCK, 1.0f, c->in_pairs ? 2 * block_cols : block_cols};
}

/* Decode n 2-bit codes at one shift of neighbouring bytes. Returns true if one of them is 3. */
bool ternary_decode_run(const uint8_t *bytes, size_t n, unsigned shift, uint8_t *codes);

/* ternary_blocks.c: the functions of all types with a scale per block, and decode_block of each
 * arrangement of their codes. */
bool blocks_scan(const struct ternary_source *src, struct ternary_scales *out,
                 struct bn_error *err);
bool blocks_decode(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                   struct bn_error *err);
bool blocks_block_scales(const struct ternary_source *src, size_t block_cols, size_t row,
                         uint16_t *out, struct bn_error *err);
float blocks_row_scale(const struct ternary_source *src, size_t row);
bool tq1_block_decode(const uint8_t *block, uint8_t *codes);
bool tq2_block_decode(const uint8_t *block, uint8_t *codes);
bool q2_64_block_decode(const uint8_t *block, uint8_t *codes);
bool q2_128_block_decode(const uint8_t *block, uint8_t *codes);
bool ptq1_block_decode(const uint8_t *block, uint8_t *codes);
bool q1_block_decode(const uint8_t *block, uint8_t *codes);

/* ternary_rows.c: the functions of all types with a scale per row, and decode_block of each. Its
 * argument has the bytes of one row only, also if rows are interleaved. */
bool rows_scan(const struct ternary_source *src, struct ternary_scales *out, struct bn_error *err);
bool rows_decode(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                 struct bn_error *err);
float rows_row_scale(const struct ternary_source *src, size_t row);
bool iq1_bn_block_decode(const uint8_t *block, uint8_t *codes);
bool iq2_bn_block_decode(const uint8_t *block, uint8_t *codes);
bool iq2_bn_r4_block_decode(const uint8_t *block, uint8_t *codes);

/* ternary_floats.c: the functions of F32, F16 and BF16. */
bool floats_scan(const struct ternary_source *src, struct ternary_scales *out,
                 struct bn_error *err);
bool floats_decode(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                   struct bn_error *err);
bool floats_block_scales(const struct ternary_source *src, size_t block_cols, size_t row,
                         uint16_t *out, struct bn_error *err);
float floats_row_scale(const struct ternary_source *src, size_t row);

#endif
