/*
 * Finds the text with which the template closes a thought. The program closes a thought that has
 * reached its budget with the same text.
 */
#ifndef APP_THOUGHT_CLOSE_H
#define APP_THOUGHT_CLOSE_H

#include "app/chat/conversation/chat_prompt.h"

/* Append to `out` the ids of the text between a thought and the answer as the template writes it.
 * If the template does not contain this text, it is "\n</think>\n\n", because the models of such
 * templates were trained with it. If the template has no thoughts, nothing is appended. BN_EARG: a
 * bad --template-arg. BN_ENOMEM. */
bool thought_close_ids(const struct prompt_maker *m, struct token_list *out, struct bn_error *err);

/* Whether the generation prompt contains an empty thought that is closed already. Templates write
 * this if thoughts are off. Also false if the template cannot render a prompt. m->template must not
 * be NULL. */
bool thought_is_closed(const struct prompt_maker *m);

/* The number of ids at the end of a prompt that the next prompt, in which an answer follows, does
 * not repeat. For example, a template ends prompts with <think>, but drops the thoughts of earlier
 * turns. 0 also if the template cannot render the conversations, and with --raw. */
size_t thought_n_changing(const struct prompt_maker *m);

#endif
