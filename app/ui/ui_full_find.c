/*
 * /find on the full screen: n and N move between the matching lines. Any other key, except those
 * that scroll, ends the search and goes to the editor.
 */
#include "app/ui/ui_full_state.h"

#include "app/common/pattern.h"
#include "engine/base/memory.h"

#include <stdio.h>

/* Messages and answers are searched; commands and notices are not. */
static bool is_searched(const struct scroll_line *line)
{
    static const struct bn_str command = {TERMINAL_PROMPT "/", sizeof(TERMINAL_PROMPT)};
    if (line->look == SCROLL_USER)
        return !bn_str_starts(strbuf_str(&line->text), command);
    return line->look == SCROLL_ANSWER || line->look == SCROLL_THOUGHT;
}

static void show_match(struct full_ui *u, size_t at)
{
    u->find.at = at;
    full_show_line(u, u->find.lines[at]);
}

bool full_find(struct ui *ui, struct pattern *pattern)
{
    struct full_ui *u = ui->state;
    full_find_end(u);
    for (size_t i = 0; i < u->text.n; i++) {
        if (!is_searched(&u->text.lines[i]) ||
            !pattern_matches(pattern, strbuf_str(&u->text.lines[i].text)))
            continue;
        if (!mem_grow(&u->find.lines, &u->find.cap, u->find.n + 1, sizeof(*u->find.lines)))
            break; /* out of memory: show the matches so far */
        u->find.lines[u->find.n++] = i;
    }
    if (pattern_gave_up(pattern))
        ui_notice(ui, TONE_PLAIN, "some lines took too long and were left out");
    if (u->find.n == 0)
        ui_notice(ui, TONE_PLAIN, "nothing matches");
    else
        show_match(u, 0);
    return true;
}

void full_find_end(struct full_ui *u)
{
    mem_free(u->find.lines);
    u->find = (struct full_find){0};
    u->due = DUE_NOW;
}

bool full_find_key(struct full_ui *u, char key)
{
    if (u->find.n == 0)
        return false;
    if (key == 'n')
        show_match(u, (u->find.at + 1) % u->find.n);
    else if (key == 'N')
        show_match(u, (u->find.at + u->find.n - 1) % u->find.n);
    else
        full_find_end(u);
    return key == 'n' || key == 'N' || key == 0x1B;
}

bool full_find_is_at(const struct full_ui *u, size_t line)
{
    return u->find.n > 0 && u->find.lines[u->find.at] == line;
}

void full_find_hint(const struct full_ui *u, char *out, size_t out_bytes)
{
    if (u->find.n == 0)
        out[0] = 0;
    else
        (void)snprintf(out, out_bytes, "match %zu of %zu, n N Esc | ", u->find.at + 1,
                       u->find.n); /* a cut hint is fine */
}
