/*
 * Prepares text from stdin, a file or a paste for a template: valid UTF-8 with LF line ends. Also
 * reads paths that a user has typed in a command or a message.
 */
#ifndef APP_INPUT_TEXT_H
#define APP_INPUT_TEXT_H

#include "app/common/strbuf.h"
#include "engine/base/error.h"

#define INPUT_MAX_BYTES ((size_t)64 << 20) /* far larger than any context */

/* Format of the warning about a text with invalid bytes; the arguments are the name of the text and
 * *bad_at of input_clean. */
#define INPUT_UTF8_NOTICE "%s is not valid UTF-8 at offset %zu: replaced by U+FFFD"

/* Append `in` to `out`. Each invalid byte becomes U+FFFD. A CR before an LF, and a byte order mark
 * at the beginning, are removed. *bad_at is the offset of the first invalid byte in `in`, or
 * SIZE_MAX. `name` is the name of the text in errors. BN_EARG: a NUL byte (the text is binary);
 * then *bad_at is not set. BN_ENOMEM. After an error `out` may hold a part of the text. */
bool input_clean(const char *name, struct bn_str in, struct strbuf *out, size_t *bad_at,
                 struct bn_error *err);

/* Facts about a text that was read. */
struct input_facts {
    size_t n_bytes;   /* as read, before input_clean */
    const char *lack; /* NULL: the file has text. Otherwise the end of the warning "FILE ...":
                         "is empty", or "has no text" (only blanks or a byte order mark) */
};
/* The facts about a text of n_bytes that input_clean has made `clean`. */
struct input_facts input_facts_of(size_t n_bytes, struct bn_str clean);

/* Append a text file as input_clean does. The path "-" is standard input. BN_EIO: cannot be
 * read, a directory, or larger than INPUT_MAX_BYTES. BN_EARG: binary, or not valid UTF-8.
 * BN_ENOMEM. After an error `out` may hold a part of the text. */
bool input_file(const char *path, struct strbuf *out, struct input_facts *facts,
                struct bn_error *err);

/* Append the text of a file as an attachment: a line with the last part of its path, then the text
 * between two fences of backticks. A fence has at least 3 backticks, and more than any run of
 * backticks in the text. If memory runs out, out->failed is set. */
void input_fence(const char *path, struct bn_str text, struct strbuf *out);

/* Append a text file as an attachment: input_file, then input_fence. Errors of input_file. After an
 * error except BN_ENOMEM `out` is unchanged. */
bool input_attach(const char *path, struct strbuf *out, struct input_facts *facts,
                  struct bn_error *err);

/* Append `arg`, or the contents of FILE if `arg` is "@FILE", as input_clean does ("@-": standard
 * input). *bad_at is the offset of the first invalid byte in `arg`, or SIZE_MAX. BN_EIO: FILE
 * cannot be read or is larger than INPUT_MAX_BYTES. BN_EARG: binary, or FILE is not valid UTF-8.
 * BN_ENOMEM. After an error `out` may hold a part of the text. */
bool input_text_or_file(const char *arg, struct strbuf *out, size_t *bad_at, struct bn_error *err);

/* Append the next path of a list to `out`, and move *at, at first 0, behind it. Spaces, tabs and
 * newlines separate paths. As in a shell, '...' and "..." quote a part of a path, a backslash
 * quotes one character, and "~/" at the beginning is the home directory, if HOME is set. A quote
 * that is not closed is an ordinary character. The path is empty if it is a pair of quotes with
 * nothing between them. False: no path is left. If memory runs out, this function and
 * input_next_at_path set out->failed. */
bool input_next_path(struct bn_str list, size_t *at, struct strbuf *out);
/* Append the only path of `text`, with the quotes of input_next_path. Blanks inside the path need
 * no quotes; those around it are removed. */
void input_one_path(struct bn_str text, struct strbuf *out);

/* Append a block of an input of lines to `in`, which has no complete line yet. Of the line at the
 * end of `in`, at most INPUT_MAX_BYTES + 1 bytes are kept and the others dropped, so that a line of
 * any length needs no more memory. */
void input_add_block(struct strbuf *in, const char *block, size_t n_bytes);

/* Whether the text has nothing but spaces, tabs and line ends. */
bool input_is_blank(struct bn_str text);

enum input_path_kind {
    INPUT_PATH_FILE, /* a regular file */
    INPUT_PATH_DIRECTORY,
    /* Neither, but it looks like a path: it has a slash, or a dot that is not its last
     * character. */
    INPUT_PATH_MISSING,
};
/* Find the next @path in a message, from *at on. Append the path without the "@" to `out`, and move
 * *at behind the word. @path begins a word, or follows an opening bracket or a quotation mark;
 * behind a quotation mark only a regular file counts. @path may be quoted as in input_next_path, or
 * be a name that has quotes or backslashes itself. Punctuation after the path of a file or
 * directory is ignored. A missing path is the word without its quotes and without the bracket that
 * closes one before the "@". But if the only quotes of a missing path are apostrophes after its
 * first character, they are no quotes: the path is the word as it is written, up to the next blank.
 * A word such as @anna is skipped if there is no such file or directory. False: no @path is
 * left. */
bool input_next_at_path(struct bn_str message, size_t *at, enum input_path_kind *kind,
                        struct strbuf *out);

#endif
