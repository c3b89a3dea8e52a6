/*
 * One sentence for a person and one code for a program.
 *
 * A fallible function returns bool, takes `struct bn_error *err` last and writes its outputs only
 * on success. Whoever notices the fault writes the sentence, with names and numbers; callers may
 * put words in front of it. `err` is never NULL. The text has no final period or newline.
 */
#ifndef ENGINE_BASE_ERROR_H
#define ENGINE_BASE_ERROR_H

#include <stdbool.h>

#if defined(__GNUC__)
#define BN_PRINTF(fmt_arg, first_arg) __attribute__((format(printf, fmt_arg, first_arg)))
#else
#define BN_PRINTF(fmt_arg, first_arg)
#endif

enum bn_errcode {
    BN_OK,
    BN_EARG,         /* the caller's value is out of range */
    BN_EFORMAT,      /* a file or text breaks its own format */
    BN_EUNSUPPORTED, /* well formed, but not something this program runs */
    BN_EIO,          /* the operating system refused a read, write or map */
    BN_ENOMEM,
    BN_ECONTEXT,   /* more tokens than the context holds */
    BN_ECANCELLED, /* the cancel flag was seen; nothing changed */
    BN_EDEVICE,    /* the device failed or computed nonsense */
    BN_ELOST,      /* it failed for good: nothing runs on it until the program is started anew */
};

struct bn_error {
    enum bn_errcode code;
    char text[500];
};

/* Write code and sentence; always false, so that `return bn_fail(...)` reads as what it does. */
bool bn_fail(struct bn_error *err, enum bn_errcode code, const char *fmt, ...) BN_PRINTF(3, 4);

/* Put "prefix: " before the sentence that is there, keep the code; always false. */
bool bn_fail_prefix(struct bn_error *err, const char *fmt, ...) BN_PRINTF(2, 3);

#endif
