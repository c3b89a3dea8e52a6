/*
 * The status row as text: what the chat does, how fast, how full the context is. Pure.
 *
 * ASCII only: other characters of a name become question marks. Items stand by priority and are
 * left out from the right where the row is too narrow.
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
    double seconds_left;    /* READING; 0: not known yet */
    double rate;            /* tokens a second; 0: not known yet */
    size_t n_used, n_ctx;   /* context; n_ctx 0: not known yet */
    const char *model;      /* shown names, cleaned; NULL: left out */
    const char *device;
    const char *settings; /* "temp 0.2 seed 7": what differs from the defaults; NULL or "" */
    const char *hint;     /* "Esc stops"; NULL or "" */
    struct bn_str typed;  /* ahead, while no editor shows it: its end, as far as there is room */
    bool unsaved;
};

/* At most `width` characters and a 0 into out. */
void status_format(const struct status *s, size_t width, char *out, size_t out_bytes);

/* How pressing the fill of the context is: 0, 1 from 80 %, 2 from 95 %. */
int status_pressure(const struct status *s);

#endif
