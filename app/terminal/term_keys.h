/*
 * What is looked for in keys before the line editor sees them: the painter's own, and pastes, which
 * a terminal marks. Pure.
 */
#ifndef APP_TERM_KEYS_H
#define APP_TERM_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#define TERM_PASTE_BEGIN "\033[200~"
#define TERM_PASTE_END "\033[201~"
#define TERM_PASTE_BYTES (sizeof(TERM_PASTE_BEGIN) - 1) /* of either mark */

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

/* The first such mark (TERM_PASTE_BEGIN or _END), or NULL. */
const char *term_paste_find(const char *bytes, size_t n_bytes, const char *mark);
bool term_paste_begins(const char *bytes, size_t n_bytes, size_t at);
/* Where the paste that begins at `at` has ended; n_bytes while it has not. */
size_t term_paste_end(const char *bytes, size_t n_bytes, size_t at);
/* The first such key outside of pastes. */
struct term_key_hit term_keys_find(const char *bytes, size_t n_bytes);
/* Bytes at the end that begin an escape sequence which the next bytes may complete. */
size_t term_keys_tail(const char *bytes, size_t n_bytes);

#endif
