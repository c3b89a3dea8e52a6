/*
 * The encoding of bytes in byte-level vocabularies: one printable character for each byte.
 *
 * Bytes 33-126, 161-172 and 174-255 map to the same code point. The other 68 map in ascending order
 * to U+0100 and above (space is U+0120, newline U+010A). This is bytes_to_unicode of GPT-2.
 */
#ifndef TOKENIZER_BYTE_MAP_H
#define TOKENIZER_BYTE_MAP_H

#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BYTE_MAP_CHARS 324 /* 256 + 68: the map uses code points below this one */

struct byte_map {
    int16_t byte_of[BYTE_MAP_CHARS]; /* -1 for a character that encodes no byte */
};

void byte_map_init(struct byte_map *map);

/* Decode `text` to `out`, which has space for text.n_bytes. Characters outside the map and
 * ill-formed UTF-8 are copied. Returns the number of bytes written; *exact is true if nothing was
 * copied. */
size_t byte_map_decode(const struct byte_map *map, struct bn_str text, char *out, bool *exact);

#endif
