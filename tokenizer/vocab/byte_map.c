/*
 * The byte map. It is computed, because the rule is shorter and clearer than 256 constants.
 */
#include "tokenizer/vocab/byte_map.h"

#include "engine/base/utf8.h"

#include <string.h>

static bool maps_to_itself(unsigned byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

void byte_map_init(struct byte_map *map)
{
    for (size_t i = 0; i < BYTE_MAP_CHARS; i++)
        map->byte_of[i] = -1;
    unsigned next = 256;
    for (unsigned byte = 0; byte < 256; byte++)
        map->byte_of[maps_to_itself(byte) ? byte : next++] = (int16_t)byte;
}

/* Decode one character and return the number of bytes read. The characters of the map have one or
 * two bytes; two begin with 0xC2 (U+00A1) to 0xC5 (U+0143). *byte is -1 if the bytes read are no
 * character of the map; the caller copies them. */
static size_t decode_char(const struct byte_map *map, const uint8_t *at, size_t n_bytes, int *byte)
{
    if (at[0] < 0x80) {
        *byte = map->byte_of[at[0]];
        return 1;
    }
    if (n_bytes > 1 && at[0] >= 0xC2 && at[0] <= 0xC5 && utf8_is_continuation(at[1])) {
        const unsigned cp = (at[0] & 0x1Fu) << 6 | (at[1] & 0x3Fu);
        *byte = cp < BYTE_MAP_CHARS ? map->byte_of[cp] : -1;
        return 2;
    }
    *byte = -1;
    return 1;
}

size_t byte_map_decode(const struct byte_map *map, struct bn_str text, char *out, bool *exact)
{
    const uint8_t *bytes = (const uint8_t *)text.ptr;
    size_t n_out = 0;
    *exact = true;
    for (size_t at = 0; at < text.n_bytes;) {
        int byte;
        const size_t n = decode_char(map, bytes + at, text.n_bytes - at, &byte);
        if (byte >= 0) {
            out[n_out++] = (char)byte;
        } else {
            *exact = false;
            memcpy(out + n_out, bytes + at, n);
            n_out += n;
        }
        at += n;
    }
    return n_out;
}
