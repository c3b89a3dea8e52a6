/*
 * Unicode normalisation form C, which some pre-tokenizers require before text is split: "e" and
 * U+0301 become U+00E9.
 */
#ifndef TOKENIZER_NFC_H
#define TOKENIZER_NFC_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

/* No text gets more than three times as long in UTF-8 (Unicode FAQ, "Normalization"; U+1D160 is the
 * longest case). */
#define NFC_GROWTH 3

/* Whether all characters are before U+0300, as in most languages with Latin letters. If so,
 * normalisation does not change the text. If not, it may or may not change the text. */
bool nfc_is_plain(struct bn_str text);

/* Write the normalised text to out (NFC_GROWTH * text.n_bytes) and its length in bytes to *n_out.
 * Ill-formed UTF-8 is copied, and no character is composed across it. BN_ENOMEM; then *n_out is
 * undefined. */
bool nfc_write(struct bn_str text, char *out, size_t *n_out, struct bn_error *err);

#endif
