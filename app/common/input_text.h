/*
 * Text that comes in: from stdin, a file, a paste. What a template gets is valid UTF-8 with LF line
 * ends.
 */
#ifndef APP_INPUT_TEXT_H
#define APP_INPUT_TEXT_H

#include "app/common/strbuf.h"
#include "engine/base/error.h"

#define INPUT_MAX_BYTES ((size_t)64 << 20) /* far beyond any context */

/* Append `in` to `out`: CR before LF goes, invalid bytes become U+FFFD; *bad_at is the offset of
 * the first, SIZE_MAX if none. BN_EARG: a NUL byte (the text is binary); `what` names the text.
 * BN_ENOMEM. */
bool input_clean(const char *what, struct bn_str in, struct strbuf *out, size_t *bad_at,
                 struct bn_error *err);

/* Append a text file as an attachment: a line with its name, then its text between fences longer
 * than any in it. BN_EIO, BN_EARG (binary), BN_ENOMEM. */
bool input_attach(const char *path, struct strbuf *out, struct bn_error *err);

/* TEXT, or the contents of FILE for "@FILE". Errors as above. */
bool input_text_or_file(const char *arg, struct strbuf *out, struct bn_error *err);

/* The message with each @path that names a readable file (and is a word of its own, but for what
 * ends a sentence) put before it as an attachment. A word that names no file stays as it is. */
struct input_paths {
    size_t n_attached;
    struct strbuf missing; /* the first word that looks like a path and is none; the caller's */
};
bool input_expand_paths(struct bn_str message, struct strbuf *out, struct input_paths *found,
                        struct bn_error *err);

#endif
