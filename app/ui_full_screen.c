/*
 * ncurses behind rows of cells: see ui_full_screen.h.
 *
 * newterm and not initscr, which would end the program on an unknown terminal. Our handlers stand
 * before newterm is called, so that ncurses leaves signals alone.
 */
#include "app/ui_full_screen.h"

#include "app/paths.h"
#include "engine/base/memory.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <curses.h>

struct screen {
    SCREEN *term;
    enum screen_style style;
    char leave[101]; /* what a signal handler writes in endwin's place */
};

static void add_string(char out[101], const char *name)
{
    const char *s = tigetstr(name);
    size_t n = strlen(out);
    if (!s || (intptr_t)s == -1 || strlen(s) + n > 100)
        return;
    while (*s) {
        const char *end = s[0] == '$' && s[1] == '<' ? strchr(s, '>') : NULL;
        if (end)
            s = end + 1; /* a delay of terminals with paper or tubes */
        else
            out[n++] = *s++;
    }
    out[n] = 0;
}

static bool has_string(const char *name)
{
    const char *s = tigetstr(name);
    return s && (intptr_t)s != -1;
}

bool full_screen_open(enum screen_style style, struct screen **out, struct bn_error *err)
{
    const char *name = env_get(ENV_TERM);
    struct screen *s = mem_alloc(1, sizeof(*s));
    if (!s)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    s->style = style;
    s->term = name && strcmp(name, "dumb") != 0 ? newterm(NULL, stdout, stdin) : NULL;
    if (s->term && !has_string("cup")) {
        (void)endwin(); /* fails where nothing was begun */
        delscreen(s->term);
        s->term = NULL;
    }
    if (!s->term) {
        mem_free(s);
        return bn_fail(err, BN_EUNSUPPORTED, "the terminal '%.40s' cannot show a whole screen",
                       name ? name : "");
    }
    (void)cbreak(); /* these fail only without a terminal */
    (void)noecho();
    (void)nonl();
    (void)typeahead(-1);
    (void)leaveok(stdscr, FALSE);
    add_string(s->leave, "sgr0");
    add_string(s->leave, "cnorm");
    add_string(s->leave, "rmcup");
    tty_set_leave(s->leave);
    *out = s;
    return true;
}

void full_screen_close(struct screen *s)
{
    if (!s)
        return;
    full_screen_leave(s);
    delscreen(s->term);
    mem_free(s);
}

void full_screen_leave(struct screen *s)
{
    (void)s; /* ncurses has a present screen */
    if (isendwin())
        return;
    tty_set_leave("");
    (void)endwin(); /* a terminal that is gone needs nothing */
}

void full_screen_again(struct screen *s)
{
    tty_set_leave(s->leave);
    (void)clearok(curscr, TRUE);
    (void)wnoutrefresh(stdscr);
    (void)doupdate();
}

void full_screen_resize(struct screen *s, struct tty_size size)
{
    (void)s; /* as above */
    const size_t rows = size.rows < 1000 ? size.rows : 1000;
    const size_t columns = size.columns < 1000 ? size.columns : 1000;
    (void)resizeterm((int)rows, (int)columns); /* out of memory: the old size stays */
}

static attr_t attributes(const struct screen *s, enum screen_look look)
{
    static const attr_t rich[] = {
        A_NORMAL, A_BOLD, A_DIM, A_REVERSE, A_REVERSE | A_BOLD, A_REVERSE | A_BOLD | A_UNDERLINE};
    return s->style == SCREEN_RICH || look >= SCREEN_BAR ? rich[look] : A_NORMAL;
}

void full_screen_row(struct screen *s, size_t row, enum screen_look look, struct bn_str text)
{
    const attr_t attr = attributes(s, look);
    const int n = text.n_bytes < INT_MAX ? (int)text.n_bytes : INT_MAX;
    if (move((int)row, 0) == ERR)
        return; /* the screen has become smaller */
    (void)attrset(A_NORMAL);
    (void)clrtoeol();
    (void)attrset((int)attr);
    (void)addnstr(text.ptr ? text.ptr : "", n); /* fails in the last cell, after writing it */
    if (look >= SCREEN_BAR && getcury(stdscr) == (int)row)
        for (int x = getcurx(stdscr); x < COLS; x++)
            (void)mvaddch((int)row, x, ' ');
    (void)attrset(A_NORMAL);
}

void full_screen_show(struct screen *s, size_t row, size_t column)
{
    (void)s; /* as above */
    (void)move((int)row, (int)column);
    (void)wnoutrefresh(stdscr);
    (void)doupdate(); /* a terminal that is gone is noticed by who reads from it */
}

void full_screen_paint_anew(struct screen *s)
{
    (void)s; /* as above */
    (void)clearok(curscr, TRUE);
}

void full_screen_beep(void)
{
    (void)beep();
}
