/*
 * Terminal strings out of terminfo: see ui_inline_term.h. Alone in its file, since <term.h> takes
 * common words as macros.
 */
#include "app/terminal/ui_inline_term.h"

#include "app/common/paths.h"

#include <stdint.h>
#include <term.h>
#include <unistd.h>

#define MAGENTA 5 /* of the eight colours of ECMA-48 */
#define CYAN 6

static void read_string(struct term_caps *caps, enum term_string which, const char *name)
{
    char cap[8];
    strncpy(cap, name, sizeof(cap) - 1); /* names have at most 5 letters */
    cap[sizeof(cap) - 1] = 0;
    const char *s = tigetstr(cap);
    char *out = caps->strings[which];
    size_t n = 0;
    if (!s || (intptr_t)s == -1)
        return;
    while (*s && n + 1 < sizeof(caps->strings[which])) {
        const char *end = s[0] == '$' && s[1] == '<' ? strchr(s, '>') : NULL;
        if (end)
            s = end + 1; /* a delay of terminals with paper or tubes */
        else
            out[n++] = *s++;
    }
    out[*s ? 0 : n] = 0; /* one that does not fit is none */
}

/* One of the eight colours that every terminal's theme has. */
static void add_colour(struct term_caps *caps, enum term_string which, int number)
{
    char colours[] = "colors", setaf[] = "setaf";
    const char *s = tigetnum(colours) >= 8 ? tigetstr(setaf) : NULL;
    const char *made =
        s && (intptr_t)s != -1 ? tparm(s, (long)number, 0L, 0L, 0L, 0L, 0L, 0L, 0L, 0L) : NULL;
    char *out = caps->strings[which];
    const size_t n = strlen(out);
    if (made && n + strlen(made) < sizeof(caps->strings[which]))
        memcpy(out + n, made, strlen(made) + 1);
}

static void read_looks(struct term_caps *caps)
{
    read_string(caps, TERM_STRING_BOLD, "bold");
    read_string(caps, TERM_STRING_DIM, "dim");
    read_string(caps, TERM_STRING_HEADING, "bold");
    add_colour(caps, TERM_STRING_HEADING, MAGENTA);
    add_colour(caps, TERM_STRING_CODE, CYAN);
}

void term_caps_read(struct term_caps *caps, enum term_looks looks)
{
    int status;
    const char *name = env_get(ENV_TERM);
    char term[64];
    *caps = (struct term_caps){0};
    if (looks == TERM_LOOKS_PLAIN || !name || strcmp(name, "dumb") == 0 ||
        strlen(name) >= sizeof(term))
        return;
    memcpy(term, name, strlen(name) + 1);
    if (setupterm(term, STDOUT_FILENO, &status) != 0)
        return;
    if (looks == TERM_LOOKS_RICH)
        read_looks(caps);
    read_string(caps, TERM_STRING_NORMAL, "sgr0");
    read_string(caps, TERM_STRING_CLEAR, "clear");
    read_string(caps, TERM_STRING_ERASE_BELOW, "ed");
    read_string(caps, TERM_STRING_UP, "cuu1");
    read_string(caps, TERM_STRING_INSERT_ROW, "il1");
    char right[] = "cuf";
    const char *cuf = tigetstr(right);
    caps->can_repaint = caps->strings[TERM_STRING_ERASE_BELOW][0] &&
                        caps->strings[TERM_STRING_UP][0] && cuf && (intptr_t)cuf != -1;
    for (size_t i = 0; i < TERM_STRING_NORMAL && !caps->strings[TERM_STRING_NORMAL][0]; i++)
        caps->strings[i][0] = 0; /* what cannot be ended is not begun */
}

void term_caps_paint(const struct term_caps *caps, struct flow_paint *out)
{
    static const enum term_string strings[] = {
        [TEXT_PLAIN] = TERM_STRING_NORMAL, [TEXT_HEADING] = TERM_STRING_HEADING,
        [TEXT_BOLD] = TERM_STRING_BOLD,    [TEXT_CODE] = TERM_STRING_CODE,
        [TEXT_BLOCK] = TERM_STRING_CODE,   [TEXT_FENCE] = TERM_STRING_DIM,
        [TEXT_MARK] = TERM_STRING_BOLD,    [TEXT_DIM] = TERM_STRING_DIM,
    };
    for (size_t i = 0; i < TEXT_LOOKS; i++)
        out->begin[i] = caps->strings[strings[i]];
}

void term_caps_right(const struct term_caps *caps, size_t n, struct strbuf *out)
{
    char right[] = "cuf";
    const char *s = caps->can_repaint ? tigetstr(right) : NULL;
    const char *moved = s ? tparm(s, (long)n, 0L, 0L, 0L, 0L, 0L, 0L, 0L, 0L) : NULL;
    if (moved)
        strbuf_add_text(out, moved);
}
