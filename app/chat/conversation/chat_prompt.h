/*
 * A conversation to the ids that the session shall hold: render, put kept answers back as ids,
 * encode.
 *
 * Pure but for the clock value it is given; main thread.
 */
#ifndef APP_CHAT_PROMPT_H
#define APP_CHAT_PROMPT_H

#include "app/chat/conversation/transcript.h"
#include "app/options/options.h"
#include "templates/template.h"
#include "tokenizer/tokenizer.h"

struct prompt_maker {
    const struct tokenizer *tokenizer;
    const struct template *template; /* NULL: --raw, the texts one after another */
    const struct options *options;   /* --template-arg */
    time_t now; /* fixed at start, so that a date in a template does not change the prefix */
};

enum prompt_mode {
    PROMPT_ANSWER,   /* all exchanges, the last one's answer empty, and the generation prompt */
    PROMPT_CONTINUE, /* the same, then what the last answer has so far */
    PROMPT_WHOLE,    /* all that was said, no generation prompt */
};

struct prompt {
    struct token_list ids;
    bool starts_in_thought; /* the generation prompt opened a thought */
};
void prompt_finish(struct prompt *p); /* an all-zero prompt is fine */

/* Exchanges first .. n of the state as ids. BN_EFORMAT: the template refuses; BN_EARG: a bad
 * --template-arg, or a bound; BN_ENOMEM. */
bool prompt_encode(const struct prompt_maker *m, const struct transcript_state *state, size_t first,
                   enum prompt_mode mode, struct prompt *out, struct bn_error *err);

/* Turn ANSWER segments whose message kept its ids into IDS segments, where the ids say exactly that
 * text: all of them if the run is the message up to blanks at the ends, those of a part that begins
 * and ends on token borders. answers[i] belongs to message i; NULL: that message has none. */
void prompt_restore_ids(const struct tokenizer *t, struct segment *segments, size_t n_segments,
                        const struct answer *const *answers, size_t n_answers);

/* Do the ids of this answer still say its text? */
bool prompt_ids_fit(const struct tokenizer *t, const struct answer *answer);

#endif
