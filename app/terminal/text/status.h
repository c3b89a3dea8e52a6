/*
 * Formats the status row: what the chat does, how fast, how full the context is. Pure functions.
 *
 * The row is ASCII; other characters become question marks. Items have a fixed priority. If the row
 * is too narrow, the last items are left out.
 */
#ifndef APP_STATUS_H
#define APP_STATUS_H

#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

#define STATUS_SEPARATOR " | " /* between items */

enum status_state {
    STATUS_LOADING,
    STATUS_READING,
    STATUS_GENERATING,
    STATUS_READY,
    STATUS_STOPPING
};

struct status {
    enum status_state state;
    size_t n_done, n_total; /* LOADING: bytes, READING: tokens, GENERATING: n_done tokens */
    double seconds_left;    /* READING; 0: unknown */
    double rate;            /* tokens per second; 0: unknown */
    size_t n_used, n_ctx;   /* context in tokens; n_ctx 0: unknown */
    const char *model;      /* cleaned; NULL: left out */
    const char *device;
    const char *settings; /* "temp 0.2 seed 7": not the defaults; NULL or "" */
    const char *hint;     /* "Esc stops"; NULL or "" */
    bool unsaved;
};

/* Write at most `width` characters and a 0 to out. */
void status_format(const struct status *s, size_t width, char *out, size_t out_bytes);

/* How full the context is: 0, 1 from 80 %, 2 from 95 %. */
int status_pressure(const struct status *s);

#endif
