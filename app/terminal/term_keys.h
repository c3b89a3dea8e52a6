/*
 * Finds pastes, and the keys that the painters handle themselves (F2 and scrolling), in the bytes
 * that the terminal sends, before the line editor gets them. Pure functions.
 */
#ifndef APP_TERM_KEYS_H
#define APP_TERM_KEYS_H

#include <stdbool.h>
#include <stddef.h>

/* The marks that a terminal with bracketed paste (tty.h) sends before and after a paste. */
#define TERM_PASTE_BEGIN "\033[200~"
#define TERM_PASTE_END "\033[201~"
#define TERM_PASTE_BYTES (sizeof(TERM_PASTE_BEGIN) - 1) /* length of either mark */

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
    size_t at, n_bytes; /* offset and length of its bytes; TERM_KEY_NONE: the end, and 0 */
};

/* The first `mark` (TERM_PASTE_BEGIN or TERM_PASTE_END) in bytes, or NULL. */
const char *term_paste_find(const char *bytes, size_t n_bytes, const char *mark);
/* Whether TERM_PASTE_BEGIN is at offset `at` <= n_bytes. */
bool term_paste_begins(const char *bytes, size_t n_bytes, size_t at);
/* The offset after the end mark of the paste that begins at `at`; n_bytes if the end mark is
 * missing. */
size_t term_paste_end(const char *bytes, size_t n_bytes, size_t at);
/* The first key `wanted` outside of pastes; TERM_KEY_NONE: the first key of enum term_key. */
struct term_key_hit term_keys_find(const char *bytes, size_t n_bytes, enum term_key wanted);
/* Number of bytes at the end that may be the beginning of an escape sequence, of a key or of a
 * mark, whose other bytes have not arrived yet. */
size_t term_keys_tail(const char *bytes, size_t n_bytes);

#endif
