/*
 * One option value: conversion from and to text. Only the files options*.c use these functions.
 */
#ifndef APP_OPTION_VALUE_H
#define APP_OPTION_VALUE_H

#include "app/options/options.h"

struct option_value {
    enum option_source source;
    bool set; /* there is a value, perhaps the default; else all other members are 0 */
    /* The members in use depend on the kind of the row (enum option_kind). */
    int64_t number; /* INT; FLAG: 0 or 1; CHOICE: index of the word */
    double real;    /* REAL */
    char **texts;   /* (n_texts), owned. TEXT; CHOICE: the word */
    size_t n_texts, texts_cap;
    int64_t *numbers; /* (n_numbers), owned. INTS */
    size_t n_numbers, numbers_cap;
};

/* Parse `text` as a value of option `row`. *out must be all zero; its `source` and `set` do not
 * change. The caller must finish it, also after a failure (BN_EARG, BN_ENOMEM). Most error messages
 * begin with `label`: the option as the user wrote it ("--temp", "-n", "temp"). */
bool option_value_parse(const struct option *row, const char *label, const char *text,
                        struct option_value *out, struct bn_error *err);
/* Copy a value. *out must be all zero; the caller must finish it, also after a failure. False: out
 * of memory. */
bool option_value_copy(const struct option_value *from, struct option_value *out);
void option_value_finish(struct option_value *v);

/* CHOICE: whether the word is one of row->choices. */
bool option_has_choice(const struct option *row, const char *word);

/* See options_format. */
void option_value_format(const struct option *row, const struct option_value *v, char *out,
                         size_t out_bytes);

#endif
