/*
 * The joined text of one call to tokenizer_encode, with the special tokens of the template.
 *
 * The text of all segments is in one buffer. Neighbouring TEMPLATE or MESSAGE segments of the same
 * kind form one span. Empty segments are skipped, so template text on both sides of an empty
 * MESSAGE is one span.
 */
#ifndef TOKENIZER_PROMPT_TEXT_H
#define TOKENIZER_PROMPT_TEXT_H

#include "tokenizer/tokenizer_state.h"

struct prompt_span {
    enum segment_kind kind;
    size_t start, end;         /* range in the text; empty for SEGMENT_IDS */
    const struct segment *ids; /* only for SEGMENT_IDS */
};

/* A special token in the template's text. */
struct prompt_hit {
    size_t start, end;
    int32_t id;
};

struct prompt_text {
    char *text; /* (n_text) */
    size_t n_text;
    struct prompt_span *spans; /* (n_spans) */
    size_t n_spans;
    struct prompt_hit *hits; /* (n_hits) ordered by position */
    size_t n_hits, hits_cap;
    uint8_t *message_ok; /* (specials.n) special tokens allowed outside the template: user-defined
                            ones that end no answer and do not occur in the template */
    bool first_ok[256];  /* an allowed token begins with this byte */
};

/* The segments must outlive it. BN_ENOMEM. BN_EARG: an id outside the vocabulary, or too much text.
 */
bool prompt_text_init(struct prompt_text *p, const struct tokenizer *t,
                      const struct segment *segments, size_t n_segments, struct bn_error *err);
void prompt_text_finish(struct prompt_text *p);

#endif
