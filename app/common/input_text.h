/*
 * Prepares text from stdin, a file or a paste for a template: valid UTF-8 with LF line ends.
 */
#ifndef APP_INPUT_TEXT_H
#define APP_INPUT_TEXT_H

#include "app/common/strbuf.h"
#include "engine/base/error.h"

#define INPUT_MAX_BYTES ((size_t)64 << 20) /* far larger than any context */

/* Append `in` to `out`. A CR before an LF is removed, then invalid bytes become U+FFFD. *bad_at is
 * the offset of the first invalid byte after the CRs are removed, or SIZE_MAX. `name` is the name
 * of the text in errors. BN_EARG: a NUL byte (the text is binary). BN_ENOMEM. */
bool input_clean(const char *name, struct bn_str in, struct strbuf *out, size_t *bad_at,
                 struct bn_error *err);

/* Append a text file as an attachment: a line with its name, then its text between two fences. A
 * fence has more backticks than any run in the text. BN_EIO, BN_EARG (binary), BN_ENOMEM. */
bool input_attach(const char *path, struct strbuf *out, struct bn_error *err);

/* Append `arg`, or the contents of FILE if `arg` is "@FILE". Errors of input_attach. */
bool input_text_or_file(const char *arg, struct strbuf *out, struct bn_error *err);

struct input_paths {
    size_t n_attached;
    struct strbuf missing; /* the first @word that looks like a path but is not a file; owned */
};
/* Append the file of each @path in the message as an attachment, then the message itself. @path is
 * a separate word; punctuation after the path is ignored. On entry *found is all zero. Errors of
 * input_attach. */
bool input_expand_paths(struct bn_str message, struct strbuf *out, struct input_paths *found,
                        struct bn_error *err);

#endif
