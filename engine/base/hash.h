/*
 * Hash functions: FNV-1a (64 bits) for hash tables and quick comparisons, SHA-256 (FIPS 180-4)
 * where different inputs must have different hashes, as for model files.
 *
 * Neither protects secrets. SHA-256 processes about 0.3 GB/s on one core.
 */
#ifndef ENGINE_BASE_HASH_H
#define ENGINE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define FNV1A_START 0xcbf29ce484222325u /* the published offset basis */

/* One step of FNV-1a with the published prime. `value` is a byte in the published function; some
 * callers add whole words. */
static inline uint64_t fnv1a_add(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x100000001b3u;
}

/* FNV-1a over `n_bytes` bytes, continuing from `hash` (at first FNV1A_START). */
static inline uint64_t fnv1a_add_bytes(uint64_t hash, const void *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        hash = fnv1a_add(hash, ((const uint8_t *)bytes)[i]);
    return hash;
}

#define SHA256_BYTES 32

struct sha256 {
    uint32_t state[8];
    uint64_t n_bytes;  /* added so far */
    uint8_t block[64]; /* (n_bytes % 64) not yet hashed */
};

/* The hash of all bytes that were added between init and end. After sha256_end, the struct needs
 * sha256_init before it can be used again. */
void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t n_bytes);
void sha256_end(struct sha256 *s, uint8_t out[SHA256_BYTES]);

#endif
