/*
 * The bounded reader. A length is compared with the bytes left before it is added to the position,
 * so the sum cannot overflow.
 */
#include "engine/base/reader.h"

void reader_init(struct reader *r, const void *bytes, size_t n_bytes)
{
    *r = (struct reader){.bytes = bytes, .n_bytes = n_bytes};
}

size_t reader_left(const struct reader *r)
{
    return r->n_bytes - r->pos;
}

const uint8_t *reader_bytes(struct reader *r, uint64_t n)
{
    if (r->failed || n > reader_left(r)) {
        r->failed = true;
        return NULL;
    }
    const uint8_t *p = r->bytes + r->pos;
    r->pos += (size_t)n;
    return p;
}

static uint64_t little_endian(struct reader *r, size_t n)
{
    const uint8_t *p = reader_bytes(r, n);
    uint64_t v = 0;
    for (size_t i = 0; p && i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint32_t reader_u32(struct reader *r)
{
    return (uint32_t)little_endian(r, 4);
}

uint64_t reader_u64(struct reader *r)
{
    return little_endian(r, 8);
}

struct bn_str reader_string(struct reader *r)
{
    const uint64_t n = reader_u64(r);
    const uint8_t *p = reader_bytes(r, n);
    return p ? (struct bn_str){(const char *)p, (size_t)n} : (struct bn_str){0};
}
