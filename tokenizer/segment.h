/*
 * A segment: a piece of a prompt with its origin. Templates produce segments, the tokenizer encodes
 * them.
 *
 * Control and unknown tokens are matched only in the text of the template, so a message cannot fake
 * a turn. User-defined tokens can also be matched in other text: see tokenizer_encode.
 *
 * Text is joined across neighbouring TEMPLATE and MESSAGE segments before it is split into pieces,
 * so "User: " + "hello" has the same ids as the one string "User: hello" in the training data.
 * Nothing is joined across the ends of ANSWER and IDS segments.
 */
#ifndef TOKENIZER_SEGMENT_H
#define TOKENIZER_SEGMENT_H

#include "engine/base/str.h"

#include <stddef.h>
#include <stdint.h>

enum segment_kind {
    SEGMENT_TEMPLATE, /* text of the template: all special tokens are recognised */
    /* All other text of messages, and text of template arguments. The roles system, user, assistant
     * and tool are text of the template. */
    SEGMENT_MESSAGE,
    SEGMENT_ANSWER, /* content of an assistant message, tokenised separately */
    SEGMENT_IDS,    /* generated ids: an earlier answer, or a part of it */
};

#define SEGMENT_NO_MESSAGE SIZE_MAX

struct segment {
    enum segment_kind kind;
    struct bn_str text; /* for TEMPLATE, MESSAGE and ANSWER */
    const int32_t *ids; /* (n_ids) only for IDS; not owned, like the text */
    size_t n_ids;
    size_t message; /* index of the message that contains the text; SEGMENT_NO_MESSAGE for TEMPLATE,
                       IDS, template arguments and text that no template rendered */
};

#endif
