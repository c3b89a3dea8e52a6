/*
 * What a mistyped option most likely means. A typed "no-NAME" is compared with the options that can
 * be switched off: with flags, and with choices such as "color", which have a word for it.
 */
#include "app/options/near_name.h"
#include "app/options/option_value.h"
#include "app/options/options.h"

#include <stdio.h>

#define NO "no-"
#define NO_BYTES (sizeof(NO) - 1)

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

bool options_near(const struct options *o, struct bn_str name, enum option_place place,
                  char out[OPTION_NEAR_BYTES])
{
    const bool is_off = begins_with_no(name);
    const size_t n_no = is_off ? NO_BYTES : 0;
    struct near_name near = {.typed = {name.ptr + n_no, name.n_bytes - n_no}};
    struct guess best = {0};
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        struct guess guess = {row, "", NULL};
        const char *meant = row->name, *const nearest = near.best;
        if (!((row->places ? row->places : OPTION_ON_COMMAND) & place) ||
            (is_off && !guess_off(row, &guess, &meant)))
            continue;
        near_name_add(&near, meant);
        if (near.best != nearest)
            best = guess;
    }
    if (!best.row)
        return false;
    const char *equals = !best.value ? "" : place == OPTION_IN_CONFIG ? " = " : " ";
    (void)snprintf(out, OPTION_NEAR_BYTES, "%s%s%s%s%s", place == OPTION_ON_COMMAND ? "--" : "",
                   best.no, best.row->name, equals, best.value ? best.value : "");
    return true;
}
