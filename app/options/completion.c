/*
 * Completion scripts: every long option with its choices, and file names everywhere else.
 */
#include "app/options/completion.h"

#include <string.h>

/* The choices, "a|b|c" in the row, with `sep` between them. Prints nothing without choices. */
static void put_choices(const struct option *row, char sep, FILE *out)
{
    for (const char *p = row->choices; p && *p; p++)
        fputc(*p == '|' ? sep : *p, out);
}

/* Text for the inside of single quotes, where only the apostrophe is special; `escaped` characters
 * get a backslash. */
static void put_quoted(const char *text, const char *escaped, FILE *out)
{
    for (; *text; text++) {
        if (strchr(escaped, *text))
            fputc('\\', out);
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
}

static const char *no_prefix(const struct option *row)
{
    return option_is_on_by_default(row) ? "no-" : "";
}

static void print_bash(const struct options *o, FILE *out)
{
    fputs("_bitnet_chat() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    case $prev in\n",
          out);
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        if (!option_on_command_line(row) || !row->choices)
            continue;
        fprintf(out, "    --%s) COMPREPLY=($(compgen -W '", row->name);
        put_choices(row, ' ', out);
        fputs("' -- \"$cur\")); return ;;\n", out);
    }
    fputs("    esac\n    if [[ $cur == -* ]]; then\n        COMPREPLY=($(compgen -W '", out);
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        if (option_on_command_line(row))
            fprintf(out, "%s--%s%s", i > 0 ? " " : "", no_prefix(row), row->name);
    }
    fputs("' -- \"$cur\"))\n    else\n        COMPREPLY=($(compgen -f -- \"$cur\"))\n    fi\n}\n"
          "complete -o filenames -F _bitnet_chat bitnet-chat\n",
          out);
}

static void print_zsh(const struct options *o, FILE *out)
{
    fputs("#compdef bitnet-chat\n_arguments -s \\\n", out);
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        char help[400];
        if (!option_on_command_line(row))
            continue;
        fprintf(out, "  '%s--%s%s[", row->repeats ? "*" : "", no_prefix(row), row->name);
        option_help_text(row, help, sizeof(help));
        put_quoted(help, "[]:", out); /* these have a meaning for _arguments */
        fputc(']', out);
        if (row->choices) {
            fputs(":value:(", out);
            put_choices(row, ' ', out);
            fputc(')', out);
        } else if (row->kind != OPTION_FLAG) {
            fputs(row->kind == OPTION_TEXT ? ":value:_files" : ":number:", out);
        }
        fputs("' \\\n", out);
    }
    fputs("  '*:file:_files'\n", out);
}

static void print_fish(const struct options *o, FILE *out)
{
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        char help[400];
        if (!option_on_command_line(row))
            continue;
        fprintf(out, "complete -c bitnet-chat -l %s%s", no_prefix(row), row->name);
        if (row->letter)
            fprintf(out, " -s %c", row->letter);
        if (row->choices) {
            fputs(" -x -a '", out);
            put_choices(row, ' ', out);
            fputc('\'', out);
        } else if (row->kind == OPTION_TEXT) {
            fputs(" -r", out);
        } else if (row->kind != OPTION_FLAG) {
            fputs(" -x", out);
        }
        fputs(" -d '", out);
        option_help_text(row, help, sizeof(help));
        put_quoted(help, "", out);
        fputs("'\n", out);
    }
}

void completion_print(const struct options *o, const char *shell, FILE *out)
{
    static const struct {
        const char *shell;
        void (*print)(const struct options *o, FILE *out);
    } printers[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof(printers) / sizeof(printers[0]); i++)
        if (strcmp(printers[i].shell, shell) == 0)
            printers[i].print(o, out);
}
