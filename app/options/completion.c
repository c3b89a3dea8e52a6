/*
 * Completion scripts: every long option with its words, file names everywhere else.
 */
#include "app/options/completion.h"

#include <string.h>

/* "a|b|c" with `sep` between the words; nothing for a row that takes any text. */
static void put_choices(const struct option *row, char sep, FILE *out)
{
    for (const char *p = row->choices; p && *p; p++)
        fputc(*p == '|' ? sep : *p, out);
}

/* Text within single quotes of the shells; the apostrophe is the one character that cannot stand
 * there. */
static void put_quoted(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
}

static bool is_on_by_itself(const struct option *row)
{
    return row->kind == OPTION_FLAG && row->fallback && strcmp(row->fallback, "on") == 0;
}

static bool is_on_command(const struct option *row)
{
    return row->places == 0 || (row->places & OPTION_ON_COMMAND);
}

static void print_bash(const struct options *o, FILE *out)
{
    fputs("_bitnet_chat() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    case $prev in\n",
          out);
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        if (!is_on_command(row) || !row->choices)
            continue;
        fprintf(out, "    --%s) COMPREPLY=($(compgen -W '", row->name);
        put_choices(row, ' ', out);
        fputs("' -- \"$cur\")); return ;;\n", out);
    }
    fputs("    esac\n    if [[ $cur == -* ]]; then\n        COMPREPLY=($(compgen -W '", out);
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        if (is_on_command(row))
            fprintf(out, "%s--%s%s", i > 0 ? " " : "", is_on_by_itself(row) ? "no-" : "",
                    row->name);
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
        if (!is_on_command(row))
            continue;
        fprintf(out, "  '%s--%s%s[", row->repeats ? "*" : "", is_on_by_itself(row) ? "no-" : "",
                row->name);
        option_help_text(row, help, sizeof(help));
        for (const char *p = help; *p; p++) { /* [ ] : have a meaning of their own here */
            if (strchr("[]:", *p))
                fputc('\\', out);
            if (*p == '\'')
                fputs("'\\''", out);
            else
                fputc(*p, out);
        }
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
        if (!is_on_command(row))
            continue;
        fprintf(out, "complete -c bitnet-chat -l %s%s", is_on_by_itself(row) ? "no-" : "",
                row->name);
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
        put_quoted(help, out);
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
