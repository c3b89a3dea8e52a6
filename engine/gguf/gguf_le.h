/*
 * Little-endian loads without bounds checks, and helpers for names in messages.
 */
#ifndef ENGINE_GGUF_GGUF_LE_H
#define ENGINE_GGUF_GGUF_LE_H

#include "engine/base/str.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* A single load: the compiler can vectorise a loop over it, but not one that assembles bytes. */
static inline uint16_t le_u16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline uint32_t le_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}
#else
static inline uint16_t le_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t le_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
#endif

static inline uint64_t le_u64(const uint8_t *p)
{
    return le_u32(p) | (uint64_t)le_u32(p + 4) << 32;
}

/* The two arguments of "%.*s". At most 100 bytes, so that a hostile name cannot fill the whole
 * message. */
#define STR_ARG(s) bn_str_shown(s, 100), ((s).ptr ? (s).ptr : "")

/* Append a name to a list "F32, F16", for messages. The list is cut at list_bytes. */
static inline void str_list_add(char *list, size_t list_bytes, const char *name)
{
    const size_t n = strlen(list);
    (void)snprintf(list + n, list_bytes - n, "%s%s", n > 0 ? ", " : "", name);
}

#endif
