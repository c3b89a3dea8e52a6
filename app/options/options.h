/*
 * One table of options drives everything: parsing the command line, config lines and /set, --help,
 * the man page and the completions. A program joins several tables (its own rows, model_options,
 * ...).
 *
 * A flag is spelled --name on the command line; a flag whose default is "on" is listed as
 * --no-name, and
 * --no-name is accepted for every flag that a config file may hold. Values are copied; a value from
 * a weaker source never replaces one from a stronger. Numbers need LC_NUMERIC "C". Not thread-safe.
 *
 * Errors are sentences with the option, the value and the allowed range, code BN_EARG (exit 2), or
 * BN_ENOMEM.
 */
#ifndef APP_OPTIONS_H
#define APP_OPTIONS_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_kind {
    OPTION_FLAG,   /* on or off */
    OPTION_INT,    /* whole number within .ints */
    OPTION_REAL,   /* number within .reals; never nan or infinite */
    OPTION_TEXT,   /* any text that .check, where there is one, accepts */
    OPTION_CHOICE, /* one word of .choices */
    OPTION_INTS,   /* whole numbers within .ints with commas between: 128,512 */
};

enum option_place { /* where it may be set */
                    OPTION_ON_COMMAND = 1,
                    OPTION_IN_CONFIG = 2,
                    OPTION_BY_SET = 4, /* /set in the chat */
};

struct option {
    const char *name; /* "top-k": --top-k, a config key, /set top-k (also written top_k) */
    char letter;      /* 'k' for -k, 0 for none */
    enum option_kind kind;
    bool repeats;    /* TEXT: every occurrence is kept, in order */
    bool advanced;   /* listed only by --help all */
    unsigned places; /* of enum option_place; 0 means OPTION_ON_COMMAND */
    struct {
        int64_t min, max; /* max INT64_MAX: no upper end is named */
    } ints;
    struct {
        double min, max;
        bool above_min; /* min itself is refused */
    } reals;
    const char *choices;                                   /* "auto|cpu|cuda" */
    bool (*check)(const char *text, struct bn_error *err); /* TEXT; says what was expected */
    const char *fallback; /* default as text, parsed like a value; NULL: none */
    const char *group;    /* heading in --help */
    const char *arg;      /* "N", "FILE": what stands for the value in --help */
    const char *help;     /* one line, no full stop */
};

struct option_table {
    const struct option *rows; /* (n) */
    size_t n;
};
#define OPTION_TABLE(array)                                                                        \
    {                                                                                              \
        (array), sizeof(array) / sizeof((array)[0])                                                \
    }

enum option_source { /* weakest first */
                     OPTION_FROM_DEFAULT,
                     OPTION_FROM_MODEL, /* hints in the model file */
                     OPTION_FROM_CONFIG,
                     OPTION_FROM_ENV,
                     OPTION_FROM_COMMAND,
                     OPTION_FROM_SET,
};

struct options;

/* The tables outlive the set. Names and letters are unique across them (asserted). */
bool options_open(const struct option_table *const *tables, size_t n_tables, struct options **out,
                  struct bn_error *err);
void options_close(struct options *o); /* NULL is fine */

/* argv[1] .. argv[argc - 1]: options and other words in any order, "--" ends the options, "-" is a
 * word. The words stay in argv and are listed by options_words. Stops at the first error. */
bool options_parse(struct options *o, int argc, char **argv, struct bn_error *err);
const char *const *options_words(const struct options *o, size_t *n_words);

/* One value as text: a config line, an environment variable, /set. '_' in the name counts as '-'.
 * Flags take on/off, true/false, yes/no, 1/0. For OPTION_TEXT that repeats it is one more item.
 * Refuses names that may not be set there (CONFIG, ENV and MODEL need OPTION_IN_CONFIG; SET needs
 * OPTION_BY_SET). Nothing changes on error, nor, silently, where a stronger source has spoken. */
bool options_set(struct options *o, const char *name, const char *value, enum option_source source,
                 struct bn_error *err);
/* Back to the default, whoever set it: /set NAME default. */
bool options_reset(struct options *o, const char *name, struct bn_error *err);

/* Reading. A name that is in no table, or of another kind, is a mistake of ours and asserted. */
bool options_given(const struct options *o, const char *name); /* by anyone, default apart */
enum option_source options_source(const struct options *o, const char *name);
bool options_flag(const struct options *o, const char *name);
int64_t options_int(const struct options *o, const char *name);      /* 0 if unset and no default */
double options_real(const struct options *o, const char *name);      /* the same */
const char *options_text(const struct options *o, const char *name); /* TEXT, CHOICE: NULL if unset;
                                                                      * the last of several */
size_t options_choice(const struct options *o,
                      const char *name); /* index of the word in .choices */
const char *const *options_list(const struct options *o, const char *name, size_t *n_items);
const int64_t *options_ints(const struct options *o, const char *name, size_t *n_items);

/* Walking, in table order: for the man page, completions and a list of settings. */
size_t options_count(const struct options *o);
const struct option *options_row(const struct options *o, size_t i);
const struct option *options_find(const struct options *o,
                                  const char *name); /* NULL: no such row */
/* The value as text, as options_set would take it ("on", "0.7", "128,512"); "" if unset. */
void options_format(const struct options *o, const char *name, char *out, size_t out_bytes);
/* "a whole number from 1 to 512", "auto, cpu or cuda": what a row accepts. */
void option_describe(const struct option *row, char *out, size_t out_bytes);
/* The row's help as --help shows it beside the spelling: "do not ..." for --no-NAME. */
void option_help_text(const struct option *row, char *out, size_t out_bytes);
/* "-k, --top-k N", as --help and the man page show it. */
void option_spelling(const struct option *row, char *out, size_t out_bytes);

enum option_help { OPTION_HELP_SHORT, OPTION_HELP_ALL };
/* Rows under their groups' headings, two columns, at most 100 wide. `only` is a NULL-ended list of
 * names to show, or NULL for all. */
void options_print_help(const struct options *o, FILE *out, enum option_help extent,
                        const char *const *only);

#endif
