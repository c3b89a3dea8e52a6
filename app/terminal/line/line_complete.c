/*
 * Tab completion: passes the choices of the host to Readline.
 */
#include "app/terminal/line/line_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

static char *next_word(const char *text, int is_again)
{
    struct line_state *s = &line_state;
    (void)text;
    if (!is_again)
        s->next_choice = 0;
    if (s->next_choice >= s->choices.words.n_bytes)
        return NULL;
    const char *word = s->choices.words.ptr + s->next_choice;
    const size_t n = strcspn(word, "\n");
    s->next_choice += n + 1;
    return strndup(word, n); /* Readline frees it */
}

/* A file name after the '@' that begins `text`. */
static char *next_marked(const char *text, int is_again)
{
    char *path = rl_filename_completion_function(text + 1, is_again);
    const size_t n_bytes = path ? strlen(path) + 2 : 0;
    char *marked = path ? malloc(n_bytes) : NULL; /* Readline frees it */
    if (marked)
        (void)snprintf(marked, n_bytes, "@%s", path); /* fits */
    free(path);
    return marked;
}

static char **complete(const char *text, int start, int end)
{
    const struct line_host *host = &line_state.host;
    struct line_choices *c = &line_state.choices;
    (void)end;
    strbuf_cut(&c->words, 0);
    c->kind = LINE_CHOICES_WORDS;
    host->complete(host->ud, (struct bn_str){rl_line_buffer, (size_t)start}, bn_str_of(text), c);
    /* If this is 0 and the result is NULL, Readline completes file names. */
    rl_attempted_completion_over = c->kind != LINE_CHOICES_FILES;
    switch (c->kind) {
    case LINE_CHOICES_WORDS:
        return rl_completion_matches(text, next_word);
    case LINE_CHOICES_MARKED:
        rl_filename_completion_desired = 1;
        return rl_completion_matches(text, next_marked);
    case LINE_CHOICES_FILES:
        break;
    }
    return NULL;
}

void line_complete_open(void)
{
    rl_attempted_completion_function = complete;
    rl_completer_word_break_characters = " \t\n";
    rl_basic_word_break_characters = " \t\n";
    /* With these questions Readline would read keys directly and bypass line_feed. */
    rl_completion_query_items = 0;
    rl_variable_bind("page-completions", "off");
}

void line_complete_finish(void)
{
    strbuf_finish(&line_state.choices.words);
}
