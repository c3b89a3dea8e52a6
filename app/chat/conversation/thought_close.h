/*
 * How the template closes a thought. The program closes a thought that has reached its budget in
 * the same way.
 */
#ifndef APP_THOUGHT_CLOSE_H
#define APP_THOUGHT_CLOSE_H

#include "app/chat/conversation/chat_prompt.h"

/* Encode the text between a thought and the answer as the template writes it, for example
 * "\n</think>\n\n". If the template does not show this text, the same is used as in the example,
 * because the models of these templates were trained with it. Without thoughts in the template
 * *out is empty. BN_EARG: a bad --template-arg. BN_ENOMEM. */
bool thought_close_ids(const struct prompt_maker *m, struct token_list *out, struct bn_error *err);

/* Whether a prompt ends with a thought that is closed already, because thoughts are off. False also
 * if the template cannot render a prompt. */
bool thought_is_closed(const struct prompt_maker *m);

/* The number of ids at the end of a prompt that the next prompt does not have in front of the
 * answer: for example <think> and a newline. 0 if the template cannot render the conversations. */
size_t thought_n_changing(const struct prompt_maker *m);

#endif
