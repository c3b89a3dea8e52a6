/*
 * --help: the rows of a set of options under the headings of their groups.
 */
#include "app/options/options.h"

#include <string.h>

#define HELP_WIDTH 100
#define HELP_COLUMN 30 /* where the explanations begin */

static bool is_listed(const struct option *row, enum option_help extent, const char *const *only)
{
    if (!option_on_command_line(row) || (row->advanced && extent == OPTION_HELP_SHORT))
        return false;
    if (!only)
        return true;
    for (; *only; only++)
        if (strcmp(*only, row->name) == 0)
            return true;
    return false;
}

/* Words of `text` from column HELP_COLUMN on, broken before HELP_WIDTH. */
static void print_wrapped(FILE *out, const char *text)
{
    size_t column = HELP_COLUMN;
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
    option_help_text(row, text, sizeof(text));
    const size_t n = strlen(text);
    if (row->fallback && *row->fallback && row->kind != OPTION_FLAG)
        (void)snprintf(text + n, sizeof(text) - n, " [%s]", row->fallback); /* cut if too long */
    const int indent = row->letter ? 2 : 6;
    const int used = fprintf(out, "%*s%s", indent, "", spelling);
    if (used > HELP_COLUMN - 2)
        fprintf(out, "\n%*s", HELP_COLUMN, "");
    else
        fprintf(out, "%*s", HELP_COLUMN - used, "");
    print_wrapped(out, text);
}

void options_print_help(const struct options *o, FILE *out, enum option_help extent,
                        const char *const *only)
{
    const size_t n = options_count(o);
    /* Groups in order of first appearance; rows of one group may come from several tables. */
    for (size_t first = 0; first < n; first++) {
        const char *group = options_group(o, first);
        bool seen = false;
        for (size_t i = 0; i < first && !seen; i++)
            seen = strcmp(options_group(o, i), group) == 0;
        bool has_heading = false;
        for (size_t i = first; i < n && !seen; i++) {
            const struct option *row = options_row(o, i);
            if (strcmp(options_group(o, i), group) != 0 || !is_listed(row, extent, only))
                continue;
            if (!has_heading)
                fprintf(out, "\n%s:\n", group);
            has_heading = true;
            print_row(out, row);
        }
    }
}
