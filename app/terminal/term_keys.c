/*
 * Searches for keys and pastes: see term_keys.h. The table has the sequences of xterm, rxvt and the
 * Linux console. terminfo is not enough, because it has no standard names for Ctrl-Home and
 * Ctrl-End.
 */
#include "app/terminal/term_keys.h"

#include <string.h>

static const struct {
    const char *bytes;
    enum term_key key;
} table[] = {
    {"\033OQ", TERM_KEY_F2},       {"\033[12~", TERM_KEY_F2},       {"\033[[B", TERM_KEY_F2},
    {"\033[5~", TERM_KEY_PAGE_UP}, {"\033[6~", TERM_KEY_PAGE_DOWN}, {"\033[1;5H", TERM_KEY_FIRST},
    {"\033[7^", TERM_KEY_FIRST},   {"\033[1;5F", TERM_KEY_LAST},    {"\033[8^", TERM_KEY_LAST},
};

const char *term_paste_find(const char *bytes, size_t n_bytes, const char *mark)
{
    for (size_t at = 0; at + TERM_PASTE_BYTES <= n_bytes; at++) {
        /* memchr, because a paste may have millions of bytes. */
        const char *esc = memchr(bytes + at, '\033', n_bytes - at);
        if (!esc || (size_t)(bytes + n_bytes - esc) < TERM_PASTE_BYTES)
            return NULL;
        if (memcmp(esc, mark, TERM_PASTE_BYTES) == 0)
            return esc;
        at = (size_t)(esc - bytes);
    }
    return NULL;
}

bool term_paste_begins(const char *bytes, size_t n_bytes, size_t at)
{
    return n_bytes - at >= TERM_PASTE_BYTES &&
           memcmp(bytes + at, TERM_PASTE_BEGIN, TERM_PASTE_BYTES) == 0;
}

size_t term_paste_end(const char *bytes, size_t n_bytes, size_t at)
{
    at += TERM_PASTE_BYTES;
    const char *end = term_paste_find(bytes + at, n_bytes - at, TERM_PASTE_END);
    return end ? (size_t)(end - bytes) + TERM_PASTE_BYTES : n_bytes;
}

struct term_key_hit term_keys_find(const char *bytes, size_t n_bytes, enum term_key wanted)
{
    for (size_t at = 0; at < n_bytes;) {
        const char *esc = memchr(bytes + at, '\033', n_bytes - at);
        if (!esc)
            break;
        at = (size_t)(esc - bytes);
        if (term_paste_begins(bytes, n_bytes, at)) {
            at = term_paste_end(bytes, n_bytes, at);
            continue;
        }
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
            const size_t n = strlen(table[i].bytes);
            if ((wanted == TERM_KEY_NONE || table[i].key == wanted) && n_bytes - at >= n &&
                memcmp(esc, table[i].bytes, n) == 0)
                return (struct term_key_hit){table[i].key, at, n};
        }
        at++;
    }
    return (struct term_key_hit){TERM_KEY_NONE, n_bytes, 0};
}

size_t term_keys_tail(const char *bytes, size_t n_bytes)
{
    /* The bytes from the last Esc on. Sequences of keys are shorter than 16 bytes. */
    for (size_t back = 1; back <= n_bytes && back <= 16; back++) {
        const char *at = bytes + n_bytes - back;
        if (*at != '\033')
            continue;
        if (back > 1 && at[1] != '[' && at[1] != 'O')
            return 0;
        if (back == 3 && at[1] == '[' && at[2] == '[')
            return back; /* a function key of the Linux console */
        /* Digits, punctuation and blanks are parameters; any other byte ends the sequence. */
        for (size_t i = 2; i < back; i++)
            if (at[i] < ' ' || at[i] >= '@')
                return 0;
        return back;
    }
    return 0;
}
