/*
 * What the codec of a ternary type consists of. Private to the codec: ternary_codec.c has the table
 * and the types that are not made of blocks, ternary_blocks.c the blocks.
 */
#ifndef ENGINE_GGUF_TERNARY_LAYOUT_H
#define ENGINE_GGUF_TERNARY_LAYOUT_H

#include "engine/gguf/ternary_codec.h"

struct ternary_layout {
    /* As ternary_scan and ternary_decode, after their checks. NULL: the type is not ternary. */
    bool (*scan)(const struct ternary_source *src, struct ternary_scales *out,
                 struct bn_error *err);
    bool (*decode)(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                   struct bn_error *err);
    /* Only for types with blocks along a row, each with an F16 scale: decode one block to
     * (block_cols) codes. False if a code is 3. */
    bool (*decode_block)(const uint8_t *block, uint8_t *codes);
    size_t scale_at; /* offset of the scale: the first or the last two bytes of a block */
};
extern const struct ternary_layout ternary_layouts[TENSOR_N_TYPES];

/* Decode n 2-bit codes at one shift of neighbouring bytes. Returns true if one of them is 3. */
bool ternary_decode_run(const uint8_t *bytes, size_t n, unsigned shift, uint8_t *codes);

/* ternary_blocks.c: scan and decode for all types with blocks, and decode_block of each type. */
bool blocks_scan(const struct ternary_source *src, struct ternary_scales *out,
                 struct bn_error *err);
bool blocks_decode(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                   struct bn_error *err);
bool tq1_block_decode(const uint8_t *block, uint8_t *codes);
bool tq2_block_decode(const uint8_t *block, uint8_t *codes);
bool q2_64_block_decode(const uint8_t *block, uint8_t *codes);
bool q2_128_block_decode(const uint8_t *block, uint8_t *codes);
bool ptq1_block_decode(const uint8_t *block, uint8_t *codes);

#endif
