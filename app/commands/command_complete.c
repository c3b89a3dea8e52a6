/*
 * Tab completion: commands, settings, saved chats and files.
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

static void add_settings(const struct options *o, struct bn_str word, struct line_choices *out)
{
    for (size_t i = 0; i < options_count(o); i++) {
        const struct option *row = options_row(o, i);
        if ((row->places & OPTION_BY_SET) && begins_with(row->name, word))
            strbuf_addf(&out->words, "%s\n", row->name);
    }
}

static void add_saved_chats(struct bn_str word, struct line_choices *out)
{
    struct strbuf names = {0};
    struct bn_error ignored; /* then some or all names are missing */
    size_t n;
    (void)store_list(&names, &n, &ignored);
    for (size_t at = 0; at < names.n_bytes;) {
        const size_t n_line = strcspn(names.ptr + at, "\n") + 1;
        if (begins_with(names.ptr + at, word))
            strbuf_add(&out->words, names.ptr + at, n_line);
        at += n_line;
    }
    strbuf_finish(&names);
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
    switch (c->completes) {
    case ARGS_SETTING:
        add_settings(host->options, word, out);
        break;
    case ARGS_COMMAND:
        add_commands(word, out);
        break;
    case ARGS_SAVED_CHAT:
        add_saved_chats(word, out);
        break;
    case ARGS_FILE:
        out->kind = LINE_CHOICES_FILES;
        break;
    case ARGS_NONE:
    case ARGS_FREE:
        break;
    }
}
