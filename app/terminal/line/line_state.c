/*
 * The state of the line editor and its settings: see line_state.h and line_edit.h.
 */
#include "app/terminal/line/line_state.h"

#include <readline/readline.h>

struct line_state line_state;

void line_redisplay(void)
{
    if (line_state.display.redisplay)
        line_state.display.redisplay(line_state.display.ud);
    else
        rl_redisplay();
}

static void show_matches(char **words, int n_words, int longest)
{
    line_state.display.matches(line_state.display.ud, words, n_words, longest);
}

void line_set_final_prompt(const char *prompt)
{
    line_state.final_prompt = prompt;
}

void line_set_enter(enum line_enter enter)
{
    line_state.refuses_enter = enter == LINE_ENTER_REFUSED;
}

bool line_enter_was_refused(void)
{
    const bool was = line_state.enter_was_refused;
    line_state.enter_was_refused = false;
    return was;
}

void line_set_display(const struct line_display *display)
{
    struct line_state *s = &line_state;
    if (display && !s->sink)
        s->sink = fopen("/dev/null", "w");
    const bool is_ours = display && s->sink;
    s->display = is_ours ? *display : (struct line_display){0};
    line_set_enter(LINE_ENTER_SENDS);
    rl_redisplay_function = is_ours ? line_redisplay : rl_redisplay;
    rl_completion_display_matches_hook = is_ours ? show_matches : NULL;
    rl_outstream = is_ours ? s->sink : stdout;
}
