/*
 * Tensor types: sizes, uses and names. docs/contributing/tensor-type.md lists what a new type
 * needs.
 *
 * Projects that write GGUF files use some type ids with different meanings, so the id together with
 * the size of the tensor decides its type.
 */
#ifndef ENGINE_GGUF_GGUF_TYPES_H
#define ENGINE_GGUF_GGUF_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In this order: float types, quantised types of tables, ternary types, TENSOR_OTHER. Of types with
 * the same id, the first one takes precedence: see tensor_type_decide. */
enum tensor_type {
    TENSOR_F32,
    TENSOR_F16,
    TENSOR_BF16,
    TENSOR_Q8_0,
    TENSOR_Q4_0,
    TENSOR_Q4_K,
    TENSOR_Q6_K,
    TENSOR_I2_S,
    TENSOR_TQ1_0,
    TENSOR_TQ2_0,
    TENSOR_Q2_0, /* blocks of 64; shares its id with TENSOR_Q2_0_G128 */
    TENSOR_Q2_0_G128,
    TENSOR_PQ2_0,
    TENSOR_PTQ1_0,
    TENSOR_Q1_0, /* binary: -1 and +1 only */
    TENSOR_IQ1_BN,
    TENSOR_IQ2_BN,
    TENSOR_IQ2_BN_R4,
    TENSOR_OTHER, /* all other types: known by name at most, never decoded */
    TENSOR_N_TYPES
};

/* Bytes of a block of the packed types that tables can have, for the kernels that decode them. */
#define Q8_0_BYTES 34  /* 32 elements: F16 scale, a byte for each */
#define Q4_0_BYTES 18  /* 32 elements: F16 scale, four bits for each */
#define Q4_K_BYTES 144 /* 256 elements: two F16 scales, 12 bytes of scales, four bits for each */
#define Q6_K_BYTES 210 /* 256 elements: six bits for each, 16 bytes of scales, F16 scale */

struct tensor_geometry {
    const char *name;   /* "TQ2_0" */
    uint32_t file_id;   /* type id in files, see docs/formats.md */
    size_t block_cols;  /* elements per block */
    size_t block_bytes; /* bytes of a block in one row; 0 for TENSOR_OTHER */
    size_t tail_bytes;  /* bytes after all blocks of a tensor; if any, blocks may cross row ends */
    size_t row_scale_bytes; /* bytes of the scale of a row, for types with a scale per row */
    size_t row_unit;        /* rows that are stored interleaved; 0: rows are stored one by one */
    bool is_float;          /* one float per element */
    bool is_ternary;        /* made for ternary or binary weights */
    bool is_table;          /* embedding and output head can have this type */
};
extern const struct tensor_geometry tensor_geometries[TENSOR_N_TYPES];

/* Whether a ternary linear layer can have this type: a ternary type, or a float type, whose values
 * can be ternary. */
bool tensor_is_linear(enum tensor_type type);

/* Size of n_rows rows of n_cols elements in bytes. False on overflow, for a row that is not a whole
 * number of blocks, for a number of rows that is not a multiple of row_unit, and for TENSOR_OTHER.
 * An I2_S tensor of n elements has n / 4 + 32 bytes, and n must be a multiple of 4. The layouts of
 * I2_S need larger multiples, which ternary_check tests. */
bool tensor_bytes(enum tensor_type type, size_t n_cols, size_t n_rows, size_t *out);

/* The only type of our table with this id whose size fits the room. `room` is the distance to the
 * next tensor or to the end of the file and can include less than one alignment of padding.
 * TENSOR_OTHER if no type fits, or several do. */
enum tensor_type tensor_type_match(uint32_t file_id, size_t n_cols, size_t n_rows, size_t room,
                                   size_t alignment);

/* The type of a tensor with this id, if no other tensor of the file proves it: the first of our
 * types with this id that fits the room. If none fits, it is TENSOR_OTHER if another meaning of the
 * id fits or the id is not in our table, else the first of our types with this id. */
enum tensor_type tensor_type_decide(uint32_t file_id, size_t n_cols, size_t n_rows, size_t room,
                                    size_t alignment);

/* Name of a type id of any project, for messages: "TL2 or MXFP4 (39)". NULL if it is unknown. */
const char *tensor_type_id_name(uint32_t file_id);

/* Name and advice for a tensor that cannot be used. `room` is as above and decides between the
 * meanings of the id. */
struct unusable_type {
    const char *name;   /* "TL2 (39)"; NULL if the id is unknown */
    const char *advice; /* "convert the model to i2_s or tq2_0 from its original" */
};
struct unusable_type tensor_type_unusable(uint32_t file_id, size_t n_cols, size_t n_rows,
                                          size_t room, size_t alignment);

#endif
