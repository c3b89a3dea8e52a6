/*
 * Completion scripts for shells, generated from the option tables.
 */
#ifndef APP_COMPLETION_H
#define APP_COMPLETION_H

#include "app/options/options.h"

#include <stdio.h>

/* `shell` is bash, zsh or fish. */
void completion_print(const struct options *o, const char *shell, FILE *out);

#endif
