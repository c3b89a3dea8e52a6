/*
 * The text of a call, joined, with the special tokens of the template found in it.
 *
 * All segments' text lies in one piece of memory. Neighbouring segments of a kind are one stretch;
 * an empty MESSAGE is nothing, so the template's text around it is one stretch, too.
 */
#ifndef TOKENIZER_PROMPT_TEXT_H
#define TOKENIZER_PROMPT_TEXT_H

#include "tokenizer/tokenizer_state.h"

struct prompt_stretch {
    enum segment_kind kind;
    size_t start, end;         /* in the text; equal for SEGMENT_IDS */
    const struct segment *ids; /* SEGMENT_IDS */
};

/* A special token in a stretch of the template's text. */
struct prompt_hit {
    size_t start, end;
    int32_t id;
};

struct prompt_text {
    char *text; /* (n_text) */
    size_t n_text;
    struct prompt_stretch *stretches; /* (n_stretches) */
    size_t n_stretches;
    struct prompt_hit *hits; /* (n_hits) ascending */
    size_t n_hits, hits_cap;
    uint8_t *message_ok; /* (specials.n): what other text may name: user-defined, not a turn's end,
                            not in the template */
    bool first_ok[256];  /* such a text begins with this byte */
};

/* The segments outlive it. BN_ENOMEM. BN_EARG: an id outside the vocabulary, or too much text. */
bool prompt_text_init(struct prompt_text *p, const struct tokenizer *t,
                      const struct segment *segments, size_t n_segments, struct bn_error *err);
void prompt_text_finish(struct prompt_text *p);

#endif
