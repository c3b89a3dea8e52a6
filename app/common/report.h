/*
 * What the programs say when something fails: one line on stderr, and an exit code that scripts
 * rely on.
 *
 * Names out of a model file or an argument may hold anything; what is printed here has no control
 * characters, no invalid UTF-8 and no bidirectional overrides in it.
 */
#ifndef APP_REPORT_H
#define APP_REPORT_H

#include "engine/base/error.h"
#include "engine/base/notes.h"
#include "engine/base/str.h"

#include <stdio.h>

enum exit_code {
    EXIT_DONE = 0,
    EXIT_INTERNAL = 1,     /* engine or internal error */
    EXIT_USAGE = 2,        /* usage, bad value, empty prompt */
    EXIT_MODEL = 3,        /* the model cannot be loaded */
    EXIT_CONTEXT = 4,      /* the prompt does not fit the context */
    EXIT_FILE = 5,         /* a file cannot be read or written, stdout included */
    EXIT_HUNG_UP = 129,    /* SIGHUP */
    EXIT_INTERRUPT = 130,  /* SIGINT */
    EXIT_TERMINATED = 143, /* SIGTERM */
};

enum report_stage {
    STAGE_LOAD, /* opening a model: everything that is not the caller's value is exit 3 */
    STAGE_RUN,  /* afterwards */
};
enum exit_code report_code(enum report_stage stage, const struct bn_error *err);

/* "PROGRAM: sentence\n" on stderr; gives back `code`, so that `return report_fail(...)` ends a
 * main. */
enum exit_code report_fail(const char *program, enum exit_code code, const char *fmt, ...)
    BN_PRINTF(3, 4);
/* The same for an error of a library. */
enum exit_code report_error(const char *program, enum report_stage stage,
                            const struct bn_error *err);

/* "PROGRAM: warning: text\n" on stderr for each warning among the notes. */
void report_warnings(const char *program, const struct bn_notes *notes);

/* Bytes of unknown origin on one line: controls, broken UTF-8 and overrides become U+FFFD. */
void report_safe(FILE *out, struct bn_str text);

const char *report_version(void); /* "0.1.0" */

/* Flush stdout and say so if it could not be written: EXIT_DONE or EXIT_FILE. */
enum exit_code report_flush(const char *program);

#endif
