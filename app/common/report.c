/*
 * Error lines, exit codes and progress: see report.h.
 */
#include "app/common/report.h"

#include "engine/base/clock.h"
#include "engine/base/size.h"
#include "engine/base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The columns of a row on the terminal of `out`, without the last one, because the width of some
 * characters differs between terminals. SIZE_MAX: `out` is no terminal, or its width is unknown. */
static size_t row_columns(FILE *out)
{
    struct winsize size;
    if (!isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col < 2)
        return SIZE_MAX;
    return size.ws_col - 1u;
}

/* ---- progress ---- */

#define SECONDS_BETWEEN 0.1 /* a faster row would be hard to read */

static size_t n_shown;  /* columns of the progress row on the screen; 0: there is none */
static double shown_at; /* when the last row was shown */

void report_progress(const char *fmt, ...)
{
    char text[120];
    va_list args;
    if (!isatty(STDERR_FILENO))
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* cut if too long */
    va_end(args);
    report_progress_erase();
    n_shown = size_min(strlen(text), row_columns(stderr)); /* SIZE_MAX: the width is unknown */
    shown_at = clock_seconds();
    fprintf(stderr, "%.*s", (int)n_shown, text);
    (void)fflush(stderr); /* an error affects only this row */
}

void report_progress_erase(void)
{
    if (n_shown > 0)
        fprintf(stderr, "\r%*s\r", (int)n_shown, ""); /* works on every terminal */
    n_shown = 0;
}

bool report_progress_due(void)
{
    return clock_seconds() - shown_at >= SECONDS_BETWEEN;
}

void report_progress_percent(const char *label, size_t n_done, size_t n_total)
{
    if (n_total > 0 && report_progress_due())
        report_progress("%s %.0f%%", label, 100.0 * (double)n_done / (double)n_total);
}

/* ---- lines ---- */

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

/* Output that is written in one piece, because stderr has no buffer of its own. A piece of at most
 * PIPE_BUF bytes is not mixed with the output of other processes in a pipe. */
struct block {
    FILE *out;
    size_t n_bytes;
    char bytes[REPORT_BLOCK_BYTES];
};

static void block_write(struct block *b)
{
    fwrite(b->bytes, 1, b->n_bytes, b->out);
    b->n_bytes = 0;
}

/* n_bytes <= REPORT_BLOCK_BYTES */
static void block_add(struct block *b, const char *bytes, size_t n_bytes)
{
    if (n_bytes > sizeof(b->bytes) - b->n_bytes)
        block_write(b);
    memcpy(b->bytes + b->n_bytes, bytes, n_bytes);
    b->n_bytes += n_bytes;
}

static void add_text(struct block *b, struct bn_str text, enum term_lines lines)
{
    struct term_char c;
    char bytes[4];
    for (size_t at = 0; term_text_next(text, &at, &c);) {
        const bool is_blank = lines == TERM_ONE_LINE && (c.code == '\n' || c.code == '\t');
        block_add(b, bytes, utf8_encode(is_blank ? ' ' : c.code, bytes));
    }
}

void report_text(FILE *out, struct bn_str text, enum term_lines lines)
{
    struct block b = {.out = out};
    add_text(&b, text, lines);
    block_write(&b);
}

void report_size(uint64_t n_bytes, char out[REPORT_SIZE_BYTES])
{
    static const struct {
        const char *name;
        int n_decimals;
    } units[] = {{"bytes", 0}, {"kB", 1}, {"MB", 1}, {"GB", 2}, {"TB", 2}};
    double v = (double)n_bytes;
    size_t u = 0;
    for (; v >= 999.95 && u < 4; u++) /* %.1f would print 1000.0 */
        v /= 1000;
    (void)snprintf(out, REPORT_SIZE_BYTES, "%.*f %s", units[u].n_decimals, v, units[u].name);
}

void report_safe(FILE *out, struct bn_str text)
{
    report_text(out, text, TERM_ONE_LINE);
}

/* The number of bytes of text that fit in a row of n_columns columns, up to the end of a word. At
 * least one word, and not more than one line. */
static size_t row_bytes(struct bn_str text, enum term_lines lines, size_t n_columns)
{
    struct term_char c;
    size_t width = 0, words_end = 0;
    bool in_word = false;
    for (size_t start = 0, at = 0; term_text_next(text, &at, &c); start = at) {
        const bool is_blank = c.code == ' ' || c.code == '\t' || c.code == '\n';
        if (is_blank && in_word)
            words_end = start;
        if (c.code == '\n' && lines == TERM_KEEP_LINES)
            return start;
        in_word = !is_blank;
        width += c.width;
        if (width > n_columns && !is_blank && words_end > 0)
            return words_end;
    }
    return text.n_bytes;
}

static void add_words(struct block *b, struct bn_str text, enum term_lines lines, size_t column)
{
    const size_t n_columns = row_columns(b->out);
    if (n_columns == SIZE_MAX) {
        add_text(b, text, lines);
        return;
    }
    while (text.n_bytes > 0) {
        const size_t room = n_columns > column ? n_columns - column : 0;
        size_t n = row_bytes(text, lines, room);
        add_text(b, (struct bn_str){text.ptr, n}, lines);
        if (n == text.n_bytes)
            return;
        if (text.ptr[n] == '\n')
            n++;
        else /* the blanks at the break are left out */
            while (text.ptr[n] == ' ' || text.ptr[n] == '\t')
                n++;
        text = (struct bn_str){text.ptr + n, text.n_bytes - n};
        block_add(b, "\n", 1);
        column = 0;
    }
}

void report_words(FILE *out, struct bn_str text, enum term_lines lines, size_t column)
{
    struct block b = {.out = out};
    add_words(&b, text, lines, column);
    block_write(&b);
}

void report_notice(const char *label, struct bn_str text, enum term_lines lines,
                   enum report_wrap wrap)
{
    struct block b = {.out = stderr};
    const size_t n_label = size_min(strlen(label), REPORT_LABEL_BYTES);
    block_add(&b, label, n_label);
    if (wrap == REPORT_WRAP)
        add_words(&b, text, lines, n_label);
    else
        add_text(&b, text, lines);
    block_add(&b, "\n", 1);
    block_write(&b);
}

static void print_line(const char *program, const char *prefix, const char *text)
{
    char label[REPORT_LABEL_BYTES + 1];
    (void)snprintf(label, sizeof(label), "%s: %s", program, prefix);
    report_progress_erase();
    fflush(stdout); /* so that earlier output appears before the error */
    report_notice(label, bn_str_of(text), TERM_ONE_LINE, REPORT_WRAP);
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

/* Whether errno is an error of write, and of few other calls. */
static bool is_write_error(int error)
{
    static const int errors[] = {ENOSPC, EDQUOT, EFBIG, EIO, EPIPE};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (error == errors[i])
            return true;
    return false;
}

enum exit_code report_flush(const char *program)
{
    /* An earlier write may have failed when the buffer was full. Then errno is still its error,
     * unless another call has failed since. */
    const int earlier = errno;
    const bool is_flushed = fflush(stdout) == 0;
    if (is_flushed && !ferror(stdout))
        return EXIT_DONE;
    const int error = is_flushed ? earlier : errno;
    if (!is_write_error(error))
        return report_fail(program, EXIT_FILE, "cannot write to standard output");
    return report_fail(program, EXIT_FILE, "cannot write to standard output: %s", strerror(error));
}
