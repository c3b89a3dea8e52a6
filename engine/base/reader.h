/*
 * Reads little-endian numbers and strings out of a fixed piece of memory.
 *
 * The first read past the end latches `failed`: every later read gives zero, so a parser reads a
 * whole record and checks once. Nothing is copied; strings point into the memory.
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
    size_t pos;
    bool failed;
};

void reader_init(struct reader *r, const void *bytes, size_t n_bytes);
size_t reader_left(const struct reader *r);

uint8_t reader_u8(struct reader *r);
uint16_t reader_u16(struct reader *r);
uint32_t reader_u32(struct reader *r);
uint64_t reader_u64(struct reader *r);

/* The next n bytes, or NULL and latched when fewer are left. */
const uint8_t *reader_bytes(struct reader *r, uint64_t n);

/* u64 length, then that many bytes. */
struct bn_str reader_string(struct reader *r);

#endif
