/*
 * The start of a turn in chat.c, for chat_events.c: a turn that waited starts when the model is
 * loaded.
 */
#ifndef APP_CHAT_PRIVATE_H
#define APP_CHAT_PRIVATE_H

#include "app/chat/chat.h"

/* Encode the prompt of c->turn with these settings and submit the job. The model must be loaded.
 * After an error no job is submitted, and *err says why. */
bool chat_start_turn(struct chat *c, const struct options *settings, struct bn_error *err);

#endif
