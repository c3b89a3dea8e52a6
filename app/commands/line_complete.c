/*
 * What Tab completes: commands, settings, sessions, files. See line_edit.h.
 */
#include "app/commands/commands.h"
#include "app/common/slash.h"
#include "app/terminal/line/line_edit.h"

#include <stdio.h>
#include <stdlib.h>

#include <readline/readline.h>

static struct {
    struct app *app;
    size_t next;            /* the generators' place in their lists */
    struct strbuf sessions; /* names, one a line */
} state;

static char *copy_joined(const char *prefix, const char *word)
{
    const size_t n = strlen(prefix) + strlen(word) + 1;
    char *s = malloc(n); /* Readline frees it */
    if (s)
        (void)snprintf(s, n, "%s%s", prefix, word); /* fits */
    return s;
}

static char *next_command(const char *text, int is_again)
{
    const char *prefix = text[0] == '/' ? "/" : "";
    const char *word = text + strlen(prefix);
    if (!is_again)
        state.next = 0;
    while (command_table[state.next].name) {
        const char *name = command_table[state.next++].name;
        if (strncmp(name, word, strlen(word)) == 0)
            return copy_joined(prefix, name);
    }
    return NULL;
}

static char *next_setting(const char *text, int is_again)
{
    if (!is_again)
        state.next = 0;
    while (state.next < options_count(state.app->options)) {
        const struct option *row = options_row(state.app->options, state.next++);
        if ((row->places & OPTION_BY_SET) && strncmp(row->name, text, strlen(text)) == 0)
            return copy_joined("", row->name);
    }
    return NULL;
}

static char *next_session(const char *text, int is_again)
{
    if (!is_again) {
        struct bn_error no_list; /* nothing to complete then */
        size_t n;
        strbuf_cut(&state.sessions, 0);
        state.next = 0;
        (void)store_list(&state.sessions, &n, &no_list);
    }
    while (state.next < state.sessions.n_bytes) {
        char name[300];
        const char *line = state.sessions.ptr + state.next;
        const size_t n = strcspn(line, "\n");
        state.next += n + 1;
        if (n < sizeof(name) && strncmp(line, text, strlen(text)) == 0) {
            memcpy(name, line, n);
            name[n] = 0;
            return copy_joined("", name);
        }
    }
    return NULL;
}

static char *next_attachment(const char *text, int is_again)
{
    char *path = rl_filename_completion_function(text + 1, is_again);
    char *marked = path ? copy_joined("@", path) : NULL;
    free(path);
    return marked;
}

static char **complete_argument(const struct command *c, const char *text)
{
    rl_attempted_completion_over = c->completes != ARGS_FILE;
    switch (c->completes) {
    case ARGS_SETTING:
        return rl_completion_matches(text, next_setting);
    case ARGS_COMMAND:
        return rl_completion_matches(text, next_command);
    case ARGS_SESSION:
        return rl_completion_matches(text, next_session);
    case ARGS_NONE:
    case ARGS_FREE:
    case ARGS_FILE:
        break;
    }
    return NULL; /* FILE: Readline's own completion follows */
}

static char **complete(const char *text, int start, int end)
{
    (void)end;
    rl_attempted_completion_over = 1;
    if (start == 0 && text[0] == '/')
        return rl_completion_matches(text, next_command);
    const struct slash s = slash_parse((struct bn_str){rl_line_buffer, (size_t)start});
    const struct command *near, *c = s.kind == SLASH_COMMAND ? command_find(s.name, &near) : NULL;
    if (c)
        return complete_argument(c, text);
    if (text[0] == '@') {
        rl_filename_completion_desired = 1;
        return rl_completion_matches(text, next_attachment);
    }
    return NULL;
}

void line_complete_open(struct app *app)
{
    state.app = app;
    rl_attempted_completion_function = complete;
    rl_completer_word_break_characters = " \t\n";
    rl_basic_word_break_characters = " \t\n";
    /* Readline's questions would wait for a key by themselves. */
    rl_completion_query_items = 0;
    rl_variable_bind("page-completions", "off");
}
