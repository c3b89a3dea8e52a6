/*
 * Reads strings from terminfo: see terminfo.h. This is a separate file because <term.h> defines
 * common words as macros.
 */
#include "app/terminal/terminfo.h"

#include "app/common/env.h"
#include "app/common/file/paths.h"

#include <stdint.h>
#include <term.h>
#include <unistd.h>

#define MAGENTA 5 /* of the eight colours of ECMA-48 */
#define CYAN 6

void terminfo_append(const char *name, char *out, size_t out_bytes)
{
    const char *s = tigetstr(name);
    const size_t n_before = strlen(out);
    size_t n = n_before;
    /* NULL: this terminal lacks it. -1: terminfo has no string capability of this name. */
    if (!s || (intptr_t)s == -1)
        return;
    while (*s && n + 1 < out_bytes) {
        const char *end = s[0] == '$' && s[1] == '<' ? strchr(s, '>') : NULL;
        if (end)
            s = end + 1; /* skip a delay, needed by hardware terminals only */
        else
            out[n++] = *s++;
    }
    out[*s ? n_before : n] = 0; /* bytes are left over: undo, because a cut string is useless */
}

static void read_string(struct terminfo *caps, enum terminfo_string which, const char *name)
{
    terminfo_append(name, caps->strings[which], sizeof(caps->strings[which]));
}

/* Append the string that sets the colour of text; nothing if the string does not fit or the
 * terminal has fewer than the eight basic colours. In X/Open, tparm has nine long parameters. */
static void add_colour(struct terminfo *caps, enum terminfo_string which, int number)
{
    const char *s = tigetnum("colors") >= 8 ? tigetstr("setaf") : NULL;
    const char *made =
        s && (intptr_t)s != -1 ? tparm(s, (long)number, 0L, 0L, 0L, 0L, 0L, 0L, 0L, 0L) : NULL;
    char *out = caps->strings[which];
    const size_t n = strlen(out);
    if (made && n + strlen(made) < sizeof(caps->strings[which]))
        memcpy(out + n, made, strlen(made) + 1);
}

static void read_looks(struct terminfo *caps)
{
    read_string(caps, TERMINFO_BOLD, "bold");
    read_string(caps, TERMINFO_DIM, "dim");
    read_string(caps, TERMINFO_HEADING, "bold");
    add_colour(caps, TERMINFO_HEADING, MAGENTA);
    add_colour(caps, TERMINFO_CODE, CYAN);
    read_string(caps, TERMINFO_REVERSE, "rev");
}

void terminfo_read(struct terminfo *caps, enum terminfo_style style)
{
    int status;
    const char *name = env_get(ENV_TERM);
    char term[64]; /* a copy, because in X/Open the parameter of setupterm is not const */
    *caps = (struct terminfo){0};
    if (!name || strcmp(name, "dumb") == 0 || strlen(name) >= sizeof(term))
        return;
    memcpy(term, name, strlen(name) + 1);
    /* Without `status`, setupterm would end the program if the terminal is unknown. */
    if (setupterm(term, STDOUT_FILENO, &status) != 0)
        return;
    if (style == TERMINFO_STYLE_RICH)
        read_looks(caps);
    read_string(caps, TERMINFO_NORMAL, "sgr0");
    read_string(caps, TERMINFO_CLEAR, "clear");
    read_string(caps, TERMINFO_ERASE_BELOW, "ed");
    read_string(caps, TERMINFO_ERASE_LINE, "el");
    read_string(caps, TERMINFO_UP, "cuu1");
    read_string(caps, TERMINFO_INSERT_ROW, "il1");
    const char *cuf = tigetstr("cuf"); /* moves the cursor n columns to the right */
    caps->can_repaint = caps->strings[TERMINFO_ERASE_BELOW][0] &&
                        caps->strings[TERMINFO_ERASE_LINE][0] && caps->strings[TERMINFO_UP][0] &&
                        cuf && (intptr_t)cuf != -1;
    /* A look (the strings before TERMINFO_NORMAL) that cannot be ended is not used. */
    for (size_t i = 0; i < TERMINFO_NORMAL && !caps->strings[TERMINFO_NORMAL][0]; i++)
        caps->strings[i][0] = 0;
    const bool has_screen = caps->can_repaint;
    if (style == TERMINFO_STYLE_NONE)
        *caps = (struct terminfo){0};
    caps->has_screen = has_screen;
}

void terminfo_text_looks(const struct terminfo *caps, struct flow_looks *out)
{
    static const enum terminfo_string strings[] = {
        [TEXT_PLAIN] = TERMINFO_NORMAL, [TEXT_HEADING] = TERMINFO_HEADING,
        [TEXT_BOLD] = TERMINFO_BOLD,    [TEXT_CODE] = TERMINFO_CODE,
        [TEXT_BLOCK] = TERMINFO_CODE,   [TEXT_FENCE] = TERMINFO_DIM,
        [TEXT_MARK] = TERMINFO_BOLD,    [TEXT_DIM] = TERMINFO_DIM,
    };
    for (size_t i = 0; i < TEXT_LOOKS; i++)
        out->begin[i] = caps->strings[strings[i]];
}

void terminfo_add_right(const struct terminfo *caps, size_t n, struct strbuf *out)
{
    const char *s = caps->can_repaint ? tigetstr("cuf") : NULL;
    const char *moved = s ? tparm(s, (long)n, 0L, 0L, 0L, 0L, 0L, 0L, 0L, 0L) : NULL;
    if (moved)
        strbuf_add_text(out, moved);
}
