/*
 * Caches may fill up to the whole context, so that is what is budgeted, although pages cost nothing
 * before they are written.
 */
#include "engine/batch_width.h"

#include "engine/base/size.h"

/* Tokens of one tile of the widest kernels: beyond, a pass takes longer by as much. */
#define MOST 16
/* Of what is free, one half: tables of the model are pages of its file, which count as free and are
 * read for every token, and others need memory too. */
#define SHARE 2

size_t batch_width(size_t n_free, size_t kv_bytes_per_token, size_t n_ctx)
{
    size_t lane_bytes;
    if (!size_mul(&lane_bytes, kv_bytes_per_token, n_ctx))
        return 1;
    return size_max(size_min(n_free / SHARE / size_max(lane_bytes, 1), MOST), 1);
}
