/*
 * UTF-8 by the table of well-formed byte sequences (Unicode standard, table 3-7): what follows a
 * lead byte is 80..BF, except that the second byte of E0, ED, F0 and F4 has a narrower range.
 */
#include "tokenizer/utf8.h"

#include "engine/base/size.h"

#include <string.h>

struct lead {
    size_t n_bytes;           /* 0: no lead byte */
    uint8_t second0, second1; /* allowed range of the second byte, both ends included */
    uint8_t bits;             /* payload mask of the lead byte */
};

static struct lead lead_of(uint8_t byte)
{
    if (byte < 0x80)
        return (struct lead){1, 0, 0, 0x7F};
    if (byte >= 0xC2 && byte <= 0xDF)
        return (struct lead){2, 0x80, 0xBF, 0x1F};
    if (byte >= 0xE0 && byte <= 0xEF)
        return (struct lead){3, byte == 0xE0 ? 0xA0 : 0x80, byte == 0xED ? 0x9F : 0xBF, 0x0F};
    if (byte >= 0xF0 && byte <= 0xF4)
        return (struct lead){4, byte == 0xF0 ? 0x90 : 0x80, byte == 0xF4 ? 0x8F : 0xBF, 0x07};
    return (struct lead){0, 0, 0, 0};
}

/* How many of the bytes agree with `lead`, itself included; at most lead->n_bytes. */
static size_t agreeing(const struct lead *lead, const uint8_t *bytes, size_t n_bytes)
{
    const size_t n = size_min(lead->n_bytes, n_bytes);
    for (size_t i = 1; i < n; i++) {
        const uint8_t low = i == 1 ? lead->second0 : 0x80;
        const uint8_t high = i == 1 ? lead->second1 : 0xBF;
        if (bytes[i] < low || bytes[i] > high)
            return i;
    }
    return n;
}

size_t utf8_decode(const char *bytes, size_t n_bytes, uint32_t *cp)
{
    if (n_bytes == 0)
        return 0;
    const uint8_t *at = (const uint8_t *)bytes;
    const struct lead lead = lead_of(at[0]);
    if (lead.n_bytes == 0 || agreeing(&lead, at, n_bytes) < lead.n_bytes)
        return 0;
    if (cp) {
        uint32_t value = at[0] & lead.bits;
        for (size_t i = 1; i < lead.n_bytes; i++)
            value = value << 6 | (at[i] & 0x3F);
        *cp = value;
    }
    return lead.n_bytes;
}

size_t utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    const size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    static const uint8_t marks[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; cp >>= 6)
        out[i] = (char)(0x80 | (cp & 0x3F));
    out[0] = (char)(marks[n] | cp);
    return n;
}

/* Eight ASCII bytes at once: prompts are mostly ASCII. */
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

size_t utf8_open_bytes(const char *bytes, size_t n_bytes)
{
    for (size_t back = 1; back <= 3 && back <= n_bytes; back++) {
        const uint8_t *at = (const uint8_t *)bytes + n_bytes - back;
        if ((at[0] & 0xC0) == 0x80)
            continue; /* a continuation byte: its lead stands further left */
        const struct lead lead = lead_of(at[0]);
        return lead.n_bytes > back && agreeing(&lead, at, back) == back ? back : 0;
    }
    return 0;
}
