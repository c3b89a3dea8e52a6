/*
 * Finds the text with which the template closes a thought. The program closes a thought that has
 * reached its budget with the same text.
 */
#ifndef APP_THOUGHT_CLOSE_H
#define APP_THOUGHT_CLOSE_H

#include "app/chat/conversation/chat_prompt.h"

/* Append to `out` the ids of the text between a thought and the answer as the template writes it.
 * If the template contains no such text, or only one of more than 100 bytes, the text is
 * "\n</think>\n\n", because the models of such templates were trained with it. If there is no
 * template (--raw), or it has no thoughts, nothing is appended. BN_EARG: a bad --template-arg.
 * BN_ENOMEM. Errors of tokenizer_encode. */
bool thought_close_ids(const struct prompt_maker *m, struct token_list *out, struct bn_error *err);

/* Whether the generation prompt contains <think> and after it </think>. Templates write such an
 * empty thought if thoughts are off. Also false if the prompt cannot be rendered, for example with
 * a bad --template-arg. m->template must not be NULL. */
bool thought_is_closed(const struct prompt_maker *m);

/* For bn_control.n_stable: the number of ids at the end of a prompt that the next prompt, with the
 * answer and another question, does not repeat. An example is a template that ends each prompt with
 * <think>, but leaves out the thoughts of earlier turns. The number is that of a short sample
 * conversation. 0 also if this conversation cannot be encoded, and with --raw. */
size_t thought_n_unstable(const struct prompt_maker *m);

#endif
