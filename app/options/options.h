/*
 * Program options as tables. The tables define the command line, config lines, /set, --help, the
 * completions, and the check of the man page. A program combines several tables: its own, and those
 * of model_args.h.
 *
 * A flag is spelled --name on the command line. --help lists a flag that is on by default as
 * --no-name. Every source also accepts "no-name", with the opposite value, for a flag that a config
 * file can set. A value from a weaker source (enum option_source) never replaces one from a
 * stronger source; only options_reset drops the stronger value. LC_NUMERIC must be "C", because
 * real numbers are read with strtod. Not thread-safe.
 *
 * The error about a wrong value contains the option, the value and the accepted values. Error codes
 * are BN_EARG and BN_ENOMEM.
 */
#ifndef APP_OPTIONS_H
#define APP_OPTIONS_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_kind {
    OPTION_FLAG,   /* on or off */
    OPTION_INT,    /* whole number within .ints */
    OPTION_REAL,   /* number within .reals, finite */
    OPTION_TEXT,   /* text that .check accepts, or any text without .check */
    OPTION_CHOICE, /* one word of .choices */
    OPTION_INTS,   /* whole numbers within .ints, separated by commas: 128,512 */
};

/* Whether a text is a path. Then "~/" at the beginning of the path stands for the home directory,
 * because no shell expands it in a config line or after "--file=". */
enum option_path {
    OPTION_PATH = 1,    /* the text is a path, or a name without a slash */
    OPTION_AT_PATH = 2, /* if the text begins with "@", the rest of it is a path */
    OPTION_SAVED = 4,   /* the name may be that of a saved chat, which shells complete */
};

/* Places where an option can be set. */
enum option_place {
    OPTION_ON_COMMAND = 1,
    OPTION_IN_CONFIG = 2,
    OPTION_BY_SET = 4, /* /set in the chat */
    OPTION_AT_START = OPTION_ON_COMMAND | OPTION_IN_CONFIG,
};

struct option {
    const char *name; /* "top-k": --top-k, a config key, /set top-k (also written top_k) */
    char letter;      /* 'k' for -k, 0 for none */
    enum option_kind kind;
    bool repeats;    /* TEXT: every occurrence is kept, in order */
    bool advanced;   /* not listed with OPTION_HELP_SHORT */
    unsigned places; /* flags of enum option_place; 0 means OPTION_ON_COMMAND */
    unsigned paths;  /* TEXT: flags of enum option_path */
    struct {
        int64_t min, max; /* messages do not name a max of INT32_MAX or more */
    } ints;
    struct {
        double min, max;
        bool above_min; /* min itself is refused */
    } reals;
    const char *choices; /* CHOICE: "auto|cpu|cuda" */
    const char *offered; /* TEXT: words like `choices` that shells complete, although other texts
                            are possible; NULL: none */
    /* TEXT, INT: whether the value is acceptable; the error describes the expected values. May be
     * NULL. */
    bool (*check)(const char *text, struct bn_error *err);
    const char *fallback; /* default as text, parsed like a value; NULL: none */
    const char *arg;      /* the value in --help, as "FILE"; NULL: .choices, or "N". For a TEXT,
                             errors name it as the expected value */
    const char *help;     /* one line, no full stop */
};

struct option_table {
    const char *group;         /* heading in --help */
    const struct option *rows; /* (n) */
    size_t n;
};
#define OPTION_TABLE(group, array)                                                                 \
    {                                                                                              \
        (group), (array), sizeof(array) / sizeof((array)[0])                                       \
    }

/* Weakest first. */
enum option_source {
    OPTION_FROM_DEFAULT,
    OPTION_FROM_FAMILY, /* values that the publisher uses for models of this architecture */
    OPTION_FROM_MODEL,  /* hints in the model file */
    OPTION_FROM_CONFIG,
    OPTION_FROM_ENV,
    OPTION_FROM_COMMAND,
    OPTION_FROM_SET,
};

struct options;

/* Make a set of options with the default values. The tables must outlive the set. Names and letters
 * must be unique across them (asserted). BN_EARG: a row refuses its own default. BN_ENOMEM. */
bool options_open(const struct option_table *const *tables, size_t n_tables, struct options **out,
                  struct bn_error *err);
void options_close(struct options *o); /* NULL is fine */

/* Parse argv[1] .. argv[argc - 1]: options and other words in any order. "--" ends the options, "-"
 * is a word. If there is an option --seed, "-seed" is an error. options_words returns the other
 * words, which point into argv; NULL if there are none. Parsing stops at the first error; the
 * options before it stay set. */
bool options_parse(struct options *o, int argc, char **argv, struct bn_error *err);
const char *const *options_words(const struct options *o, size_t *n_words);

/* Set one value from text of any source, such as a config line or /set. '_' in the name counts as
 * '-'. A flag accepts on/off, true/false, yes/no, 1/0. "no-NAME" sets a flag to the opposite
 * (option_can_be_negated). A row that repeats adds the text to those of the same source; SET adds
 * to those of any source. BN_EARG: unknown name, bad value, or the option cannot be set from this
 * source (SET requires OPTION_BY_SET; CONFIG, ENV, MODEL, FAMILY: OPTION_IN_CONFIG; COMMAND:
 * OPTION_ON_COMMAND). BN_EARG changes nothing, and BN_ENOMEM neither, except that a value from
 * MODEL or FAMILY may be set. If a stronger source has set the value, it stays, and this is no
 * error. */
bool options_set(struct options *o, const char *name, const char *value, enum option_source source,
                 struct bn_error *err);
/* Drop the value, whatever its source, and return to the latest one that was set from
 * OPTION_FROM_MODEL or OPTION_FROM_FAMILY, or else to the default. BN_EARG: unknown name.
 * BN_ENOMEM. A failure changes nothing. */
bool options_reset(struct options *o, const char *name, struct bn_error *err);

/* Make a copy of all values with their sources, without the words of the command line. Close it
 * with options_close. BN_ENOMEM. */
bool options_copy(const struct options *from, struct options **out, struct bn_error *err);

/* Read a value. The name must be in a table and the option must have the kind of the function
 * (asserted). Texts and lists belong to `o` and are valid until the option changes. */
bool options_given(const struct options *o, const char *name); /* its source is not the default */
/* The same, but false for a flag that is off: --no-plain contradicts no other option. */
bool options_given_on(const struct options *o, const char *name);
enum option_source options_source(const struct options *o, const char *name);
/* For two options that contradict each other: whether the value of `name` has a stronger source
 * than that of `other`, or the same source and was set later. */
bool options_outranks(const struct options *o, const char *name, const char *other);
/* The word for a source in lists, such as that of /set: "model file". */
const char *option_source_name(enum option_source source);
/* Unset and without a default, the next three functions return false or 0. */
bool options_flag(const struct options *o, const char *name);
int64_t options_int(const struct options *o, const char *name);
double options_real(const struct options *o, const char *name);
/* TEXT and CHOICE: the last text of several; NULL if unset. */
const char *options_text(const struct options *o, const char *name);
/* Index of the word in .choices; 0 if unset (then options_text returns NULL). */
size_t options_choice(const struct options *o, const char *name);
/* TEXT: all texts in order, (*n_items). INTS: all numbers. May be NULL if there are none. */
const char *const *options_list(const struct options *o, const char *name, size_t *n_items);
const int64_t *options_ints(const struct options *o, const char *name, size_t *n_items);

/* Number of rows n; row i < n in the order of the tables, and the heading of its group. */
size_t options_count(const struct options *o);
const struct option *options_row(const struct options *o, size_t i);
const char *options_group(const struct options *o, size_t i);
/* The name of the option that has the name `typed` in other programs, such as num_ctx: a static
 * text. For any other text the result is `typed` itself. */
const char *option_translate_name(const char *typed);
/* Write what a mistyped name most likely means, in the spelling of this place: "--wrap", "no-wrap",
 * or for "no-color" a choice: "color = never". False: no name of an option that can be set there is
 * near (near_name.h). */
#define OPTION_NEAR_BYTES 80 /* far longer than any name; a longer text is cut */
bool options_near(const struct options *o, struct bn_str name, enum option_place place,
                  char out[OPTION_NEAR_BYTES]);
/* If *value is a text in double quotes, make it the text between them, which ends with a 0. Behind
 * the second quote there may be blanks, and a comment that begins with the character `comment`; 0:
 * no comment. False: there are no such quotes, and nothing changes. */
bool option_unquote(char **value, char comment);
/* The row of this name, or of the flag NAME for "no-NAME" as in options_set. NULL: no such row. */
const struct option *options_find(const struct options *o, const char *name);
/* The value as text: "on", "0.7" (a real number has at most six significant digits), "128,512". The
 * texts of a row that repeats are each in double quotes and written as by term_text_escape, with a
 * comma and a blank between them. "" if unset. The text is cut to out_bytes >= 1 with its final 0.
 * The name must be in a table (asserted). */
void options_format(const struct options *o, const char *name, char *out, size_t out_bytes);

/* Print --help: two columns under the headings of the groups, lines of at most 100 columns. Lists
 * the rows of the command line, and advanced ones only with OPTION_HELP_ALL. If `only` is not NULL,
 * it is a list of names that ends with NULL, and the other rows are left out. */
enum option_help { OPTION_HELP_SHORT, OPTION_HELP_ALL };
void options_print_help(const struct options *o, FILE *out, enum option_help extent,
                        const char *const *only);
/* Whether `name` is one of `names`, which end with NULL. */
bool options_list_has(const char *const *names, const char *name);
/* Print a completion script of bitnet-chat. `shell` is bash, zsh or fish; for others, print
 * nothing. */
void options_print_completion(const struct options *o, const char *shell, FILE *out);

/* The next three functions write a text to `out` and cut it to out_bytes >= 2 with its final 0. */
/* The values that a row accepts: "a whole number from 1 to 512", "auto, cpu or cuda". TEXT has only
 * a name: "FILE". */
void option_describe(const struct option *row, char *out, size_t out_bytes);
/* The explanation in --help: .help, or "do not " and .help for --no-NAME. */
void option_help_text(const struct option *row, char *out, size_t out_bytes);
/* "-k, --top-k N", as in --help and the man page. */
void option_spelling(const struct option *row, char *out, size_t out_bytes);
bool option_on_command_line(const struct option *row);
/* A flag that is on by default: spelled --no-NAME. */
bool option_is_on_by_default(const struct option *row);
/* Whether "no-NAME" is accepted: for a flag that is on by default or that a config file can set. */
bool option_can_be_negated(const struct option *row);

#endif
