/*
 * Little-endian stores. The loads are in engine/gguf/gguf_le.h.
 */
#ifndef TESTS_SUPPORT_LE_PUT_H
#define TESTS_SUPPORT_LE_PUT_H

#include <stdint.h>

static inline void le_put_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void le_put_u32(uint8_t *p, uint32_t v)
{
    le_put_u16(p, (uint16_t)v);
    le_put_u16(p + 2, (uint16_t)(v >> 16));
}

static inline void le_put_u64(uint8_t *p, uint64_t v)
{
    le_put_u32(p, (uint32_t)v);
    le_put_u32(p + 4, (uint32_t)(v >> 32));
}

#endif
