/*
 * The texts that are generated from the option tables: --help, and the completion scripts for
 * shells.
 */
#include "app/options/options.h"

#include <string.h>

#define HELP_WIDTH 100 /* columns */
#define HELP_COLUMN 30 /* columns before the explanations */

bool options_list_has(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static bool is_listed(const struct option *row, enum option_help extent, const char *const *only)
{
    if (!option_on_command_line(row) || (row->advanced && extent == OPTION_HELP_SHORT))
        return false;
    return !only || options_list_has(only, row->name);
}

/* Print `text`, and break lines between words. The cursor is already in column HELP_COLUMN, where
 * each further line begins, too. */
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
    char spelling[100], text[400]; /* enough for every row; longer texts would be cut */
    option_spelling(row, spelling, sizeof(spelling));
    option_help_text(row, text, sizeof(text));
    const size_t n = strlen(text);
    if (row->fallback && *row->fallback && row->kind != OPTION_FLAG)
        (void)snprintf(text + n, sizeof(text) - n, " [%s]", row->fallback);
    const int indent = row->letter ? 2 : 6; /* so that the long names are aligned */
    const int used = fprintf(out, "%*s%s", indent, "", spelling);
    if (used > HELP_COLUMN - 2) /* fewer than two spaces would be left */
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

/* The words that the scripts offer as values; NULL: none. */
static const char *offered_words(const struct option *row)
{
    return row->choices ? row->choices : row->offered;
}

/* These words, separated by spaces instead of "|". */
static void put_words(const struct option *row, FILE *out)
{
    for (const char *p = offered_words(row); *p; p++)
        fputc(*p == '|' ? ' ' : *p, out);
}

/* Print text for the inside of a single-quoted string of a shell script. An apostrophe ends the
 * quotes, is printed as \' and begins them again. A character of `escaped` gets a backslash. */
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

/* "no-" for a flag that is on by default: the scripts complete --no-NAME. */
static const char *no_prefix(const struct option *row)
{
    return option_is_on_by_default(row) ? "no-" : "";
}

/* Print a case that offers saved chats for the options that take their names. Without a match, the
 * script continues with the names of files. */
static void put_bash_saved(const struct options *o, FILE *out)
{
    const char *before = "    ";
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        if (!(row->paths & OPTION_SAVED))
            continue;
        fprintf(out, "%s--%s", before, row->name);
        before = "|";
    }
    fputs(")\n        COMPREPLY=()\n"
          "        while IFS= read -r name; do\n"
          "            [[ $name == \"$cur\"* ]] && COMPREPLY+=(\"$name\")\n"
          "        done < <(\"${COMP_WORDS[0]}\" --list-sessions 2>/dev/null)\n"
          "        [[ ${#COMPREPLY[@]} -gt 0 ]] && return ;;\n",
          out);
}

static void print_bash(const struct options *o, FILE *out)
{
    fputs("_bitnet_chat() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} name\n"
          "    # --option=value is three words\n"
          "    if [[ $cur == '=' ]]; then cur=\n"
          "    elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
          "    case $prev in\n",
          out);
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        if (!option_on_command_line(row) || !offered_words(row))
            continue;
        fprintf(out, "    --%s) COMPREPLY=($(compgen -W '", row->name);
        put_words(row, out);
        /* The value may be a path: without a match, continue with the names of files. */
        fprintf(out, "' -- \"$cur\")); %sreturn ;;\n",
                row->paths ? "[[ ${#COMPREPLY[@]} -gt 0 ]] && " : "");
    }
    put_bash_saved(o, out);
    fputs("    esac\n    if [[ $cur == -* ]]; then\n        COMPREPLY=($(compgen -W '", out);
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        if (option_on_command_line(row))
            fprintf(out, "%s--%s%s", i > 0 ? " " : "", no_prefix(row), row->name);
    }
    /* The loop keeps names with blanks and wildcards whole; bash 3.2 has no mapfile. */
    fputs("' -- \"$cur\"))\n    else\n        COMPREPLY=()\n"
          "        while IFS= read -r name; do\n            COMPREPLY+=(\"$name\")\n"
          "        done < <(compgen -f -- \"$cur\")\n    fi\n}\n"
          "complete -o filenames -F _bitnet_chat bitnet-chat\n",
          out);
}

/* Print the names of an option as zsh's _arguments expects them. A single quote stays open for the
 * explanation; the caller closes it. "*" means that the option may be repeated. After a name with
 * "=" or "+" the value may follow in the same word. The names in parentheses are not completed any
 * more when one of them has been typed. */
static void put_zsh_names(const struct option *row, FILE *out)
{
    const char *no = no_prefix(row), *name = row->name;
    const bool has_value = row->kind != OPTION_FLAG;
    if (!row->letter)
        fprintf(out, "  '%s--%s%s%s", row->repeats ? "*" : "", no, name, has_value ? "=" : "");
    else if (row->repeats)
        fprintf(out, "  '*'{-%c%s,--%s%s%s}'", row->letter, has_value ? "+" : "", no, name,
                has_value ? "=" : "");
    else
        fprintf(out, "  '(-%c --%s%s)'{-%c%s,--%s%s%s}'", row->letter, no, name, row->letter,
                has_value ? "+" : "", no, name, has_value ? "=" : "");
}

/* The completion of a value as _arguments expects it: a function, or nothing. */
static const char *zsh_action(const struct option *row)
{
    if (row->kind != OPTION_TEXT)
        return ":number:";
    if (row->paths & OPTION_SAVED)
        return ":value:_bitnet_chat_saved";
    return row->paths ? ":value:_files" : ":value:";
}

static void print_zsh(const struct options *o, FILE *out)
{
    fputs("#compdef bitnet-chat\n"
          "_bitnet_chat_saved() {\n"
          "  local -a names\n"
          "  names=(${(f)\"$(_call_program names ${words[1]} --list-sessions 2>/dev/null)\"})\n"
          "  compadd -a names\n"
          "  _files\n"
          "}\n"
          "_arguments -s \\\n",
          out);
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        char help[400];
        if (!option_on_command_line(row))
            continue;
        put_zsh_names(row, out);
        fputc('[', out);
        option_help_text(row, help, sizeof(help));
        put_quoted(help, "[]:", out); /* special characters of _arguments */
        fputc(']', out);
        if (offered_words(row)) {
            fputs(row->paths ? ":value:{compadd " : ":value:(", out);
            put_words(row, out);
            fputs(row->paths ? "; _files}" : ")", out);
        } else if (row->kind != OPTION_FLAG) {
            fputs(zsh_action(row), out);
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
        if (offered_words(row)) {
            /* -x: needs a value, not a file; -r: needs a value */
            fprintf(out, " %s -a '", row->paths ? "-r" : "-x");
            put_words(row, out);
            fputc('\'', out);
        } else if (row->paths) {
            fputs(" -r", out);
            if (row->paths & OPTION_SAVED)
                fputs(" -a '(bitnet-chat --list-sessions 2>/dev/null)'", out);
        } else if (row->kind != OPTION_FLAG) {
            fputs(" -x", out);
        }
        fputs(" -d '", out);
        option_help_text(row, help, sizeof(help));
        put_quoted(help, "", out);
        fputs("'\n", out);
    }
}

void options_print_completion(const struct options *o, const char *shell, FILE *out)
{
    static const struct {
        const char *shell;
        void (*print)(const struct options *o, FILE *out);
    } printers[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof(printers) / sizeof(printers[0]); i++)
        if (strcmp(printers[i].shell, shell) == 0)
            printers[i].print(o, out);
}
