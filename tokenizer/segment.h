/*
 * What a template hands to the tokenizer: pieces of prompt, each saying whose words it holds.
 *
 * Special tokens are matched only in the template's own text, so nobody's words can forge a turn.
 * Ordinary text is joined across neighbouring TEMPLATE and MESSAGE segments before it is split into
 * words, so "User: " + "hello" gives the ids the model was trained on. ANSWER and IDS segments
 * stand alone: nothing is joined across their ends.
 */
#ifndef TOKENIZER_SEGMENT_H
#define TOKENIZER_SEGMENT_H

#include "engine/base/str.h"

#include <stddef.h>
#include <stdint.h>

enum segment_kind {
    SEGMENT_TEMPLATE, /* the template's text: special tokens are recognised */
    SEGMENT_MESSAGE,  /* words of a system, user or tool message, or a template argument */
    SEGMENT_ANSWER,   /* words of an assistant message: tokenised by themselves */
    SEGMENT_IDS,      /* a finished answer as the ids that were generated */
};

#define SEGMENT_NO_MESSAGE SIZE_MAX

struct segment {
    enum segment_kind kind;
    struct bn_str text; /* TEMPLATE, MESSAGE, ANSWER */
    const int32_t *ids; /* (n_ids), IDS only */
    size_t n_ids;
    size_t message; /* index of the message that MESSAGE and ANSWER text is from, else
                       SEGMENT_NO_MESSAGE */
};

#endif
