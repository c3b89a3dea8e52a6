/*
 * Error lines and exit codes.
 */
#include "app/report.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum exit_code report_code(enum report_stage stage, const struct bn_error *err)
{
    switch (err->code) {
    case BN_EARG:
        return EXIT_USAGE;
    case BN_ECONTEXT:
        return EXIT_CONTEXT;
    case BN_ECANCELLED:
        return EXIT_INTERRUPT;
    case BN_EIO:
        return stage == STAGE_LOAD ? EXIT_MODEL : EXIT_FILE;
    default:
        return stage == STAGE_LOAD ? EXIT_MODEL : EXIT_INTERNAL;
    }
}

/* Code point at s[0..n), or -1 for what is no valid UTF-8; *used is at least 1. */
static int32_t next_rune(const uint8_t *s, size_t n, size_t *used)
{
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *used = 1;
    if (s[0] < 0x80)
        return s[0];
    const size_t n_bytes = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n < n_bytes)
        return -1;
    int32_t rune = s[0] & (0x7f >> n_bytes);
    for (size_t i = 1; i < n_bytes; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return -1;
        rune = rune << 6 | (s[i] & 0x3f);
    }
    if (rune < least[n_bytes] || rune > 0x10ffff || (rune >= 0xd800 && rune <= 0xdfff))
        return -1;
    *used = n_bytes;
    return rune;
}

static bool is_harmless(int32_t rune)
{
    const bool is_control = rune < 0x20 || (rune >= 0x7f && rune < 0xa0);
    const bool is_separator = rune == 0x2028 || rune == 0x2029;
    const bool is_bidi = (rune >= 0x202a && rune <= 0x202e) || (rune >= 0x2066 && rune <= 0x2069) ||
                         rune == 0x200e || rune == 0x200f || rune == 0x061c;
    return !is_control && !is_separator && !is_bidi;
}

void report_safe(FILE *out, struct bn_str text)
{
    for (size_t i = 0, used; i < text.n_bytes; i += used) {
        const uint8_t *at = (const uint8_t *)text.ptr + i;
        if (is_harmless(next_rune(at, text.n_bytes - i, &used)))
            fwrite(at, 1, used, out);
        else
            fputs("\xef\xbf\xbd", out); /* U+FFFD */
    }
}

static void print_line(const char *program, const char *prefix, const char *text)
{
    fflush(stdout); /* what was said before the error stands before it */
    fprintf(stderr, "%s: %s", program, prefix);
    report_safe(stderr, bn_str_of(text));
    fputc('\n', stderr);
}

enum exit_code report_fail(const char *program, enum exit_code code, const char *fmt, ...)
{
    char text[700];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* cut if too long */
    va_end(args);
    print_line(program, "", text);
    return code;
}

enum exit_code report_error(const char *program, enum report_stage stage,
                            const struct bn_error *err)
{
    print_line(program, "", err->text);
    return report_code(stage, err);
}

void report_warnings(const char *program, const struct bn_notes *notes)
{
    for (size_t i = 0; i < notes->n; i++)
        if (notes->items[i].kind == BN_NOTE_WARNING)
            print_line(program, "warning: ", notes->items[i].text);
}

enum exit_code report_flush(const char *program)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_DONE;
    return report_fail(program, EXIT_FILE, "cannot write to standard output");
}
