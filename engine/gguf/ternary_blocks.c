/*
 * Ternary types whose rows consist of blocks with an F16 scale each: TQ1_0, TQ2_0, Q2_0, PQ2_0,
 * PTQ1_0 and Q1_0. docs/formats.md has their layouts.
 *
 * A block with a scale of +0 or -0 decodes to code 1, so it fits any scale of its neighbours.
 */
#include "engine/gguf/ternary_layout.h"

#include "engine/base/fp16.h"
#include "engine/gguf/gguf_le.h"
#include "engine/gguf/refusal.h"

#define MAX_BLOCK_COLS 256 /* TQ1_0 and TQ2_0 */

/* ---- decoders of one block ---- */

/* TQ2_0: two halves of 128 elements in 32 bytes each, with the first quarter of a half in the
 * lowest bits. */
bool tq2_block_decode(const uint8_t *block, uint8_t *codes)
{
    bool bad = false;
    for (size_t run = 0; run < 8; run++)
        bad |=
            ternary_decode_run(block + run / 4 * 32, 32, 2 * (unsigned)(run % 4), codes + 32 * run);
    return !bad;
}

/* Decode trit (base-3 digit) k of n adjacent bytes, with pow3 = 3^k: docs/formats.md, "TQ1_0".
 * Every byte value decodes to 0, 1 or 2. */
static void decode_trits(const uint8_t *bytes, size_t n, unsigned pow3, uint8_t *codes)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t q = (uint8_t)(bytes[i] * pow3);
        codes[i] = (uint8_t)(q * 3u >> 8);
    }
}

/* A block of n, n / 2 and n / 8 bytes. A byte has five trits, but each of the last n / 8 bytes has
 * four. */
static inline bool trits_block_decode(const uint8_t *block, size_t n, uint8_t *codes)
{
    const size_t n2 = n / 2, n3 = n / 8;
    unsigned pow3 = 1;
    for (size_t k = 0; k < 5; k++, pow3 *= 3) {
        decode_trits(block, n, pow3, codes + n * k);
        decode_trits(block + n, n2, pow3, codes + 5 * n + n2 * k);
        if (k < 4)
            decode_trits(block + n + n2, n3, pow3, codes + 5 * (n + n2) + n3 * k);
    }
    return true;
}

/* TQ1_0: 160 elements in 32 bytes, 80 in 16, 16 in 4. */
bool tq1_block_decode(const uint8_t *block, uint8_t *codes)
{
    return trits_block_decode(block, 32, codes);
}

/* PTQ1_0: 80 elements in 16 bytes, 40 in 8, 8 in 2. */
bool ptq1_block_decode(const uint8_t *block, uint8_t *codes)
{
    return trits_block_decode(block, 16, codes);
}

/* Q2_0 and PQ2_0: the scale, then four neighbouring elements per byte, the first in the lowest
 * bits. */
static bool q2_decode(const uint8_t *block, size_t n_bytes, uint8_t *codes)
{
    unsigned bad = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        const uint32_t b = block[2 + i];
        bad |= b & b >> 1 & 0x55; /* code 3: both bits are set */
        /* Move code k to byte k of a word, which the compiler stores at once. */
        const uint32_t word = (b | b << 6 | b << 12 | b << 18) & 0x03030303;
        for (size_t k = 0; k < 4; k++)
            codes[4 * i + k] = (uint8_t)(word >> 8 * k);
    }
    return bad == 0;
}

bool q2_64_block_decode(const uint8_t *block, uint8_t *codes)
{
    return q2_decode(block, 16, codes);
}

bool q2_128_block_decode(const uint8_t *block, uint8_t *codes)
{
    return q2_decode(block, 32, codes);
}

/* Q1_0: the scale, then eight neighbouring elements per byte, the first in the lowest bit. */
bool q1_block_decode(const uint8_t *block, uint8_t *codes)
{
    for (size_t i = 0; i < 128; i++)
        codes[i] = (uint8_t)((block[2 + i / 8] >> i % 8 & 1) * 2);
    return true;
}

/* ---- scales ---- */

static bool is_zero(uint16_t scale)
{
    return (scale & 0x7fff) == 0;
}

/* The scales of a tensor, in file order. */
struct scale_walk {
    const uint8_t *first; /* the first scale */
    size_t stride;        /* bytes from one scale to the next */
    size_t row_blocks;    /* blocks of a row */
};

static struct scale_walk scales_of(const struct ternary_source *src)
{
    const struct tensor_geometry *g = &tensor_geometries[src->type];
    return (struct scale_walk){src->bytes + ternary_layouts[src->type].scale_at, g->block_bytes,
                               src->n_cols / g->block_cols};
}

static uint16_t scale_at(const struct scale_walk *w, size_t block)
{
    return le_u16(w->first + block * w->stride);
}

/* An F16 whose exponent bits are all set is infinity or NaN. */
static bool check_scale(const struct ternary_source *src, const struct scale_walk *w, size_t block,
                        struct bn_error *err)
{
    return (scale_at(w, block) & 0x7c00) != 0x7c00 ||
           bn_fail(err, BN_EFORMAT,
                   "tensor '%s': the scale of block %zu, at byte %zu, is not finite", src->name,
                   block, src->file_offset + (size_t)(w->first - src->bytes) + block * w->stride);
}

static bool scan_row(const struct ternary_source *src, const struct scale_walk *w, size_t row,
                     struct scale_classes *c, struct bn_error *err)
{
    uint16_t last = 0;
    for (size_t i = 0; i < w->row_blocks; i++) {
        const size_t block = row * w->row_blocks + i;
        const uint16_t scale = scale_at(w, block);
        /* adjacent scales are often equal: check only a new one */
        if (scale != last && !check_scale(src, w, block, err))
            return false;
        last = scale;
        scale_classes_add(c, i, is_zero(scale) ? 0 : scale);
    }
    scale_classes_end_row(c);
    return true;
}

/* Whether the scales of a row are equal in pairs, bit for bit. Then the row does not change
 * in_pairs, and scan_row is not needed; blocks_block_scales tests whether these scales are finite.
 * There is no branch per block, because whole models with blocks of 64 are read like this. */
static bool row_in_pairs(const struct scale_walk *w, size_t row)
{
    unsigned differ = 0;
    for (size_t i = 0; i + 1 < w->row_blocks; i += 2) {
        const size_t block = row * w->row_blocks + i;
        differ |= (unsigned)(scale_at(w, block) ^ scale_at(w, block + 1));
    }
    return differ == 0;
}

bool blocks_scan(const struct ternary_source *src, struct ternary_scales *out, struct bn_error *err)
{
    const struct scale_walk w = scales_of(src);
    const size_t block_cols = tensor_geometries[src->type].block_cols;
    struct scale_classes c = {
        .is_tensor = true, .is_row = true, .in_pairs = block_cols == PAIR_COLS};
    for (size_t row = 0; row < src->n_rows && (c.is_row || c.in_pairs); row++) {
        if (!c.is_row && row_in_pairs(&w, row))
            continue;
        if (!scan_row(src, &w, row, &c, err))
            return false;
    }
    *out = scale_classes_result(&c, block_cols, f16_to_f32((uint16_t)c.of_tensor));
    return true;
}

bool blocks_block_scales(const struct ternary_source *src, size_t block_cols, size_t row,
                         uint16_t *out, struct bn_error *err)
{
    const struct scale_walk w = scales_of(src);
    const size_t merged = block_cols / tensor_geometries[src->type].block_cols; /* 1 or 2 */
    for (size_t i = 0; i < w.row_blocks; i++) {
        const size_t block = row * w.row_blocks + i;
        const uint16_t scale = scale_at(&w, block);
        if (!check_scale(src, &w, block, err))
            return false;
        if (i % merged == 0)
            *out++ = is_zero(scale) ? 0 : scale;
        else if (!is_zero(scale)) /* the two scales are equal, or one is 0 */
            out[-1] = scale;
    }
    return true;
}

float blocks_row_scale(const struct ternary_source *src, size_t row)
{
    const struct scale_walk w = scales_of(src);
    for (size_t i = 0; i < w.row_blocks; i++) {
        const uint16_t scale = scale_at(&w, row * w.row_blocks + i);
        if (!is_zero(scale))
            return f16_to_f32(scale);
    }
    return 0.0f;
}

/* ---- rows ---- */

/* Offset of the codes in a block: after the F16 scale, if that comes first. */
static size_t first_code(const struct ternary_layout *layout)
{
    return layout->scale_at == 0 ? 2 : 0;
}

/* Report the first byte of a block that holds a code 3. Dense models of 2 bits use this code in
 * some of these types, so the message names the row of docs/models.md about them. */
static bool bad_code(const struct ternary_source *src, const uint8_t *block, struct bn_error *err)
{
    const uint8_t *byte = block + first_code(&ternary_layouts[src->type]);
    while ((*byte & *byte >> 1 & 0x55) == 0) /* the block has a code 3, so this ends */
        byte++;
    return refusal_fail(err, REFUSED_DENSE, BN_EFORMAT,
                        "tensor '%s': the byte at %zu holds code 3, which no ternary weight has",
                        src->name, src->file_offset + (size_t)(byte - src->bytes));
}

static bool decode_block(const struct ternary_source *src, const uint8_t *block, uint8_t *codes)
{
    const struct ternary_layout *layout = &ternary_layouts[src->type];
    if (!is_zero(le_u16(block + layout->scale_at)))
        return layout->decode_block(block, codes);
    memset(codes, 1, tensor_geometries[src->type].block_cols);
    return true;
}

bool blocks_decode(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                   struct bn_error *err)
{
    const struct tensor_geometry *g = &tensor_geometries[src->type];
    const size_t row_blocks = src->n_cols / g->block_cols;
    for (size_t i = row0 * row_blocks; i < row1 * row_blocks; i++, codes += g->block_cols) {
        const uint8_t *block = src->bytes + i * g->block_bytes;
        if (!decode_block(src, block, codes))
            return bad_code(src, block, err);
    }
    return true;
}

/* Whether a code of a block is 3. n_bytes is the size of the codes. */
static bool has_code_3(const struct ternary_layout *layout, const uint8_t *block, size_t n_bytes)
{
    const uint8_t *bytes = block + first_code(layout);
    unsigned bad = 0;
    for (size_t i = 0; i < n_bytes; i++)
        bad |= bytes[i] & bytes[i] >> 1 & 0x55;
    return bad != 0;
}

bool ternary_verify(const struct ternary_source *src, struct bn_error *err)
{
    const struct tensor_geometry *g = &tensor_geometries[src->type];
    const struct ternary_layout *layout = &ternary_layouts[src->type];
    if (!ternary_check(src, err))
        return false;
    const struct scale_walk w = scales_of(src);
    for (size_t i = 0; i < w.row_blocks * src->n_rows; i++) {
        const uint8_t *block = src->bytes + i * g->block_bytes;
        if (!check_scale(src, &w, i, err))
            return false;
        if (layout->has_2_bits && !is_zero(scale_at(&w, i)) &&
            has_code_3(layout, block, g->block_bytes - 2))
            return bad_code(src, block, err);
    }
    return true;
}

void ternary_row_decode(const struct ternary_source *src, size_t row, float *values)
{
    const struct tensor_geometry *g = &tensor_geometries[src->type];
    const struct scale_walk w = scales_of(src);
    for (size_t i = row * w.row_blocks; i < (row + 1) * w.row_blocks; i++) {
        const float scale = f16_to_f32(scale_at(&w, i));
        uint8_t codes[MAX_BLOCK_COLS];
        (void)decode_block(src, src->bytes + i * g->block_bytes, codes); /* ternary_verify passed */
        for (size_t k = 0; k < g->block_cols; k++)
            *values++ = (float)((int)codes[k] - 1) * scale;
    }
}
