/*
 * Rows of text on top of ncurses: see curses_screen.h.
 *
 * Uses newterm because initscr would end the program on an unknown terminal. signals_open has
 * installed our signal handlers before, and ncurses does not replace handlers.
 */
#include "app/terminal/curses_screen.h"

#include "app/common/env.h"
#include "app/common/file/paths.h"
#include "app/common/term_text.h"
#include "app/terminal/terminfo.h"
#include "engine/base/hash.h"
#include "engine/base/memory.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <curses.h>

#define MAX_ROWS 1000                 /* no real screen has more */
enum { PAIR_HEADING = 1, PAIR_CODE }; /* colour pairs; in ncurses, pair 0 is the default */

struct curses_screen {
    SCREEN *term;
    enum screen_style style;
    bool has_colours;
    uint64_t shown[MAX_ROWS];    /* hash of the text and looks of each row; 0: none stored */
    bool width_varies[MAX_ROWS]; /* the row has a character whose width differs between terminals */
    bool must_erase[MAX_ROWS];   /* the next frame erases the row before it draws it */
    bool is_on_screen;           /* ncurses has drawn a frame since it was opened or resumed */
    bool is_moved;               /* move_after has moved the cursor without ncurses */
    int row, column;             /* if is_moved: where the cursor is according to ncurses */
    /* For tty_set_exit_sequence, which uses 100 bytes: a signal handler cannot call endwin. */
    char exit_sequence[101];
};

static bool has_string(const char *name)
{
    const char *s = tigetstr(name);
    /* NULL: this terminal lacks it. -1: terminfo has no string capability of this name. */
    return s && (intptr_t)s != -1;
}

static void init_colours(struct curses_screen *s)
{
    if (s->style != SCREEN_RICH || !has_colors() || start_color() == ERR)
        return;
    (void)use_default_colors(); /* if it fails, init_pair fails too */
    s->has_colours = init_pair(PAIR_HEADING, COLOR_MAGENTA, -1) != ERR &&
                     init_pair(PAIR_CODE, COLOR_CYAN, -1) != ERR;
}

bool curses_open(enum screen_style style, struct curses_screen **out, struct bn_error *err)
{
    const char *name = env_get(ENV_TERM);
    struct curses_screen *s = mem_alloc(1, sizeof(*s));
    if (!s)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    s->style = style;
    s->term = name && strcmp(name, "dumb") != 0 ? newterm(NULL, stdout, stdin) : NULL;
    /* "cup" moves the cursor to a row and a column. */
    if (s->term && !has_string("cup")) {
        (void)endwin(); /* if it fails, there is nothing to undo */
        delscreen(s->term);
        s->term = NULL;
    }
    if (!s->term) {
        mem_free(s);
        return name ? bn_fail(err, BN_EUNSUPPORTED,
                              "the terminal '%.40s' cannot show a full screen", name)
                    : bn_fail(err, BN_EUNSUPPORTED, "no full screen: TERM is not set");
    }
    /* The calls whose result is ignored fail only without a terminal. tty_acquire has set the input
     * mode already; cbreak and noecho record it in ncurses. */
    (void)cbreak();
    (void)noecho();
    (void)nonl();        /* an LF moves the cursor down only, so ncurses can use it for that */
    (void)typeahead(-1); /* ncurses must not stop a repaint when keys arrive */
    (void)leaveok(stdscr, FALSE);
    init_colours(s);
    /* No attributes, a visible cursor, and the ordinary screen. */
    terminfo_append("sgr0", s->exit_sequence, sizeof(s->exit_sequence));
    terminfo_append("cnorm", s->exit_sequence, sizeof(s->exit_sequence));
    terminfo_append("rmcup", s->exit_sequence, sizeof(s->exit_sequence));
    tty_set_exit_sequence(s->exit_sequence);
    *out = s;
    return true;
}

void curses_close(struct curses_screen *s)
{
    if (!s)
        return;
    curses_suspend();
    delscreen(s->term);
    mem_free(s);
}

void curses_suspend(void)
{
    if (isendwin() || tty_is_in_background()) /* endwin would stop the process there */
        return;
    tty_set_exit_sequence("");
    (void)endwin(); /* an error means that the terminal is gone */
}

void curses_resume(struct curses_screen *s)
{
    tty_set_exit_sequence(s->exit_sequence);
    (void)clearok(curscr, TRUE);
    (void)wnoutrefresh(stdscr);
    (void)doupdate();
}

void curses_resize(struct curses_screen *s, struct tty_size size)
{
    const size_t rows = size.rows < MAX_ROWS ? size.rows : MAX_ROWS;
    const size_t columns = size.columns < 1000 ? size.columns : 1000; /* no screen has more */
    (void)resizeterm((int)rows, (int)columns); /* if out of memory, the old size stays */
    memset(s->shown, 0, sizeof(s->shown));
}

static attr_t attributes(const struct curses_screen *s, enum screen_look look)
{
    /* In the order of enum screen_look. */
    static const attr_t rich[] = {
        A_NORMAL, A_BOLD, A_DIM, A_REVERSE, A_REVERSE | A_BOLD, A_REVERSE | A_BOLD | A_UNDERLINE};
    return s->style == SCREEN_RICH || look >= SCREEN_BAR ? rich[look] : A_NORMAL;
}

/* The attributes of a byte of `looks` in curses_set_row. */
static attr_t attributes_of_text(const struct curses_screen *s, char byte)
{
    static const attr_t rich[TEXT_LOOKS] = {
        [TEXT_HEADING] = A_BOLD, [TEXT_BOLD] = A_BOLD, [TEXT_FENCE] = A_DIM,
        [TEXT_MARK] = A_BOLD,    [TEXT_DIM] = A_DIM,
    };
    static const int pairs[TEXT_LOOKS] = {
        [TEXT_HEADING] = PAIR_HEADING, [TEXT_CODE] = PAIR_CODE, [TEXT_BLOCK] = PAIR_CODE};
    const size_t look = (size_t)byte & ~(size_t)SCREEN_MARKED;
    const attr_t mark = byte & SCREEN_MARKED ? A_REVERSE : A_NORMAL;
    if (s->style != SCREEN_RICH || look >= TEXT_LOOKS)
        return mark;
    return rich[look] | mark | (s->has_colours ? (attr_t)COLOR_PAIR(pairs[look]) : 0);
}

/* Compare a row with the text and looks set before, and store the new ones. True: they differ. If
 * they differ and the old or the new text has a character whose width differs between terminals,
 * the row will be erased and sent as a whole, because the columns that ncurses computes may be
 * wrong in this terminal. */
static bool is_new(struct curses_screen *s, size_t row, enum screen_look look, struct bn_str text,
                   const char *looks)
{
    if (row >= MAX_ROWS)
        return false;
    /* The start depends on `look`, so that the same text with another look has another hash. */
    uint64_t h = fnv1a_add_bytes(FNV1A_START + (uint64_t)look, text.ptr, text.n_bytes);
    h = looks ? fnv1a_add_bytes(h, looks, text.n_bytes) : h;
    const bool did_vary = s->width_varies[row];
    if (s->shown[row] == h)
        return false;
    s->shown[row] = h;
    s->width_varies[row] = term_text_has_varying_width(text);
    if (did_vary || s->width_varies[row]) {
        (void)wredrawln(stdscr, (int)row, 1); /* fails below the screen, where nothing is visible */
        s->must_erase[row] = true;
    }
    return true;
}

static void add_text(const char *text, size_t n)
{
    /* An error means that the text ends in the last cell of the screen; it is shown. */
    (void)addnstr(text, n < INT_MAX ? (int)n : INT_MAX);
}

void curses_set_row(struct curses_screen *s, size_t row, enum screen_look look, struct bn_str text,
                    const char *looks)
{
    const attr_t attr = attributes(s, look);
    if (!is_new(s, row, look, text, looks) || move((int)row, 0) == ERR)
        return; /* unchanged, or below a screen that has become smaller */
    (void)attrset(A_NORMAL);
    (void)clrtoeol();
    (void)attrset((int)attr);
    for (size_t at = 0, end; at < text.n_bytes; at = end) { /* bytes of one look at a time */
        for (end = at + 1; end < text.n_bytes && (!looks || looks[end] == looks[at]);)
            end++;
        if (looks)
            (void)attrset((int)attributes_of_text(s, looks[at]));
        add_text(text.ptr + at, end - at);
    }
    /* If the text fills the row, the cursor is on the next row already. */
    if (look >= SCREEN_BAR && getcury(stdscr) == (int)row)
        for (int x = getcurx(stdscr); x < COLS; x++)
            (void)mvaddch((int)row, x, ' ');
    (void)attrset(A_NORMAL);
}

static void add_move(int row, int column, struct strbuf *out)
{
    /* curses_open has tested that the terminal has "cup". In X/Open, tparm has nine long
     * parameters. */
    const char *bytes = tparm(tigetstr("cup"), (long)row, (long)column, 0L, 0L, 0L, 0L, 0L, 0L, 0L);
    if (bytes)
        strbuf_add_text(out, bytes);
}

/* Move the cursor without ncurses: print the text `before` again from column 0. Then the cursor is
 * after this text, however wide the terminal shows its characters. */
static void move_after(size_t row, struct bn_str before)
{
    struct strbuf out = {0};
    add_move((int)row, 0, &out);
    strbuf_add_str(&out, before);
    /* If the terminal is gone, the next read fails. */
    (void)tty_write(strbuf_text(&out), out.n_bytes);
    strbuf_finish(&out);
}

/* Undo move_after: ncurses moves the cursor relative to the position that it has computed. */
static void move_back(struct curses_screen *s)
{
    struct strbuf out = {0};
    if (!s->is_moved)
        return;
    s->is_moved = false;
    add_move(s->row, s->column, &out);
    (void)tty_write(strbuf_text(&out), out.n_bytes); /* as in move_after */
    strbuf_finish(&out);
}

/* Erase rows without ncurses, which would erase only the columns that it takes for empty. Not in
 * the first frame: it clears the whole screen, and before it the ordinary screen is still visible.
 * */
static void erase_rows(struct curses_screen *s)
{
    struct strbuf out = {0};
    for (int row = 0; s->is_on_screen && has_string("el") && row < MAX_ROWS && row < LINES; row++) {
        if (!s->must_erase[row])
            continue;
        add_move(row, 0, &out);
        strbuf_add_text(&out, tigetstr("el"));
    }
    memset(s->must_erase, 0, sizeof(s->must_erase));
    if (out.n_bytes > 0) {
        add_move(getcury(curscr), getcurx(curscr), &out); /* where ncurses left the cursor */
        (void)tty_write(strbuf_text(&out), out.n_bytes);  /* as in move_after */
    }
    strbuf_finish(&out);
}

void curses_refresh(struct curses_screen *s, size_t row, size_t column, struct bn_str before)
{
    move_back(s);
    erase_rows(s);
    (void)move((int)row, (int)column);
    (void)wnoutrefresh(stdscr);
    (void)doupdate(); /* if the terminal is gone, the next read fails */
    s->is_on_screen = true;
    if (!term_text_has_varying_width(before))
        return;
    move_after(row, before);
    s->is_moved = true;
    s->row = (int)row;
    s->column = (int)column;
}

void curses_invalidate(void)
{
    (void)clearok(curscr, TRUE);
}

void curses_beep(void)
{
    (void)beep();
}
