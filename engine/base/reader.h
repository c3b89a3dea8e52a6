/*
 * Reads little-endian numbers and strings from a fixed block of memory.
 *
 * A read past the end sets `failed`. It and every later read return 0, NULL or an empty string, so
 * that a parser can read a whole record and test `failed` once. Nothing is copied; strings point
 * into the block.
 */
#ifndef ENGINE_BASE_READER_H
#define ENGINE_BASE_READER_H

#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
    const uint8_t *bytes; /* (n_bytes) */
    size_t n_bytes;
    size_t pos;  /* offset of the next read */
    bool failed; /* a read would have passed the end */
};

void reader_init(struct reader *r, const void *bytes, size_t n_bytes);
size_t reader_left(const struct reader *r);

uint32_t reader_u32(struct reader *r);
uint64_t reader_u64(struct reader *r);

/* The next n bytes. If fewer are left, returns NULL and sets `failed`. */
const uint8_t *reader_bytes(struct reader *r, uint64_t n);

/* A string: its length as u64, then the bytes. If only bytes of the string are missing, the
 * position is after the length. */
struct bn_str reader_string(struct reader *r);

#endif
