/*
 * The shape of the coarse plane. The backends create the plane itself.
 */
#include "engine/layout/head_plane.h"

#include "engine/base/size.h"
#include "engine/layout/layout_units.h"

_Static_assert(LINE_BYTES == COARSE_COLS / 2, "a block of the plane is a line");

size_t head_plane_stride(size_t n_blocks)
{
    return size_round_up(n_blocks, 8); /* so that the steps of a row are whole loads of 128 bits */
}

static size_t row_bytes(size_t n_blocks)
{
    return n_blocks * (COARSE_COLS / 2) + head_plane_stride(n_blocks) * sizeof(uint16_t);
}

/* A plane that is larger than half of a matrix of floats saves no time. Rows that are stored in
 * fewer bits take longer to multiply than to read, so a plane saves time for them if it is not
 * larger than the matrix. */
size_t head_plane_blocks(const struct model *m, bool is_exact)
{
    const struct tensor_geometry *type = &tensor_geometries[m->head.type];
    const size_t n_blocks = size_round_up(m->hp.n_embd, COARSE_COLS) / COARSE_COLS;
    const size_t plain_bytes = m->hp.n_embd / type->block_cols * type->block_bytes;
    const size_t plane_bytes = row_bytes(n_blocks);
    const bool pays = type->is_float ? 2 * plane_bytes <= plain_bytes : plane_bytes <= plain_bytes;
    return is_exact && !m->head_linear.source.bytes && pays ? n_blocks : 0;
}

bool head_plane_bytes(const struct model *m, size_t n_blocks, size_t *n_bytes)
{
    return size_mul(n_bytes, m->hp.n_vocab, row_bytes(n_blocks));
}
