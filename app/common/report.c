/*
 * Error lines and exit codes: see report.h.
 */
#include "app/common/report.h"

#include "engine/base/utf8.h"

#include <stdarg.h>
#include <stdio_ext.h>

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

void report_text(FILE *out, struct bn_str text, enum term_lines lines)
{
    struct term_char c;
    char block[512]; /* fewer writes, because stderr has no buffer of its own */
    size_t n = 0;
    for (size_t at = 0; term_text_next(text, &at, &c);) {
        const bool is_blank = lines == TERM_ONE_LINE && (c.code == '\n' || c.code == '\t');
        n += utf8_encode(is_blank ? ' ' : c.code, block + n);
        if (n > sizeof(block) - 4) { /* no room for the longest character */
            fwrite(block, 1, n, out);
            n = 0;
        }
    }
    fwrite(block, 1, n, out);
}

void report_safe(FILE *out, struct bn_str text)
{
    report_text(out, text, TERM_ONE_LINE);
}

static void print_line(const char *program, const char *prefix, const char *text)
{
    fflush(stdout); /* so that earlier output appears before the error */
    fprintf(stderr, "%s: %s", program, prefix);
    report_safe(stderr, bn_str_of(text));
    fputc('\n', stderr);
}

static void print_format(const char *program, const char *fmt, va_list args)
{
    char text[700];
    (void)vsnprintf(text, sizeof(text), fmt, args); /* cut if too long */
    print_line(program, "", text);
}

void report_line(const char *program, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_format(program, fmt, args);
    va_end(args);
}

enum exit_code report_fail(const char *program, enum exit_code code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_format(program, fmt, args);
    va_end(args);
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

const char *report_version(void)
{
    return BITNET_VERSION; /* app/meson.build defines it for this file */
}

void report_drop_output(void)
{
    __fpurge(stdout);
}

enum exit_code report_flush(const char *program)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_DONE;
    return report_fail(program, EXIT_FILE, "cannot write to standard output");
}
