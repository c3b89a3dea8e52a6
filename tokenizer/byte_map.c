/*
 * The byte map, built from its rule: a list of 256 entries would hide it.
 */
#include "tokenizer/byte_map.h"

#include "tokenizer/utf8.h"

static bool stands_for_itself(unsigned byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

void byte_map_init(struct byte_map *map)
{
    for (size_t i = 0; i < BYTE_MAP_CHARS; i++)
        map->byte_of[i] = -1;
    unsigned next = 256;
    for (unsigned byte = 0; byte < 256; byte++)
        map->byte_of[stands_for_itself(byte) ? byte : next++] = (int16_t)byte;
}

size_t byte_map_decode(const struct byte_map *map, struct bn_str text, char *out, bool *exact)
{
    size_t n_out = 0;
    *exact = true;
    for (size_t at = 0; at < text.n_bytes;) {
        uint32_t cp = BYTE_MAP_CHARS;
        size_t n = utf8_decode(text.ptr + at, text.n_bytes - at, &cp);
        if (cp < BYTE_MAP_CHARS && map->byte_of[cp] >= 0) {
            out[n_out++] = (char)map->byte_of[cp];
            at += n;
            continue;
        }
        *exact = false;
        for (n = n ? n : 1; n > 0; n--)
            out[n_out++] = text.ptr[at++];
    }
    return n_out;
}
