/*
 * Turns a conversation into the ids of a prompt: renders the template, reuses the ids of earlier
 * answers, and encodes the rest.
 *
 * Pure functions; the time is part of the input.
 */
#ifndef APP_CHAT_PROMPT_H
#define APP_CHAT_PROMPT_H

#include "app/chat/conversation/thought.h"
#include "app/chat/conversation/transcript.h"
#include "app/options/options.h"
#include "templates/template.h"
#include "tokenizer/tokenizer.h"

struct prompt_maker {
    const struct tokenizer *tokenizer;
    const struct template *template; /* NULL with --raw: the texts are joined */
    const struct options *options;   /* --template-arg, --think, --think-budget */
    time_t now; /* when the program started; constant, so a date in a prompt does not change */
};

enum prompt_mode {
    /* The turns, but without the answer of the last one, then the generation prompt: the text with
     * which the template begins an answer. */
    PROMPT_ANSWER,
    PROMPT_CONTINUE, /* PROMPT_ANSWER, then the answer of the last turn so far. A turn must exist */
    PROMPT_WHOLE,    /* the turns with their answers, without a generation prompt */
    /* What comes before the first message of the user. There must be no turns. This exists because
     * some templates report an error if there is no message of the user. */
    PROMPT_START,
};

/* The turns of a prompt: the first n_first, then those from index n_skipped to the last. */
struct prompt_window {
    size_t n_first, n_skipped; /* n_first <= n_skipped <= number of turns */
    enum prompt_mode mode;
};

struct prompt {
    struct token_list ids;
    bool starts_in_thought; /* the generation prompt opened a thought. With PROMPT_CONTINUE the
                               answer so far may have closed it */
    size_t n_earlier;       /* ids up to the end of the last answer in the prompt; 0: no answer. May
                               be wrong by 1 with SentencePiece; only statistics use it */
    /* The template has left out the last message of the user, or the system message, as a whole. */
    bool lacks_question, lacks_system;
};
void prompt_finish(struct prompt *p); /* an all-zero prompt is fine */

/* Encode the system message and the turns in the window. There may be no ids. Free `out` with
 * prompt_finish. BN_EFORMAT: the template reports an error, or exceeds a bound of the template
 * interpreter. BN_EARG: a bad --template-arg. BN_ENOMEM. Errors of tokenizer_encode. */
bool prompt_encode(const struct prompt_maker *m, const struct transcript_state *state,
                   const struct prompt_window *window, struct prompt *out, struct bn_error *err);

/* What the answer to this prompt begins with, for struct thought_splitter and think_watch. */
enum thought_mode prompt_thought_mode(const struct prompt_maker *m, const struct prompt *p);
/* The same for a stored answer: the mode with which thought_split splits its text. */
enum thought_mode prompt_answer_mode(const struct prompt_maker *m, const struct answer *a);

/* A message for template_input.messages: a dict with role and content, in the arena. NULL: out of
 * memory. */
struct template_value *prompt_message(struct template_arena *arena, const char *role,
                                      struct bn_str content);

/* Replace ANSWER segments by IDS segments if the ids of the answer decode to the same text. Uses
 * all ids if the segment is the whole message except for blanks at its ends, and some of them if
 * the segment is a part of the message that begins and ends between tokens. answers[i] is the
 * answer in message i or NULL. The new segments point to the ids of the answers. */
void prompt_restore_ids(const struct tokenizer *t, struct segment *segments, size_t n_segments,
                        const struct answer *const *answers, size_t n_answers);

/* Whether the ids of this answer decode to its text, which may lack the leading space that
 * SentencePiece adds. False if there are no ids. */
bool prompt_ids_fit(const struct tokenizer *t, const struct answer *answer);
/* Drop the last ids until prompt_ids_fit is true. If it never is, for example because the text ends
 * within a token, no ids are left. */
void prompt_trim_ids(const struct tokenizer *t, struct answer *answer);

#endif
