/*
 * Formats the message of struct bn_error. A message that is too long is cut, because the beginning
 * of the original error is more useful than an error about its length.
 */
#include "engine/base/error.h"

#include "engine/base/utf8.h"

#include <stdio.h>
#include <string.h>

bool bn_vfail(struct bn_error *err, enum bn_errcode code, const char *fmt, va_list args)
{
    err->code = code;
    (void)vsnprintf(err->text, sizeof(err->text), fmt, args); /* cut if too long */
    utf8_drop_partial(err->text); /* also needed if the caller has cut the last argument */
    return false;
}

bool bn_fail(struct bn_error *err, enum bn_errcode code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)bn_vfail(err, code, fmt, args);
    va_end(args);
    return false;
}

bool bn_fail_prefix(struct bn_error *err, const char *fmt, ...)
{
    char text[sizeof(err->text)];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    const size_t used = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    const size_t left = sizeof(text) - used;
    (void)snprintf(text + used, left, ": %.*s", (int)left, err->text); /* cut if too long */
    utf8_drop_partial(text);
    memcpy(err->text, text, sizeof(text));
    return false;
}
