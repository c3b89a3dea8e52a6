/*
 * How byte-level vocabularies write bytes: one printable character for each of the 256.
 *
 * Bytes 33-126, 161-172 and 174-255 stand for themselves; the other 68, in ascending order, are the
 * characters from U+0100 on (space is U+0120, newline U+010A).
 */
#ifndef TOKENIZER_BYTE_MAP_H
#define TOKENIZER_BYTE_MAP_H

#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BYTE_MAP_CHARS 324 /* code points 0 .. 255 + 68 */

struct byte_map {
    int16_t byte_of[BYTE_MAP_CHARS]; /* -1: stands for no byte */
};

void byte_map_init(struct byte_map *map);

/* Write the bytes that `text` stands for to `out` (room for text.n_bytes); characters outside the
 * map and bytes that are no UTF-8 are copied. The number written; `*exact` says that nothing was
 * copied. */
size_t byte_map_decode(const struct byte_map *map, struct bn_str text, char *out, bool *exact);

#endif
