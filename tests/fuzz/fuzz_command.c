/*
 * Input of the user. If the first byte is even, the rest is a line at the prompt: it must be parsed
 * as a message or a command, and all parts of the result must be inside the line. If the first byte
 * is odd, the rest is a command line whose words end at zero bytes: it must be accepted, or refused
 * with a message.
 */
#include "app/common/slash.h"
#include "app/options/chat_options.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 64

static void check(bool ok)
{
    if (!ok)
        abort();
}

static bool is_inside(struct bn_str part, struct bn_str whole)
{
    return part.n_bytes == 0 || (part.ptr >= whole.ptr && part.n_bytes <= whole.n_bytes &&
                                 (size_t)(part.ptr - whole.ptr) <= whole.n_bytes - part.n_bytes);
}

/* Newlines may only be among the blanks at the end. */
static bool is_one_line(struct bn_str entry)
{
    size_t n = entry.n_bytes;
    while (n > 0 && entry.ptr[n - 1] && strchr(" \t\r\n", entry.ptr[n - 1]))
        n--; /* a NUL is no blank, but strchr finds it */
    return !memchr(entry.ptr, '\n', n);
}

static void check_entry(struct bn_str entry)
{
    const struct slash s = slash_parse(entry);
    check(is_inside(s.name, entry) && is_inside(s.text, entry));
    /* A message has a name only if its several lines begin with a command. */
    if (s.kind == SLASH_COMMAND || s.name.n_bytes > 0) {
        check(s.kind != SLASH_NOTHING && entry.ptr[0] == '/');
        check(s.name.n_bytes == 0 || !memchr(s.name.ptr, '/', s.name.n_bytes));
        check(is_one_line(entry) == (s.kind == SLASH_COMMAND));
    }
    check(s.kind != SLASH_NOTHING || s.text.n_bytes == 0);
}

static void check_words(const char *bytes, size_t n_bytes)
{
    char program[] = "bitnet-chat", *argv[WORDS_MAX + 2] = {program};
    int argc = 1;
    struct options *o;
    struct bn_error err = {0};
    char *copy = malloc(n_bytes + 1);
    check(copy && chat_options_open(&o, &err));
    if (n_bytes > 0)
        memcpy(copy, bytes, n_bytes);
    copy[n_bytes] = '\0';
    for (size_t at = 0; at < n_bytes && argc <= WORDS_MAX; at += strlen(copy + at) + 1)
        argv[argc++] = copy + at;
    if (options_parse(o, argc, argv, &err)) {
        size_t n_words;
        (void)options_words(o, &n_words);
        check(n_words < (size_t)argc);
    } else {
        check(err.code == BN_EARG && err.text[0]);
    }
    options_close(o);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes == 0)
        return 0;
    if (bytes[0] % 2 == 0)
        check_entry((struct bn_str){(const char *)bytes + 1, n_bytes - 1});
    else
        check_words((const char *)bytes + 1, n_bytes - 1);
    return 0;
}
