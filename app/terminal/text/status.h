/*
 * Formats the status row: state of the chat, speed, use of the context, and settings. Decides when
 * to write it again. Pure functions.
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

/* A change of the row takes about 45 bytes, most of them for the way to the row and back. */
#define STATUS_TEXT_BYTES 64

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
    bool unsaved;         /* the conversation has changed since it was written to a named chat */
};

/* Write at most `width` characters and a 0 to `out`, a buffer of out_bytes >= 1 bytes; fewer
 * characters if the buffer is smaller. */
void status_format(const struct status *s, size_t width, char *out, size_t out_bytes);

/* When to write the status row again. Zero: now. */
struct status_clock {
    double written;          /* clock_seconds of the last time; 0: write it now */
    enum status_state state; /* of the row at that time */
    size_t n_text;           /* bytes of the answer that were written since then */
};
/* Milliseconds, rounded up, until the row of a chat in this state is due; 0: now, also when the
 * state has changed. During an answer the row is due after each STATUS_TEXT_BYTES of text, at most
 * ten times a second, and at least once a second. So it keeps up with a fast model. On a slow
 * connection it takes fewer bytes than the answer if the model writes more than 45 bytes a second;
 * for a slower model, it takes about 45 bytes a second. */
int status_wait(const struct status_clock *c, enum status_state state, double now);
/* The row was written now. */
void status_written(struct status_clock *c, enum status_state state, double now);

/* How full the context is: 0 below 80 % or if n_ctx is 0, 1 from 80 % on, 2 from 95 % on. */
int status_fullness(const struct status *s);

#endif
