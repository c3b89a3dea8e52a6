/*
 * Text files that will be sent before the next message.
 *
 * An attachment is read once, when it is added. A file is attached once: its canonical path
 * identifies it. Main thread only.
 */
#ifndef APP_ATTACHMENTS_H
#define APP_ATTACHMENTS_H

#include "app/common/input_text.h"
#include "app/common/strbuf.h"
#include "engine/base/error.h"
#include "tokenizer/tokenizer.h"

struct attachment {
    char *path; /* owned; as given to attachments_add, for messages */
    char *real; /* owned; canonical path, without newlines: they separate paths in a saved chat */
    struct strbuf text;       /* the file as written by input_attach, then an empty line */
    struct input_facts facts; /* about the file */
    size_t n_tokens;          /* of `text`; an estimate if the file is very large */
    bool is_returned; /* of a message that has returned to the line editor (chat_edit_again) */
    size_t serial;    /* if so: exchange.serial of this message */
};

struct attachment_list {
    struct attachment *items; /* (n) in the order of sending */
    size_t n, cap;
};
void attachments_finish(struct attachment_list *l); /* an all-zero list is an empty one */

/* The space in the context for the next message. */
struct attachment_room {
    size_t n_tokens; /* for text and attachments. SIZE_MAX: unknown while the model loads */
    size_t n_ctx;    /* tokens of the whole context, for the error message */
};

enum attachment_added { ATTACHMENT_ADDED, ATTACHMENT_PRESENT };
/* Read a file and append it. If the list has the file already, nothing is appended, *added is
 * ATTACHMENT_PRESENT, and is_returned of the present one is cleared. BN_EIO: the file cannot be
 * read, is not a regular file, is larger than INPUT_MAX_BYTES (input_text.h), has a newline in its
 * canonical path, or the path is "-". BN_EARG: it is binary or not valid UTF-8. BN_ECONTEXT: it
 * does not fit beside the files of the list. BN_ENOMEM. Errors of tokenizer_encode. On failure the
 * list does not change. */
bool attachments_add(struct attachment_list *l, const struct tokenizer *t, const char *path,
                     const struct attachment_room *room, enum attachment_added *added,
                     struct bn_error *err);
/* Attach the files of the @paths in a message (input_text.h). Fails at the first path that
 * attachments_add refuses, for example a directory; the files before it stay in the list. A path
 * that does not exist is no error: the first one is appended to `missing` if that is empty. Errors
 * of attachments_add; BN_ENOMEM. */
bool attachments_add_paths(struct attachment_list *l, const struct tokenizer *t,
                           struct bn_str message, const struct attachment_room *room,
                           struct strbuf *missing, struct bn_error *err);
void attachments_remove(struct attachment_list *l, size_t index); /* index < l->n */
/* Sum of the tokens of the first n_items attachments. */
size_t attachments_tokens(const struct attachment_list *l, size_t n_items);
bool attachments_has(const struct attachment_list *l, const char *real); /* canonical path */

/* Whether the attachment fits beside n_tokens_before tokens of other files. If not, the error is
 * BN_ECONTEXT. */
bool attachments_check(const struct attachment *a, size_t n_tokens_before,
                       const struct attachment_room *room, struct bn_error *err);

#endif
