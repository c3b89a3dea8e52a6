/*
 * /find: searches the conversation with a regular expression. The full-screen painter moves from
 * match to match. For other painters the matching lines of messages and answers are listed with the
 * number of their turn; the system message is not searched.
 */
#include "app/commands/commands.h"

#include "app/common/pattern.h"
#include "app/common/term_text.h"

#define MAX_HITS 200     /* further lines are counted but not shown */
#define LINE_COLUMNS 200 /* a longer line is cut */

struct search {
    struct pattern *pattern;
    struct strbuf hits; /* the text to show */
    size_t n_hits;      /* lines that match, shown or not */
};

/* `number` is that of the turn, from 1. */
static void search_text(struct search *s, size_t number, const char *who, struct bn_str text)
{
    for (size_t at = 0; at < text.n_bytes;) {
        const char *end = memchr(text.ptr + at, '\n', text.n_bytes - at);
        const size_t n = (end ? (size_t)(end - text.ptr) : text.n_bytes) - at;
        const struct bn_str line = {text.ptr + at, n};
        if (pattern_matches(s->pattern, line) && s->n_hits++ < MAX_HITS) {
            strbuf_addf(&s->hits, "%3zu %-4s ", number, who);
            term_text_brief(line, LINE_COLUMNS, &s->hits);
            strbuf_add_char(&s->hits, '\n');
        }
        at += n + 1;
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
        strbuf_add_text(&s.hits, "nothing matches");
    else
        strbuf_addf(&s.hits, "%zu line%s%s", s.n_hits, s.n_hits == 1 ? "" : "s",
                    s.n_hits > MAX_HITS ? " (the first are shown)" : "");
    if (pattern_gave_up(pattern))
        strbuf_add_text(&s.hits, "; some lines took too long and were left out");
    host->ui->ops->notice(host->ui, TONE_PLAIN, strbuf_str(&s.hits));
    strbuf_finish(&s.hits);
}

bool cmd_find(struct command_host *host, struct bn_str args)
{
    struct pattern *pattern;
    struct bn_error err;
    if (args.n_bytes == 0)
        return command_fail(host, "usage: /find PATTERN");
    if (!pattern_open(args, &pattern, &err))
        return command_fail(host, err.text);
    if (!host->ui->ops->find(host->ui, pattern))
        list_matches(host, pattern);
    pattern_close(pattern);
    return true;
}
