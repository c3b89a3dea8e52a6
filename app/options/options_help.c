/*
 * Option rows and values to text: what a row accepts, how it is spelled, --help in groups.
 */
#include "app/options/options_impl.h"

#include <stdarg.h>
#include <string.h>

#define HELP_WIDTH 100
#define HELP_COLUMN 30 /* where the explanations begin */

/* A text built piece by piece in a fixed buffer; what does not fit is cut. */
struct line {
    char *out;
    size_t n, cap;
};

static void put(struct line *l, const char *fmt, ...) BN_PRINTF(2, 3);
static void put(struct line *l, const char *fmt, ...)
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
        put(l, "%.*s%s", (int)n, at, is_last ? "" : is_next_last ? " or " : ", ");
        at = after;
    }
}

static void describe_ints(const struct option *row, struct line *l)
{
    if (row->ints.max >= INT32_MAX) /* nobody gets there */
        put(l, " of at least %lld", (long long)row->ints.min);
    else
        put(l, " from %lld to %lld", (long long)row->ints.min, (long long)row->ints.max);
}

void option_describe(const struct option *row, char *out, size_t out_bytes)
{
    struct line l = {out, 0, out_bytes};
    put(&l, "%s", "");
    switch (row->kind) {
    case OPTION_FLAG:
        put(&l, "on or off");
        break;
    case OPTION_INT:
        put(&l, "a whole number");
        describe_ints(row, &l);
        break;
    case OPTION_INTS:
        put(&l, "whole numbers");
        describe_ints(row, &l);
        put(&l, ", with commas between");
        break;
    case OPTION_REAL:
        if (row->reals.above_min)
            put(&l, "a number above %g, at most %g", row->reals.min, row->reals.max);
        else
            put(&l, "a number from %g to %g", row->reals.min, row->reals.max);
        break;
    case OPTION_CHOICE:
        describe_choices(row->choices, &l);
        break;
    case OPTION_TEXT:
        put(&l, "%s", row->arg ? row->arg : "TEXT");
        break;
    }
}

void option_spelling(const struct option *row, char *out, size_t out_bytes)
{
    struct line l = {out, 0, out_bytes};
    if (row->letter)
        put(&l, "-%c, ", row->letter);
    put(&l, "--%s%s", option_is_on_by_default(row) ? "no-" : "", row->name);
    if (row->kind != OPTION_FLAG)
        put(&l, " %s", row->arg ? row->arg : row->choices ? row->choices : "N");
}

void option_help_text(const struct option *row, char *out, size_t out_bytes)
{
    struct line l = {out, 0, out_bytes};
    put(&l, "%s%s", option_is_on_by_default(row) ? "do not " : "", row->help);
}

static void put_joined(struct line *l, const struct option_value *v)
{
    for (size_t i = 0; i < v->n_texts; i++)
        put(l, "%s%s", i ? "," : "", v->texts[i]);
    for (size_t i = 0; i < v->n_numbers; i++)
        put(l, "%s%lld", i ? "," : "", (long long)v->numbers[i]);
}

void options_format(const struct options *o, const char *name, char *out, size_t out_bytes)
{
    struct line l = {out, 0, out_bytes};
    put(&l, "%s", "");
    const size_t i = options_index(o, name, strlen(name));
    if (i == SIZE_MAX || !o->values[i].set)
        return;
    const struct option_value *v = &o->values[i];
    switch (o->rows[i]->kind) {
    case OPTION_FLAG:
        put(&l, "%s", v->number ? "on" : "off");
        break;
    case OPTION_INT:
        put(&l, "%lld", (long long)v->number);
        break;
    case OPTION_REAL:
        put(&l, "%g", v->real);
        break;
    default:
        put_joined(&l, v);
    }
}

static bool is_listed(const struct option *row, enum option_help extent, const char *const *only)
{
    if (row->places != 0 && !(row->places & OPTION_ON_COMMAND))
        return false;
    if (row->advanced && extent == OPTION_HELP_SHORT)
        return false;
    if (!only)
        return true;
    for (; *only; only++)
        if (strcmp(*only, row->name) == 0)
            return true;
    return false;
}

/* Words of `text` from column HELP_COLUMN on, broken before HELP_WIDTH. */
static void print_wrapped(FILE *out, const char *text, size_t column)
{
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, " ");
        if (column > HELP_COLUMN && column + 1 + n > HELP_WIDTH) {
            fprintf(out, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        const bool first = column == HELP_COLUMN;
        fprintf(out, "%s%.*s", first ? "" : " ", (int)n, at);
        column += n + !first;
        at += n;
        at += strspn(at, " ");
    }
    fputc('\n', out);
}

static void print_row(FILE *out, const struct option *row)
{
    char spelling[100], text[400];
    option_spelling(row, spelling, sizeof(spelling));
    struct line l = {text, 0, sizeof(text)};
    option_help_text(row, text, sizeof(text));
    l.n = strlen(text);
    if (row->fallback && *row->fallback && row->kind != OPTION_FLAG)
        put(&l, " [%s]", row->fallback);
    const int indent = row->letter ? 2 : 6;
    const int used = fprintf(out, "%*s%s", indent, "", spelling);
    if (used > HELP_COLUMN - 2)
        fprintf(out, "\n%*s", HELP_COLUMN, "");
    else
        fprintf(out, "%*s", HELP_COLUMN - used, "");
    print_wrapped(out, text, HELP_COLUMN);
}

void options_print_help(const struct options *o, FILE *out, enum option_help extent,
                        const char *const *only)
{
    /* Groups in order of first appearance; rows of one group may come from several tables. */
    for (size_t first = 0; first < o->n_rows; first++) {
        const char *group = o->rows[first]->group;
        bool seen = false;
        for (size_t i = 0; i < first && !seen; i++)
            seen = strcmp(o->rows[i]->group, group) == 0;
        bool headed = false;
        for (size_t i = first; i < o->n_rows && !seen; i++) {
            const struct option *row = o->rows[i];
            if (strcmp(row->group, group) != 0 || !is_listed(row, extent, only))
                continue;
            if (!headed)
                fprintf(out, "\n%s:\n", group);
            headed = true;
            print_row(out, row);
        }
    }
}
