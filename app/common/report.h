/*
 * Errors of the programs: one line on stderr, and an exit code for scripts. Progress during long
 * work: a row on stderr.
 *
 * Names from model files and arguments may contain any bytes. The lines are printed as report_words
 * does, on one line unless stderr is a terminal.
 */
#ifndef APP_REPORT_H
#define APP_REPORT_H

#include "app/common/term_text.h"
#include "engine/base/error.h"
#include "engine/base/notes.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum exit_code {
    EXIT_DONE = 0,
    EXIT_INTERNAL = 1,     /* engine or internal error */
    EXIT_USAGE = 2,        /* usage, bad value, empty prompt */
    EXIT_MODEL = 3,        /* the model cannot be loaded */
    EXIT_CONTEXT = 4,      /* the prompt does not fit the context */
    EXIT_FILE = 5,         /* a file cannot be read or written, stdout included */
    EXIT_SLOWER = 6,       /* bitnet-bench: a row is slower than in the baseline */
    EXIT_HUNG_UP = 129,    /* SIGHUP */
    EXIT_INTERRUPT = 130,  /* SIGINT */
    EXIT_TERMINATED = 143, /* SIGTERM */
};

enum report_stage {
    STAGE_LOAD, /* opening a model: most errors are EXIT_MODEL */
    STAGE_RUN,  /* everything else: BN_EIO is EXIT_FILE, most other errors are EXIT_INTERNAL */
};
/* The exit code for an error. In both stages BN_EARG is EXIT_USAGE, BN_ECONTEXT is EXIT_CONTEXT and
 * BN_ECANCELLED is EXIT_INTERRUPT. */
enum exit_code report_code(enum report_stage stage, const struct bn_error *err);

/* A rate above this percentage of a measured peak shows that other programs disturbed the
 * measurement of the peak. The output then says "disturbed". The 5 percent above 100 allow for
 * errors of both measurements. */
#define REPORT_MAX_PERCENT 105

/* Print "PROGRAM: sentence\n" on stderr. A sentence is cut after 699 bytes. */
void report_line(const char *program, const char *fmt, ...) BN_PRINTF(2, 3);
/* The same, and return `code`, which has no other effect. */
enum exit_code report_fail(const char *program, enum exit_code code, const char *fmt, ...)
    BN_PRINTF(3, 4);
/* Print the text of `err` in the same form, and return report_code. */
enum exit_code report_error(const char *program, enum report_stage stage,
                            const struct bn_error *err);

/* Print "PROGRAM: warning: text\n" on stderr for each warning in the notes. */
void report_warnings(const char *program, const struct bn_notes *notes);

/* The progress row is the last line of a terminal: a short text without a line end. The functions
 * that print the lines above erase it first. Other functions that write to stdout or stderr have to
 * erase it. The caller does not show it if the user wants no progress (--quiet). */

/* Show the text, which is in ASCII, in place of the previous one. A text that is wider than the
 * terminal is cut. If stderr is not a terminal, nothing happens. */
void report_progress(const char *fmt, ...) BN_PRINTF(1, 2);
void report_progress_erase(void); /* if there is a row */
/* Whether the last change of the row is at least 0.1 seconds ago. */
bool report_progress_due(void);
/* Show "LABEL 37%", unless the row has changed in the last 0.1 seconds. */
void report_progress_percent(const char *label, size_t n_done, size_t n_total);

/* Print any bytes, cleaned as term_text_clean does. Needs no memory, so no text can be lost. */
void report_text(FILE *out, struct bn_str text, enum term_lines lines);

/* report_text, but if `out` is a terminal, lines are broken between words. The cursor is in column
 * `column`, counted from 0. */
void report_words(FILE *out, struct bn_str text, enum term_lines lines, size_t column);

/* Print the label, the text and a newline on stderr, in one write if they have at most
 * REPORT_BLOCK_BYTES: so lines of programs that run at the same time are not mixed. The text is
 * that of report_words, or with REPORT_NO_WRAP that of report_text. The label is ASCII, and cut
 * after REPORT_LABEL_BYTES. The caller has erased the progress row. */
#define REPORT_BLOCK_BYTES 4096 /* PIPE_BUF of Linux; the longest error has 2.2 kB */
#define REPORT_LABEL_BYTES 63
enum report_wrap { REPORT_WRAP, REPORT_NO_WRAP };
void report_notice(const char *label, struct bn_str text, enum term_lines lines,
                   enum report_wrap wrap);

/* report_text on one line: newlines and tabs become spaces; other control characters, invalid
 * UTF-8 and the other characters that term_text.h lists become U+FFFD. */
void report_safe(FILE *out, struct bn_str text);

/* Write a number of bytes as the program shows sizes of files: "12 bytes", "1.5 MB", "1.08 GB". */
#define REPORT_SIZE_BYTES 24
void report_size(uint64_t n_bytes, char out[REPORT_SIZE_BYTES]);

const char *report_version(void); /* of the programs, such as "0.1.0"; static text */

/* After a failed write: drop what is buffered for stdout. Otherwise the end of the program would
 * write it, and wait if nobody reads. */
void report_drop_output(void);

/* Flush stdout and return EXIT_DONE. If some output could not be written, print an error line, with
 * the reason unless it is lost, and return EXIT_FILE. */
enum exit_code report_flush(const char *program);

#endif
