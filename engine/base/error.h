/*
 * Errors: one message for the user and one code for the program.
 *
 * A function that can fail returns bool, takes `struct bn_error *err` as its last argument and
 * writes its outputs only on success, unless its comment states an exception. The function that
 * detects the error writes the message, with names and numbers; callers may add a prefix. `err` is
 * never NULL. The text has no final period or newline.
 */
#ifndef ENGINE_BASE_ERROR_H
#define ENGINE_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

/* The compiler checks the arguments of such a function like those of printf. */
#if defined(__GNUC__)
#define BN_PRINTF(fmt_arg, first_arg) __attribute__((format(printf, fmt_arg, first_arg)))
#else
#define BN_PRINTF(fmt_arg, first_arg)
#endif

enum bn_errcode {
    BN_OK,           /* no error, in a struct of zeros; functions that succeed do not write it */
    BN_EARG,         /* the caller's value is out of range */
    BN_EFORMAT,      /* a file or text breaks its own format */
    BN_EUNSUPPORTED, /* well formed, but this program cannot run it */
    BN_EIO,          /* a file or stream cannot be opened, mapped, written or read to its end, or
                        another call of the operating system failed */
    BN_ENOMEM,
    BN_ECONTEXT,   /* more tokens than the context holds */
    BN_ECANCELLED, /* the cancel flag was set */
    BN_EDEVICE,    /* the device cannot be used, has failed, or returned wrong values */
    BN_ELOST,      /* the device failed for good; only a restart of the program helps */
};

struct bn_error {
    enum bn_errcode code;
    char text[500]; /* a longer message is cut, between two characters of UTF-8 */
};

/* Write code and message. Returns false, so that a caller can write `return bn_fail(...)`. No
 * argument may point into err->text. */
bool bn_fail(struct bn_error *err, enum bn_errcode code, const char *fmt, ...) BN_PRINTF(3, 4);

/* The same for a variadic function that adds its own text to the message. */
bool bn_vfail(struct bn_error *err, enum bn_errcode code, const char *fmt, va_list args)
    BN_PRINTF(3, 0);

/* Put the formatted text and ": " before the message and keep the code. Returns false. */
bool bn_fail_prefix(struct bn_error *err, const char *fmt, ...) BN_PRINTF(2, 3);

#endif
