/*
 * Normalisation with libunistring, which accepts only well-formed UTF-8, so the text is cut around
 * everything else.
 */
#include "tokenizer/bpe/nfc.h"

#include "engine/base/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <uninorm.h>

/* U+0300 is the first character that composes with the one before it or that normalisation changes.
 * In UTF-8 it begins with this byte, and all bytes of earlier characters are smaller. */
#define FIRST_BYTE 0xCC

bool nfc_is_plain(struct bn_str text)
{
    for (size_t i = 0; i < text.n_bytes; i++) {
        if ((uint8_t)text.ptr[i] >= FIRST_BYTE)
            return false;
    }
    return true;
}

static bool write_valid(struct bn_str text, char *out, size_t *n_out, struct bn_error *err)
{
    size_t n = NFC_GROWTH * text.n_bytes;
    uint8_t *const at = (uint8_t *)out;
    uint8_t *const result =
        u8_normalize(UNINORM_NFC, (const uint8_t *)text.ptr, text.n_bytes, at, &n);
    if (result == at) {
        *n_out = n;
        return true;
    }
    free(result); /* memory of the library, because `out` was too small; or NULL */
    return bn_fail(err, BN_ENOMEM, "no memory to normalise %zu bytes", text.n_bytes);
}

bool nfc_write(struct bn_str text, char *out, size_t *n_out, struct bn_error *err)
{
    size_t done = 0;
    *n_out = 0;
    while (done < text.n_bytes) {
        const char *const rest = text.ptr + done;
        const size_t n_left = text.n_bytes - done, n_valid = utf8_valid_bytes(rest, n_left);
        size_t n = 0;
        if (n_valid > 0 && !write_valid((struct bn_str){rest, n_valid}, out + *n_out, &n, err))
            return false;
        *n_out += n;
        done += n_valid;
        if (n_valid < n_left)
            out[(*n_out)++] = text.ptr[done++];
    }
    return true;
}
