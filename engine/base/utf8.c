/*
 * UTF-8 by libunistring, see utf8.h. utf8_valid_bytes adds a fast path for ASCII.
 */
#include "engine/base/utf8.h"

#include <stdbool.h>
#include <string.h>

#include <unistr.h>

size_t utf8_decode(const char *bytes, size_t n_bytes, uint32_t *cp)
{
    ucs4_t code;
    if (n_bytes == 0)
        return 0;
    const int n = u8_mbtoucr(&code, (const uint8_t *)bytes, n_bytes);
    if (n <= 0)
        return 0;
    if (cp)
        *cp = code;
    return (size_t)n;
}

size_t utf8_encode(uint32_t cp, char out[4])
{
    const int n = u8_uctomb((uint8_t *)out, cp, 4);
    return n < 0 ? 0 : (size_t)n;
}

/* Bytes of the longest prefix that consists of whole blocks of eight ASCII bytes. Prompts are
 * mostly ASCII, and this is ten times as fast as u8_check. */
static size_t ascii_bytes(const char *bytes, size_t n_bytes)
{
    size_t at = 0;
    uint64_t word;
    for (; n_bytes - at >= sizeof(word); at += sizeof(word)) {
        memcpy(&word, bytes + at, sizeof(word));
        if (word & 0x8080808080808080u)
            break;
    }
    return at;
}

size_t utf8_valid_bytes(const char *bytes, size_t n_bytes)
{
    size_t at = 0;
    while (at < n_bytes) {
        at += ascii_bytes(bytes + at, n_bytes - at);
        const size_t n = utf8_decode(bytes + at, n_bytes - at, NULL);
        if (n == 0)
            break;
        at += n;
    }
    return at;
}

size_t utf8_partial_bytes(const char *bytes, size_t n_bytes)
{
    for (size_t back = 1; back <= 3 && back <= n_bytes; back++) {
        const uint8_t *const at = (const uint8_t *)bytes + n_bytes - back;
        ucs4_t code;
        if (utf8_is_continuation(at[0]))
            continue;
        /* -2 means incomplete. libunistring 1.0 also returns it for a last byte F5 to F7, which
         * begins no character. */
        return at[0] <= 0xF4 && u8_mbtoucr(&code, at, back) == -2 ? back : 0;
    }
    return 0;
}

void utf8_drop_partial(char *text)
{
    const size_t n = strlen(text);
    text[n - utf8_partial_bytes(text, n)] = '\0';
}
