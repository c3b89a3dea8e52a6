/*
 * A file mapped read-only: the only place in the engine that opens one.
 *
 * The mapping is private and never written. If another process cuts the file while it is mapped,
 * the system kills the reader: nobody can prevent that short of copying the file.
 */
#ifndef ENGINE_GGUF_GGUF_MAP_H
#define ENGINE_GGUF_GGUF_MAP_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gguf_map {
    const uint8_t *bytes; /* (n_bytes) */
    size_t n_bytes;
};

/* BN_EIO: missing, a directory or device, not readable, cannot be mapped. BN_EFORMAT: empty. */
bool gguf_map_open(struct gguf_map *map, const char *path, struct bn_error *err);
void gguf_map_close(struct gguf_map *map); /* an all-zero map is fine */

#endif
