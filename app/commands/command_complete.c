/*
 * Tab completion: commands, and in their arguments settings, values, saved chats and files. A
 * command that takes one argument offers nothing for a second one.
 */
#include "app/commands/commands.h"
#include "app/common/slash.h"

#include <string.h>

static bool begins_with(const char *name, struct bn_str word)
{
    return strncmp(name, word.ptr, word.n_bytes) == 0;
}

/* If `word` begins with a slash, the choices do too. */
static void add_commands(struct bn_str word, struct line_choices *out)
{
    const bool has_slash = word.n_bytes > 0 && word.ptr[0] == '/';
    const struct bn_str name = {word.ptr + has_slash, word.n_bytes - has_slash};
    for (const struct command *c = command_table; c->name; c++)
        if (begins_with(c->name, name))
            strbuf_addf(&out->words, "%s%s\n", has_slash ? "/" : "", c->name);
}

/* Add the choices among the words of a usage text: "last", "code" and "all" of the text
 * "[last|code [N]|all]". Words in capitals and in inner brackets stand for values of the user.
 * `before` is put before each choice: the beginning of the word that `word` lacks, or "". */
static void add_words(const char *list, const char *before, struct bn_str word,
                      struct line_choices *out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz-";
    size_t depth = 0;
    for (const char *at = list; *at; at++) {
        const size_t n = strspn(at, letters);
        depth += *at == '[';
        depth -= *at == ']' && depth > 0;
        if (n == 0)
            continue;
        const bool is_word = (at == list || strchr("[|", at[-1])) && strchr("]| ", at[n]);
        if (depth <= 1 && is_word && n >= word.n_bytes && memcmp(at, word.ptr, word.n_bytes) == 0)
            strbuf_addf(&out->words, "%s%.*s\n", before, (int)n, at);
        at += n - 1;
    }
}

/* `after` is put after each name: "" or "=". */
static void add_names(const struct options *o, const char *after, struct bn_str word,
                      struct line_choices *out)
{
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        if ((row->places & OPTION_BY_SET) && begins_with(row->name, word))
            strbuf_addf(&out->words, "%s%s\n", row->name, after);
    }
}

/* The values of the setting `name` that are words. `before` is the beginning of the word: "" or
 * "NAME=". */
static void add_values(const struct options *o, struct bn_str name, const char *before,
                       struct bn_str word, struct line_choices *out)
{
    struct strbuf typed = {0};
    strbuf_add_str(&typed, name);
    const struct option *row = options_find(o, option_translate_name(strbuf_text(&typed)));
    if (row && (row->places & OPTION_BY_SET)) {
        if (row->kind == OPTION_FLAG)
            add_words("on|off", before, word, out);
        else if (row->choices)
            add_words(row->choices, before, word, out);
        else if (row->arg)
            add_words(row->arg, before, word, out);
        add_words(row->repeats ? "off|default" : "default", before, word, out);
    }
    strbuf_finish(&typed);
}

/* `word` is NAME, NAME=VALUE or the beginning of one of them. `after`: as in add_names. */
static void add_assignments(const struct options *o, const char *after, struct bn_str word,
                            struct line_choices *out)
{
    const char *equals = word.n_bytes > 0 ? memchr(word.ptr, '=', word.n_bytes) : NULL;
    if (!equals) {
        add_names(o, after, word, out);
        return;
    }
    const size_t n_name = (size_t)(equals - word.ptr);
    struct strbuf before = {0};
    strbuf_add(&before, word.ptr, n_name + 1);
    add_values(o, (struct bn_str){word.ptr, n_name}, strbuf_text(&before),
               (struct bn_str){equals + 1, word.n_bytes - n_name - 1}, out);
    strbuf_finish(&before);
}

/* The arguments NAME VALUE or NAME=VALUE; `first` is the text before the word, "NAME ". */
static void add_setting(const struct options *o, struct bn_str first, struct bn_str word,
                        struct line_choices *out)
{
    size_t n_name = 0;
    while (n_name < first.n_bytes && !strchr(" \t=", first.ptr[n_name]))
        n_name++;
    size_t end = n_name;
    while (end < first.n_bytes && strchr(" \t=", first.ptr[end]))
        end++;
    if (first.n_bytes == 0)
        add_assignments(o, "", word, out);
    else if (end == first.n_bytes) /* there is no VALUE yet */
        add_values(o, (struct bn_str){first.ptr, n_name}, "", word, out);
}

/* The name of a saved chat may have blanks: `first` is the text before the word. */
static void add_saved_chats(struct bn_str first, struct bn_str word, struct line_choices *out)
{
    struct strbuf names = {0}, typed = {0};
    struct bn_error ignored; /* then some or all names are missing */
    size_t n;
    strbuf_add_str(&typed, first);
    strbuf_add_str(&typed, word);
    (void)store_list(&names, &n, &ignored);
    for (size_t at = 0; at < names.n_bytes;) {
        const size_t n_line = strcspn(names.ptr + at, "\n") + 1;
        if (begins_with(names.ptr + at, strbuf_str(&typed)))
            strbuf_add(&out->words, names.ptr + at + first.n_bytes, n_line - first.n_bytes);
        at += n_line;
    }
    strbuf_finish(&names);
    strbuf_finish(&typed);
}

/* Complete an argument of the command. `first` is the text of the arguments before the word. */
static void complete_argument(const struct options *o, const struct command *c, struct bn_str first,
                              struct bn_str word, struct line_choices *out)
{
    const bool is_first = first.n_bytes == 0;
    switch (c->completes) {
    case ARGS_SETTING:
        add_setting(o, first, word, out);
        break;
    case ARGS_ASSIGNMENTS:
        add_assignments(o, "=", word, out);
        break;
    case ARGS_COMMAND:
        if (is_first) {
            add_commands(word, out);
            add_words(c->args, "", word, out);
        }
        break;
    case ARGS_WORDS:
        if (is_first)
            add_words(c->args, "", word, out);
        break;
    case ARGS_SAVED_CHAT:
        if (is_first && word.n_bytes > 0 && memchr(word.ptr, '/', word.n_bytes))
            out->kind = LINE_CHOICES_FILES;
        else
            add_saved_chats(first, word, out);
        break;
    case ARGS_FILE:
        if (is_first)
            out->kind = LINE_CHOICES_FILES;
        break;
    case ARGS_FILES:
        out->kind = LINE_CHOICES_FILES;
        break;
    case ARGS_TEXT_FILE:
        if (is_first && word.n_bytes > 0 && word.ptr[0] == '@')
            out->kind = LINE_CHOICES_AT_FILES;
        break;
    case ARGS_NONE:
    case ARGS_FREE:
        break;
    }
}

void command_complete(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out)
{
    const struct command_host *host = ud;
    if (before.n_bytes == 0 && word.n_bytes > 0 && word.ptr[0] == '/') {
        add_commands(word, out);
        return;
    }
    const struct slash s = slash_parse(before);
    const struct command *c = s.kind == SLASH_COMMAND ? command_find(s.name) : NULL;
    if (!c) {
        if (word.n_bytes > 0 && word.ptr[0] == '@')
            out->kind = LINE_CHOICES_AT_FILES;
        return;
    }
    struct bn_str first = {"", 0};
    if (s.text.n_bytes > 0) /* up to the word, with the blanks before it */
        first = (struct bn_str){s.text.ptr, (size_t)(before.ptr + before.n_bytes - s.text.ptr)};
    complete_argument(host->options, c, first, word, out);
}
