/*
 * UTF-8 for the whole program: decode, encode, validate.
 *
 * Valid characters are those of table 3-7 of the Unicode standard: no overlong forms, no
 * surrogates, nothing above U+10FFFF. To replace invalid text, replace one byte when utf8_decode
 * returns 0 and continue with the next byte. No function depends on the locale or reads past
 * `n_bytes`.
 */
#ifndef ENGINE_BASE_UTF8_H
#define ENGINE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a byte of UTF-8 is a continuation byte: part of a character, but not its first byte.
 * `byte` is a char or an unsigned char. */
static inline bool utf8_is_continuation(int byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Decode the character at the start of `bytes` into *cp, which may be NULL. Returns its length, 1
 * to 4, or 0 and leaves *cp unchanged if the bytes do not start with a complete valid character. */
size_t utf8_decode(const char *bytes, size_t n_bytes, uint32_t *cp);

/* Encode a code point. Returns its length, 1 to 4, or 0 for a surrogate or above U+10FFFF. */
size_t utf8_encode(uint32_t cp, char out[4]);

/* Number of bytes at the start that consist of complete valid characters. */
size_t utf8_valid_bytes(const char *bytes, size_t n_bytes);

/* Number of bytes at the end, 0 to 3, that begin a character which further bytes could complete. */
size_t utf8_partial_bytes(const char *bytes, size_t n_bytes);

/* Remove the bytes that utf8_partial_bytes counts from the end of `text`, for a text that was cut
 * without regard to characters. */
void utf8_drop_partial(char *text);

#endif
