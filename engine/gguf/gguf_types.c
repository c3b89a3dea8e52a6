/*
 * The table of the tensor types that this program reads, and the names of the others (foreign
 * types). Sizes and ids are those of docs/formats.md, "Tensor types".
 *
 * Foreign types are listed with their block sizes, if these are known, so that two meanings of one
 * id can be told apart.
 */
#include "engine/gguf/gguf_types.h"

#include "engine/base/size.h"

/* The first columns are name, file id, elements per block, bytes per block, bytes of the tail. */
const struct tensor_geometry tensor_geometries[TENSOR_N_TYPES] = {
    [TENSOR_F32] = {"F32", 0, 1, 4, 0, .is_float = true, .is_table = true},
    [TENSOR_F16] = {"F16", 1, 1, 2, 0, .is_float = true, .is_table = true},
    [TENSOR_BF16] = {"BF16", 30, 1, 2, 0, .is_float = true, .is_table = true},
    [TENSOR_Q8_0] = {"Q8_0", 8, 32, Q8_0_BYTES, 0, .is_table = true},
    [TENSOR_Q4_0] = {"Q4_0", 2, 32, Q4_0_BYTES, 0, .is_table = true},
    [TENSOR_Q4_K] = {"Q4_K", 12, 256, Q4_K_BYTES, 0, .is_table = true},
    [TENSOR_Q6_K] = {"Q6_K", 14, 256, Q6_K_BYTES, 0, .is_table = true},
    /* The tail is an F32 scale and 28 unused bytes. */
    [TENSOR_I2_S] = {"I2_S", 36, 4, 1, 32, .is_ternary = true},
    [TENSOR_TQ1_0] = {"TQ1_0", 34, 256, 54, 0, .is_ternary = true, .is_table = true},
    [TENSOR_TQ2_0] = {"TQ2_0", 35, 256, 66, 0, .is_ternary = true, .is_table = true},
    [TENSOR_Q2_0] = {"Q2_0", 42, 64, 18, 0, .is_ternary = true, .is_table = true},
    [TENSOR_Q2_0_G128] = {"Q2_0_G128", 42, 128, 34, 0, .is_ternary = true, .is_table = true},
    [TENSOR_PQ2_0] = {"PQ2_0", 142, 128, 34, 0, .is_ternary = true, .is_table = true},
    [TENSOR_PTQ1_0] = {"PTQ1_0", 143, 128, 28, 0, .is_ternary = true, .is_table = true},
    [TENSOR_Q1_0] = {"Q1_0", 41, 128, 18, 0, .is_ternary = true, .is_table = true},
    [TENSOR_IQ1_BN] = {"IQ1_BN", 134, 64, 13, 0, .row_scale_bytes = 2, .is_ternary = true},
    [TENSOR_IQ2_BN] = {"IQ2_BN", 135, 64, 16, 0, .row_scale_bytes = 4, .is_ternary = true},
    [TENSOR_IQ2_BN_R4] = {"IQ2_BN_R4", 335, 64, 16, 0, .row_scale_bytes = 4, .row_unit = 4,
                          .is_ternary = true},
    [TENSOR_OTHER] = {"other", UINT32_MAX, 1, 0, 0, .is_ternary = false},
};

#define ADVICE_DENSE "convert its linear layers to i2_s, tq1_0 or tq2_0 from the ternary original"
#define ADVICE_TILED                                                                               \
    "its tiling was tuned for one machine and is not in the file: convert the original to i2_s"
#define ADVICE_IK "convert the model to i2_s or tq2_0 from its original"

/* A type outside our table. With block_bytes 0 the size is unknown and fits every room, so such a
 * row follows the others with its id. */
struct foreign_type {
    uint32_t id;
    size_t block_cols, block_bytes;
    const char *name, *advice;
};

static const struct foreign_type foreign_types[] = {
    {3, 32, 20, "Q4_1 (3)", ADVICE_DENSE},
    {6, 32, 22, "Q5_0 (6)", ADVICE_DENSE},
    {7, 32, 24, "Q5_1 (7)", ADVICE_DENSE},
    {9, 32, 36, "Q8_1 (9)", ADVICE_DENSE},
    {10, 256, 84, "Q2_K (10)", ADVICE_DENSE},
    {11, 256, 110, "Q3_K (11)", ADVICE_DENSE},
    {13, 256, 176, "Q5_K (13)", ADVICE_DENSE},
    {15, 256, 292, "Q8_K (15)", ADVICE_DENSE},
    {16, 256, 66, "IQ2_XXS (16)", ADVICE_DENSE},
    {17, 256, 74, "IQ2_XS (17)", ADVICE_DENSE},
    {18, 256, 98, "IQ3_XXS (18)", ADVICE_DENSE},
    {19, 256, 50, "IQ1_S (19)", ADVICE_DENSE},
    {20, 32, 18, "IQ4_NL (20)", ADVICE_DENSE},
    {21, 256, 110, "IQ3_S (21)", ADVICE_DENSE},
    {22, 256, 82, "IQ2_S (22)", ADVICE_DENSE},
    {23, 256, 136, "IQ4_XS (23)", ADVICE_DENSE},
    {24, 1, 1, "I8 (24)", ADVICE_DENSE},
    {25, 1, 2, "I16 (25)", ADVICE_DENSE},
    {26, 1, 4, "I32 (26)", ADVICE_DENSE},
    {27, 1, 8, "I64 (27)", ADVICE_DENSE},
    {28, 1, 8, "F64 (28)", ADVICE_DENSE},
    {29, 256, 56, "IQ1_M (29)", ADVICE_DENSE},
    {31, 32, 18, "Q4_0_4_4 (31, removed upstream)", ADVICE_DENSE},
    {32, 32, 18, "Q4_0_4_8 (32, removed upstream)", ADVICE_DENSE},
    {33, 32, 18, "Q4_0_8_8 (33, removed upstream)", ADVICE_DENSE},
    {36, 32, 18, "IQ4_NL_4_4 (36, removed upstream)", ADVICE_DENSE},
    {37, 32, 18, "IQ4_NL_4_8 (37, removed upstream)", ADVICE_DENSE},
    {37, 0, 0, "I8_S (37)", ADVICE_DENSE},
    {38, 32, 18, "IQ4_NL_8_8 (38, removed upstream)", ADVICE_DENSE},
    {38, 0, 0, "TL1 (38)", ADVICE_TILED},
    {39, 32, 17, "MXFP4 (39)", ADVICE_DENSE},
    {39, 0, 0, "TL2 (39)", ADVICE_TILED},
    {40, 64, 36, "NVFP4 (40)", ADVICE_DENSE},
    {42, 256, 42, "STQ1_0 (42, of the program ZINC)", ADVICE_DENSE},
    {134, 64, 13, "IQ1_BN without row scales (134, before October 2024)", ADVICE_IK},
    {135, 64, 16, "IQ2_BN without row scales (135, before October 2024)", ADVICE_IK},
    {142, 0, 0, "IQ2_TN (142)", ADVICE_IK},
    {143, 0, 0, "IQ1_TN (143)", ADVICE_IK},
};
#define N_FOREIGN (sizeof(foreign_types) / sizeof(foreign_types[0]))

/* Ids whose meanings have different names, for messages where the room is not known. */
static const struct {
    uint32_t id;
    const char *name;
} clashing_ids[] = {
    {36, "I2_S or IQ4_NL_4_4 (36)"}, {37, "I8_S or IQ4_NL_4_8 (37)"},
    {38, "TL1 or IQ4_NL_8_8 (38)"},  {39, "TL2 or MXFP4 (39)"},
    {42, "Q2_0 or STQ1_0 (42)"},     {142, "IQ2_TN or PQ2_0 (142)"},
    {143, "IQ1_TN or PTQ1_0 (143)"},
};

bool tensor_is_linear(enum tensor_type type)
{
    return tensor_geometries[type].is_float || tensor_geometries[type].is_ternary;
}

bool tensor_bytes(enum tensor_type type, size_t n_cols, size_t n_rows, size_t *out)
{
    const struct tensor_geometry *g = &tensor_geometries[type];
    size_t n, row_bytes, block_bytes;
    if (g->block_bytes == 0 || !size_mul(&n, n_cols, n_rows))
        return false;
    if (g->tail_bytes > 0)
        return n % g->block_cols == 0 &&
               size_mul(&block_bytes, n / g->block_cols, g->block_bytes) &&
               size_add(out, block_bytes, g->tail_bytes);
    return n_cols % g->block_cols == 0 && (g->row_unit == 0 || n_rows % g->row_unit == 0) &&
           size_mul(&row_bytes, n_cols / g->block_cols, g->block_bytes) &&
           size_add(&row_bytes, row_bytes, g->row_scale_bytes) && size_mul(out, row_bytes, n_rows);
}

/* Whether the room consists of n_bytes and less than one alignment of padding. */
static bool fits_room(size_t n_bytes, size_t room, size_t alignment)
{
    return n_bytes <= room && room - n_bytes < alignment;
}

static bool foreign_fits(const struct foreign_type *f, size_t n, size_t room, size_t alignment)
{
    size_t n_bytes;
    if (f->block_bytes == 0)
        return true;
    return n % f->block_cols == 0 && size_mul(&n_bytes, n / f->block_cols, f->block_bytes) &&
           fits_room(n_bytes, room, alignment);
}

static const struct foreign_type *find_foreign(uint32_t file_id, size_t n, size_t room,
                                               size_t alignment)
{
    for (size_t i = 0; i < N_FOREIGN; i++) {
        if (foreign_types[i].id == file_id && foreign_fits(&foreign_types[i], n, room, alignment))
            return &foreign_types[i];
    }
    return NULL;
}

/* Whether this type of our table has the id and a size that fits the room. */
static bool type_fits(enum tensor_type type, uint32_t file_id, size_t n_cols, size_t n_rows,
                      size_t room, size_t alignment)
{
    size_t n_bytes;
    return tensor_geometries[type].file_id == file_id &&
           tensor_bytes(type, n_cols, n_rows, &n_bytes) && fits_room(n_bytes, room, alignment);
}

enum tensor_type tensor_type_match(uint32_t file_id, size_t n_cols, size_t n_rows, size_t room,
                                   size_t alignment)
{
    enum tensor_type found = TENSOR_OTHER;
    for (enum tensor_type type = TENSOR_F32; type < TENSOR_OTHER; type++) {
        if (!type_fits(type, file_id, n_cols, n_rows, room, alignment))
            continue;
        if (found != TENSOR_OTHER)
            return TENSOR_OTHER;
        found = type;
    }
    return found;
}

enum tensor_type tensor_type_decide(uint32_t file_id, size_t n_cols, size_t n_rows, size_t room,
                                    size_t alignment)
{
    enum tensor_type first = TENSOR_F32;
    while (first < TENSOR_OTHER && tensor_geometries[first].file_id != file_id)
        first++;
    for (enum tensor_type type = first; type < TENSOR_OTHER; type++) {
        if (type_fits(type, file_id, n_cols, n_rows, room, alignment))
            return type;
    }
    size_t n;
    const bool is_foreign =
        size_mul(&n, n_cols, n_rows) && find_foreign(file_id, n, room, alignment);
    return is_foreign ? TENSOR_OTHER : first;
}

const char *tensor_type_id_name(uint32_t file_id)
{
    for (size_t i = 0; i < sizeof(clashing_ids) / sizeof(clashing_ids[0]); i++) {
        if (clashing_ids[i].id == file_id)
            return clashing_ids[i].name;
    }
    for (size_t i = 0; i < TENSOR_OTHER; i++) {
        if (tensor_geometries[i].file_id == file_id)
            return tensor_geometries[i].name;
    }
    for (size_t i = 0; i < N_FOREIGN; i++) {
        if (foreign_types[i].id == file_id)
            return foreign_types[i].name;
    }
    return NULL;
}

/* The foreign type of an id if there is only one; then its size does not matter. */
static const struct foreign_type *find_only_foreign(uint32_t file_id)
{
    const struct foreign_type *found = NULL;
    for (size_t i = 0; i < N_FOREIGN; i++) {
        if (foreign_types[i].id == file_id && found)
            return NULL;
        if (foreign_types[i].id == file_id)
            found = &foreign_types[i];
    }
    return found;
}

struct unusable_type tensor_type_unusable(uint32_t file_id, size_t n_cols, size_t n_rows,
                                          size_t room, size_t alignment)
{
    for (enum tensor_type type = TENSOR_F32; type < TENSOR_OTHER; type++) {
        if (type_fits(type, file_id, n_cols, n_rows, room, alignment))
            /* a type of our table, but not permitted for this tensor */
            return (struct unusable_type){tensor_geometries[type].name, ADVICE_DENSE};
    }
    size_t n;
    const struct foreign_type *f =
        size_mul(&n, n_cols, n_rows) ? find_foreign(file_id, n, room, alignment) : NULL;
    if (!f)
        f = find_only_foreign(file_id);
    if (f)
        return (struct unusable_type){f->name, f->advice};
    return (struct unusable_type){tensor_type_id_name(file_id), ADVICE_DENSE};
}
