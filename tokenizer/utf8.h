/*
 * UTF-8 as the standard has it: no overlong forms, no surrogates, nothing above U+10FFFF.
 *
 * Pure functions on bytes; none of them reads past `n_bytes`.
 */
#ifndef TOKENIZER_UTF8_H
#define TOKENIZER_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length (1 to 4) of the character that begins at `bytes` and its code point; 0, and `*cp` as it
 * was, when no whole valid character stands there. `cp` may be NULL. */
size_t utf8_decode(const char *bytes, size_t n_bytes, uint32_t *cp);

/* Write a code point up to U+10FFFF; its length, 1 to 4. */
size_t utf8_encode(uint32_t cp, char out[4]);

/* How many bytes from the front are valid characters. */
size_t utf8_valid_bytes(const char *bytes, size_t n_bytes);

/* How many bytes at the end (0 to 3) begin a character that more bytes could still complete. */
size_t utf8_open_bytes(const char *bytes, size_t n_bytes);

#endif
