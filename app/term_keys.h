/*
 * Keys that are the painter's own, found in what was typed before the line editor sees it. Pure.
 */
#ifndef APP_TERM_KEYS_H
#define APP_TERM_KEYS_H

#include <stddef.h>

enum term_key {
    TERM_KEY_NONE,
    TERM_KEY_F2,
    TERM_KEY_PAGE_UP,
    TERM_KEY_PAGE_DOWN,
    TERM_KEY_FIRST, /* Ctrl-Home */
    TERM_KEY_LAST,  /* Ctrl-End */
};

struct term_key_hit {
    enum term_key key;
    size_t at, n_bytes; /* NONE: at is the number of bytes */
};

/* Where the paste whose marker is at `at` has ended; n_bytes while it has not. */
size_t term_keys_after_paste(const char *bytes, size_t n_bytes, size_t at);
/* The first such key outside of pastes. */
struct term_key_hit term_keys_find(const char *bytes, size_t n_bytes);
/* Bytes at the end that begin an escape sequence which the next bytes may complete. */
size_t term_keys_tail(const char *bytes, size_t n_bytes);

#endif
