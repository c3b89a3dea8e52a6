/*
 * The inside of struct options, shared by options.c (storage), option_value.c and options_parse.c
 * (text to values) and options_help.c (values and rows to text). Nobody else includes it.
 */
#ifndef APP_OPTIONS_IMPL_H
#define APP_OPTIONS_IMPL_H

#include "app/options/options.h"

struct option_value {
    enum option_source source;
    bool set;       /* there is a value, be it the default */
    int64_t number; /* INT; FLAG: 0 or 1; CHOICE: index of the word */
    double real;    /* REAL */
    char **texts;   /* (n_texts) TEXT, CHOICE: owned */
    size_t n_texts, texts_cap;
    int64_t *numbers; /* (n_numbers) INTS: owned */
    size_t n_numbers, numbers_cap;
};

struct options {
    const struct option **rows;  /* (n_rows) of all tables */
    struct option_value *values; /* (n_rows) */
    size_t n_rows;
    const char **words; /* (n_words) of the command line that are no options */
    size_t n_words, words_cap;
};

/* The row called `name` ('_' counts as '-'), or SIZE_MAX. */
size_t options_index(const struct options *o, const char *name, size_t n_name_bytes);

/* Parse `text` for row i into a fresh value. `said` is what the user wrote ("--temp", "-n",
 * "temp"). */
bool option_parse_value(const struct option *row, const char *said, const char *text,
                        struct option_value *out, struct bn_error *err);
void option_value_finish(struct option_value *v);

/* Take over `v` for row i: replaces, or appends for a row that repeats. `v` is emptied in any case.
 */
bool options_store(struct options *o, size_t i, struct option_value *v, enum option_source source,
                   struct bn_error *err);

/* A flag whose default is on is spelled --no-name. */
bool option_is_on_by_default(const struct option *row);

#endif
