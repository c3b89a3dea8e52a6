/*
 * SHA-256 with the names and the order of steps of FIPS 180-4, section 6.2.
 *
 * It is written out here because a cryptographic library would be the largest dependency of the
 * programs.
 */
#include "engine/base/hash.h"

#include <string.h>

#define BLOCK_BYTES 64

/* Section 4.2.2: the first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotr(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void schedule(const uint8_t *block, uint32_t w[64])
{
    for (size_t t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (size_t t = 16; t < 64; t++) {
        const uint32_t a = w[t - 15], b = w[t - 2];
        w[t] = (rotr(b, 17) ^ rotr(b, 19) ^ b >> 10) + w[t - 7] +
               (rotr(a, 7) ^ rotr(a, 18) ^ a >> 3) + w[t - 16];
    }
}

static void hash_block(struct sha256 *s, const uint8_t *block)
{
    uint32_t w[64], v[8]; /* v: a, b, ... h of the standard */
    schedule(block, w);
    memcpy(v, s->state, sizeof v);
    for (size_t t = 0; t < 64; t++) {
        const uint32_t e = v[4], a = v[0];
        const uint32_t t1 = v[7] + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) +
                            ((e & v[5]) ^ (~e & v[6])) + k[t] + w[t];
        const uint32_t t2 =
            (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        /* h = g, ..., b = a; then e = d + t1 and a = t1 + t2 */
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (size_t i = 0; i < 8; i++)
        s->state[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
    /* Section 5.3.3: the first 32 bits of the fractions of the square roots of the first 8
     * primes. */
    *s = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *s, const void *bytes, size_t n_bytes)
{
    const uint8_t *at = bytes;
    while (n_bytes > 0) {
        const size_t n_held = s->n_bytes % BLOCK_BYTES;
        const size_t n = n_bytes < BLOCK_BYTES - n_held ? n_bytes : BLOCK_BYTES - n_held;
        memcpy(s->block + n_held, at, n);
        s->n_bytes += n;
        at += n;
        n_bytes -= n;
        if (s->n_bytes % BLOCK_BYTES == 0)
            hash_block(s, s->block);
    }
}

void sha256_end(struct sha256 *s, uint8_t out[SHA256_BYTES])
{
    static const uint8_t padding[BLOCK_BYTES] = {0x80};
    const uint64_t n_bits = s->n_bytes * 8;
    uint8_t length[8];
    for (size_t i = 0; i < 8; i++)
        length[i] = (uint8_t)(n_bits >> (56 - 8 * i));
    /* Pad to 8 bytes before the end of this block, or of the next one if this one is too full. */
    sha256_add(s, padding, 1 + (BLOCK_BYTES * 2 - 9 - s->n_bytes % BLOCK_BYTES) % BLOCK_BYTES);
    sha256_add(s, length, sizeof length);
    for (size_t i = 0; i < SHA256_BYTES; i++)
        out[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}
