/*
 * Formats the status row: state of the chat, speed, use of the context, and settings. Pure
 * functions.
 *
 * The row is ASCII; each other character and each control character becomes a question mark. The
 * order of the items is fixed. If the row is too narrow, the last items are left out; the first
 * item is cut.
 */
#ifndef APP_STATUS_H
#define APP_STATUS_H

#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

#define STATUS_SEPARATOR " | " /* between items */

enum status_state {
    STATUS_LOADING,    /* the model opens */
    STATUS_READING,    /* prefill of a prompt */
    STATUS_GENERATING, /* decode of an answer */
    STATUS_READY,
    STATUS_STOPPING /* the user has stopped the answer */
};

struct status {
    enum status_state state;
    /* LOADING: bytes. READING: tokens of the prompt. For both, n_total is 0 if unknown. GENERATING:
     * n_done is the number of generated tokens. */
    size_t n_done, n_total;
    double seconds_left;  /* READING: until the end of the prefill; 0: unknown */
    double rate;          /* tokens per second; 0: unknown */
    size_t n_used, n_ctx; /* context in tokens; n_ctx 0: unknown */
    const char *model;    /* NULL or "": left out */
    const char *device;   /* NULL or "": left out */
    const char *settings; /* for example "temp 0.2 seed 7"; NULL or "": left out */
    const char *hint;     /* for example "Esc stops"; NULL or "": left out */
    bool unsaved; /* the conversation has changed since it was written to a saved chat. last.json
                             does not count as a saved chat. */
};

/* Write at most `width` characters and a 0 to `out`, a buffer of out_bytes >= 1 bytes; fewer
 * characters if the buffer is smaller. */
void status_format(const struct status *s, size_t width, char *out, size_t out_bytes);

/* How full the context is: 0 below 80 % or if n_ctx is 0, 1 from 80 % on, 2 from 95 % on. */
int status_fullness(const struct status *s);

#endif
