/*
 * What a mistyped option most likely means, also if it has another name in other programs. A typed
 * "no-NAME" is compared with the options that can be switched off: with flags, and with choices
 * such as "color", which have a word for it. Another text is compared with all names and, because
 * the "-" may be missing, with "no-NAME" of these options.
 */
#include "app/options/near_name.h"
#include "app/options/option_value.h"
#include "app/options/options.h"

#include <stdio.h>
#include <string.h>

#define NO "no-"
#define NO_BYTES (sizeof(NO) - 1)

/* Names of the same settings in other programs. */
static const struct {
    const char *alias, *name;
} other_names[] = {
    {"temperature", "temp"}, {"num-predict", "max-tokens"},
    {"num-ctx", "ctx"},      {"repetition-penalty", "repeat-penalty"},
    {"colour", "color"},     {"typical-p", "typical"},
};
#define N_OTHER_NAMES (sizeof(other_names) / sizeof(other_names[0]))

const char *option_translate_name(const char *typed)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%s", typed); /* no name is so long that it is cut */
    /* Other programs write some names with underscores, such as num_ctx. */
    for (char *p = name; *p; p++)
        if (*p == '_')
            *p = '-';
    for (size_t i = 0; i < N_OTHER_NAMES; i++)
        if (strcmp(name, other_names[i].alias) == 0)
            return other_names[i].name;
    return typed;
}

static bool begins_with_no(struct bn_str name)
{
    return name.n_bytes > NO_BYTES && bn_str_starts(name, bn_str_of(NO));
}

/* The word among the choices of the row that switches it off; NULL if there is none. */
static const char *off_word(const struct option *row)
{
    static const char *const words[] = {"off", "never"};
    for (size_t i = 0; row->kind == OPTION_CHOICE && i < sizeof(words) / sizeof(words[0]); i++)
        if (option_has_choice(row, words[i]))
            return words[i];
    return NULL;
}

/* What a mistyped name means: an option, perhaps with "no-" before it or a value behind it. */
struct guess {
    const struct option *row;
    const char *no;    /* "no-" or "" */
    const char *value; /* of a CHOICE; NULL: none */
};

/* The guess for a typed "no-NAME", if NAME is near to *name. False: the row cannot be switched
 * off. */
static bool guess_off(const struct option *row, struct guess *guess, const char **name)
{
    *guess = (struct guess){row, "", NULL};
    *name = row->name;
    if (begins_with_no(bn_str_of(row->name)))
        *name += NO_BYTES;
    else if (option_can_be_negated(row))
        guess->no = NO;
    else
        guess->value = off_word(row);
    return *name != row->name || guess->no[0] || guess->value;
}

/* Add the name of an option and its names in other programs. But the typed text must be one of
 * these with few errors: "num-threads" only begins like "num-ctx". Returns whether one of the names
 * is the nearest so far. */
static bool add_names(struct near_name *near, const char *name)
{
    bool is_nearest = near_name_add(near, name);
    for (size_t i = 0; i < N_OTHER_NAMES; i++) {
        struct near_name other = {.typed = near->typed};
        if (strcmp(other_names[i].name, name) == 0 && near_name_add(&other, other_names[i].alias) &&
            other.cost < NEAR_NAME_EDITS)
            is_nearest |= near_name_add(near, other_names[i].alias);
    }
    return is_nearest;
}

bool options_near(const struct options *o, struct bn_str name, enum option_place place,
                  char out[OPTION_NEAR_BYTES])
{
    const bool is_off = begins_with_no(name);
    const size_t n_no = is_off ? NO_BYTES : 0;
    struct near_name near = {.typed = {name.ptr + n_no, name.n_bytes - n_no}};
    struct guess best = {0};
    char with_no[OPTION_NEAR_BYTES]; /* near.best may point to it, but its text is not read */
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        struct guess off;
        const char *off_name;
        if (!((row->places ? row->places : OPTION_ON_COMMAND) & place))
            continue;
        const bool has_off = guess_off(row, &off, &off_name);
        if (!is_off && add_names(&near, row->name))
            best = (struct guess){row, "", NULL};
        if (!has_off)
            continue;
        (void)snprintf(with_no, sizeof(with_no), NO "%s", off_name);
        if (is_off ? near_name_add(&near, off_name)
                   : name.n_bytes > NO_BYTES && near_name_add(&near, with_no))
            best = off;
    }
    if (!best.row)
        return false;
    const char *equals = !best.value ? "" : place == OPTION_IN_CONFIG ? " = " : " ";
    (void)snprintf(out, OPTION_NEAR_BYTES, "%s%s%s%s%s", place == OPTION_ON_COMMAND ? "--" : "",
                   best.no, best.row->name, equals, best.value ? best.value : "");
    return true;
}
