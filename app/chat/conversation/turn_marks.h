/*
 * Finds the marks: the tokens that delimit turns in the template in use.
 *
 * If the ids of an answer contained such a token, the model would read one answer as several turns,
 * although the text of the answer does not show it. So the tokenizer must treat these tokens like
 * the end of an answer: an answer ends when the model samples one, and a saved answer with one is
 * tokenised again from its text.
 */
#ifndef APP_TURN_MARKS_H
#define APP_TURN_MARKS_H

#include "app/options/options.h"
#include "templates/template.h"
#include "tokenizer/tokenizer.h"

/* Find the marks in short conversations rendered with this template, with thoughts on and off, and
 * pass them to tokenizer_add_ends. The beginning-of-text token is always a mark, and the only one
 * if `template` is NULL (--raw). Markers of thoughts and tools that an answer may contain are not
 * among them. A conversation that the template refuses adds no marks. Call this before other
 * threads use the tokenizer. BN_EARG: a bad --template-arg. BN_ENOMEM. Errors of
 * tokenizer_encode. */
bool turn_marks_add(const struct template *template, const struct options *options,
                    struct tokenizer *tokenizer, struct bn_error *err);

#endif
