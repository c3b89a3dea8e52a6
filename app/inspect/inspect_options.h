/*
 * The verbs and options of bitnet-inspect, as data: for parsing, --help and the check of the man
 * page.
 */
#ifndef APP_INSPECT_OPTIONS_H
#define APP_INSPECT_OPTIONS_H

#include "app/inspect/inspect.h"

struct inspect_verb {
    const char *name;
    const char *usage; /* the words after the name */
    const char *help;  /* one line */
    size_t n_words_min, n_words_max;
    const char *const *options; /* names of the options that the verb accepts; NULL ends the list */
    enum exit_code (*run)(struct inspect *in);
};

/* All verbs; a NULL name ends the list. */
extern const struct inspect_verb inspect_verbs[];

/* The tables of the program's options, in the order of --help. */
extern const struct option_table *const inspect_tables[];
extern const size_t n_inspect_tables;

#endif
