/*
 * /find: searches the conversation with a regular expression. The full-screen painter moves from
 * match to match. For other painters the matching lines of messages and answers are listed with the
 * number of their turn; the system message is not searched. Of a long line only the text around
 * each match is shown.
 */
#include "app/commands/commands.h"

#include "app/common/pattern.h"
#include "app/common/term_text.h"
#include "engine/base/size.h"
#include "engine/base/utf8.h"

#define MAX_ROWS 200        /* further matches are counted but not shown */
#define LINE_COLUMNS 200    /* a longer line is shown in excerpts around its matches */
#define EXCERPT_COLUMNS 120 /* of an excerpt */
#define BEFORE_CHARS 40     /* most characters of an excerpt before its match */
#define MAX_COLUMN_BYTES 16 /* read for a column: a character and three of width 0 after it */

struct search {
    struct pattern *pattern;
    struct strbuf rows; /* the text to show */
    size_t n_rows;      /* rows in it, and those that were left out */
    size_t n_hits, n_lines;
};

/* The offset of a word, at most BEFORE_CHARS characters before `at`. */
static size_t begin_of_excerpt(struct bn_str line, size_t at)
{
    size_t begin = at;
    for (size_t n = 0; begin > 0 && n < BEFORE_CHARS;)
        n += !utf8_is_continuation(line.ptr[--begin]);
    const char *blank = begin > 0 ? memchr(line.ptr + begin, ' ', at - begin) : NULL;
    return blank ? (size_t)(blank - line.ptr) + 1 : begin;
}

/* The bytes at the beginning of `text` that fit. Like term_text_brief, it reads only the beginning,
 * so that the time is short if the text has very many characters of width 0. */
static size_t fit(struct bn_str text, size_t columns)
{
    const size_t n = size_min(text.n_bytes, MAX_COLUMN_BYTES * columns);
    return term_text_fit((struct bn_str){text.ptr, n}, columns);
}

/* Append a row with the hit. Returns the offset of the end of the text that it shows. `number` is
 * that of the turn, from 1. */
static size_t add_row(struct search *s, size_t number, const char *who, struct bn_str line,
                      const struct pattern_hit *hit)
{
    if (++s->n_rows > MAX_ROWS)
        return line.n_bytes; /* nothing more is shown */
    const bool is_whole = fit(line, LINE_COLUMNS) == line.n_bytes;
    const size_t begin = is_whole ? 0 : begin_of_excerpt(line, hit->begin);
    const struct bn_str rest = {line.ptr + begin, line.n_bytes - begin};
    const size_t columns = is_whole ? LINE_COLUMNS : EXCERPT_COLUMNS;
    strbuf_addf(&s->rows, "%3zu %-4s %s", number, who, begin > 0 ? "..." : "");
    term_text_brief(rest, columns, &s->rows);
    strbuf_add_char(&s->rows, '\n');
    const bool is_cut = fit(rest, columns) < rest.n_bytes;
    return begin + fit(rest, is_cut ? columns - 3 : columns); /* 3 columns for "..." */
}

static void search_text(struct search *s, size_t number, const char *who, struct bn_str text)
{
    struct bn_str line;
    for (size_t at = 0; bn_str_next_line(text, &at, &line);) {
        struct pattern_hit hit = {0};
        for (size_t shown = 0; pattern_next(s->pattern, line, &hit); s->n_hits++) {
            s->n_lines += hit.n == 1;
            if (hit.n == 1 || hit.end > shown)
                shown = add_row(s, number, who, line, &hit);
        }
    }
}

/* Thoughts are searched only if they are shown. */
static void search_answer(struct command_host *host, struct search *s, size_t number,
                          const struct exchange *e)
{
    struct strbuf thought = {0}, answer = {0};
    chat_split_answer(host->chat, e, &thought, &answer);
    if (options_flag(host->options, "thoughts"))
        search_text(s, number, "it", strbuf_str(&thought));
    search_text(s, number, "it", strbuf_str(&answer));
    strbuf_finish(&thought);
    strbuf_finish(&answer);
}

static void list_matches(struct command_host *host, struct pattern *pattern)
{
    const struct transcript_state *t = &host->chat->transcript.now;
    struct search s = {.pattern = pattern};
    for (size_t i = 0; i < t->n; i++) {
        search_text(&s, i + 1, "you", t->items[i]->user);
        search_answer(host, &s, i + 1, t->items[i]);
    }
    if (s.n_hits == 0)
        strbuf_add_text(&s.rows, "nothing matches");
    else
        strbuf_addf(&s.rows, "%s%zu match%s in %zu line%s%s",
                    s.n_hits < PATTERN_MAX_HITS ? "" : "at least ", s.n_hits,
                    s.n_hits == 1 ? "" : "es", s.n_lines, s.n_lines == 1 ? "" : "s",
                    s.n_rows > MAX_ROWS ? " (the first are shown)" : "");
    if (pattern_gave_up(pattern))
        strbuf_add_text(&s.rows, "; some lines took too long and were left out");
    host->ui->ops->notice(host->ui, TONE_PLAIN, strbuf_str(&s.rows));
    strbuf_finish(&s.rows);
}

bool cmd_find(struct command_host *host, struct bn_str args)
{
    struct pattern *pattern;
    struct bn_error err;
    if (args.n_bytes == 0)
        return command_fail(host, "usage: /find PATTERN");
    if (!pattern_open(args, &pattern, &err))
        return command_fail_error(host, &err);
    if (!host->ui->ops->find(host->ui, pattern))
        list_matches(host, pattern);
    pattern_close(pattern);
    return true;
}
