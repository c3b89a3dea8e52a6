/*
 * Turns a conversation into the ids of a prompt: renders the template, puts the ids of earlier
 * answers back, and encodes the rest.
 *
 * Pure, except that the time is part of the input. Main thread.
 */
#ifndef APP_CHAT_PROMPT_H
#define APP_CHAT_PROMPT_H

#include "app/chat/conversation/transcript.h"
#include "app/options/options.h"
#include "templates/template.h"
#include "tokenizer/tokenizer.h"

struct prompt_maker {
    const struct tokenizer *tokenizer;
    const struct template *template; /* NULL with --raw: the texts are joined */
    const struct options *options;   /* --template-arg */
    time_t now; /* fixed when the program starts, so that a date in a template does not change the
                   prefix */
};

enum prompt_mode {
    PROMPT_ANSWER,   /* all turns, with an empty last answer, and the generation prompt */
    PROMPT_CONTINUE, /* the same, then the last answer so far */
    PROMPT_WHOLE,    /* the whole conversation, without a generation prompt */
};

struct prompt {
    struct token_list ids;
    bool starts_in_thought; /* the generation prompt opened a thought */
};
void prompt_finish(struct prompt *p); /* an all-zero prompt is fine */

/* Encode turns first .. n of the state. BN_EFORMAT: the template reports an error. BN_EARG: a bad
 * --template-arg, or a limit of the template interpreter. BN_ENOMEM. */
bool prompt_encode(const struct prompt_maker *m, const struct transcript_state *state, size_t first,
                   enum prompt_mode mode, struct prompt *out, struct bn_error *err);

/* Replace ANSWER segments by IDS segments where the ids of the message still have the same text.
 * All ids are used if the segment is the message up to blanks at its ends; the matching ids if it
 * is a part that begins and ends between tokens. answers[i] belongs to message i; NULL: that
 * message has none. */
void prompt_restore_ids(const struct tokenizer *t, struct segment *segments, size_t n_segments,
                        const struct answer *const *answers, size_t n_answers);

/* Whether the ids of this answer decode to its text. */
bool prompt_ids_fit(const struct tokenizer *t, const struct answer *answer);

#endif
