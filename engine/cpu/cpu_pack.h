/*
 * From the file's ternary containers to R1-256 lines and F32 norms: once, when the backend opens.
 *
 * Every container goes through ternary_decode, the plain definition; I2_S in layout A with whole
 * lines, which is what published files are, is rearranged directly and tested against it.
 */
#ifndef ENGINE_CPU_CPU_PACK_H
#define ENGINE_CPU_CPU_PACK_H

#include "engine/cpu/cpu_state.h"

/* Bytes of all lines, norms and biases; false on overflow. */
bool pack_bytes(const struct model *m, const struct backend_config *cfg, size_t *n_bytes);

/* Is the down projection kept column by column? Its rows are then those of the file. */
bool pack_in_columns(const struct model *m, const struct backend_config *cfg,
                     const struct linear *down);
/* Lines line0 .. line1 - 1 of every column (of n_lines), to lines (n_cols, n_lines, LINE_BYTES);
 * rows holds LINE_COLS rows of R1-256, codes is for pack_rows. BN_EFORMAT as pack_rows. */
bool pack_columns(const struct ternary_source *src, size_t line0, size_t line1, size_t n_lines,
                  uint8_t *lines, uint8_t *rows, uint8_t *codes, struct bn_error *err);
/* q (n_lines * LINE_COLS) of a token into the order in which lines of I2_S hold columns. */
void pack_file_order(int8_t *q, size_t n_lines);

/* Rows row0 .. row1 - 1 of one tensor to lines (row1 - row0, n_lines, LINE_BYTES); codes holds
 * PACK_ROWS rows of one byte a column. BN_EFORMAT: code 3, named by tensor and byte offset. */
#define PACK_ROWS 4
bool pack_rows(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *lines,
               uint8_t *codes, struct bn_error *err);

/* Fill b->lines, b->floats, b->layers and b->coarse on b->n_threads threads, each the rows it will
 * read. On failure what was made stays in b for the backend's close. BN_EFORMAT, BN_ENOMEM,
 * BN_ECANCELLED.
 */
bool pack_model(struct backend *b, const struct backend_control *control, struct bn_error *err);

#endif
