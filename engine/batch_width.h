/*
 * How many sequences to decode together, from the memory their KV caches take. A pure function: the
 * budget, with its reasons, is in the .c.
 */
#ifndef ENGINE_BATCH_WIDTH_H
#define ENGINE_BATCH_WIDTH_H

#include <stddef.h>

/* From 1 to 16. n_free bytes; SIZE_MAX: not known, memory is taken to suffice. */
size_t batch_width(size_t n_free, size_t kv_bytes_per_token, size_t n_ctx);

#endif
