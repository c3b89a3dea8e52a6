/*
 * One row of an option table as text: its spelling, the values that it accepts, its explanation.
 */
#include "app/options/options.h"

#include <stdarg.h>
#include <string.h>

bool option_on_command_line(const struct option *row)
{
    return row->places == 0 || row->places & OPTION_ON_COMMAND;
}

bool option_is_on_by_default(const struct option *row)
{
    return row->kind == OPTION_FLAG && row->fallback && strcmp(row->fallback, "on") == 0;
}

bool option_can_be_negated(const struct option *row)
{
    return row->kind == OPTION_FLAG &&
           (row->places & OPTION_IN_CONFIG || option_is_on_by_default(row));
}

/* A text of n bytes and a 0, in a buffer of `cap` bytes. `add` drops bytes that do not fit. */
struct line {
    char *out;
    size_t n, cap;
};

/* A separate declaration, because a function definition cannot have the attribute BN_PRINTF. */
static void add(struct line *l, const char *fmt, ...) BN_PRINTF(2, 3);
static void add(struct line *l, const char *fmt, ...)
{
    if (l->n + 1 >= l->cap)
        return;
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(l->out + l->n, l->cap - l->n, fmt, args);
    va_end(args);
    if (n > 0)
        l->n = (size_t)n < l->cap - l->n ? l->n + (size_t)n : l->cap - 1;
}

static void describe_choices(const char *choices, struct line *l)
{
    for (const char *at = choices; *at;) {
        const size_t n = strcspn(at, "|");
        const char *after = at + n + (at[n] == '|');
        const bool is_last = *after == '\0', is_next_last = strchr(after, '|') == NULL;
        add(l, "%.*s%s", (int)n, at, is_last ? "" : is_next_last ? " or " : ", ");
        at = after;
    }
}

static void describe_ints(const struct option *row, struct line *l)
{
    if (row->ints.max >= INT32_MAX) /* the limit is too large to matter */
        add(l, " of at least %lld", (long long)row->ints.min);
    else
        add(l, " from %lld to %lld", (long long)row->ints.min, (long long)row->ints.max);
}

void option_describe(const struct option *row, char *out, size_t out_bytes)
{
    struct line l = {out, 0, out_bytes};
    switch (row->kind) {
    case OPTION_FLAG:
        add(&l, "on or off");
        break;
    case OPTION_INT:
        add(&l, "a whole number");
        describe_ints(row, &l);
        break;
    case OPTION_INTS:
        add(&l, "whole numbers");
        describe_ints(row, &l);
        add(&l, ", separated by commas");
        break;
    case OPTION_REAL:
        if (row->reals.above_min)
            add(&l, "a number above %g, at most %g", row->reals.min, row->reals.max);
        else
            add(&l, "a number from %g to %g", row->reals.min, row->reals.max);
        break;
    case OPTION_CHOICE:
        describe_choices(row->choices, &l);
        break;
    case OPTION_TEXT:
        add(&l, "%s", row->arg ? row->arg : "TEXT");
        break;
    }
}

void option_spelling(const struct option *row, char *out, size_t out_bytes)
{
    struct line l = {out, 0, out_bytes};
    if (row->letter)
        add(&l, "-%c, ", row->letter);
    add(&l, "--%s%s", option_is_on_by_default(row) ? "no-" : "", row->name);
    if (row->kind != OPTION_FLAG)
        add(&l, " %s", row->arg ? row->arg : row->choices ? row->choices : "N");
}

void option_help_text(const struct option *row, char *out, size_t out_bytes)
{
    (void)snprintf(out, out_bytes, "%s%s", option_is_on_by_default(row) ? "do not " : "",
                   row->help);
}
