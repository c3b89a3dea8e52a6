/*
 * /find: a regular expression over the conversation, matching lines with their exchange's number.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "app/commands.h"

#include "app/term_text.h"

#include <pcre2.h>

#define MAX_HITS 200         /* more are counted, not shown */
#define MATCH_LIMIT 1000000u /* steps of one match: a pattern may be hostile to itself */
#define LINE_COLUMNS 200

struct search {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    struct strbuf hits;
    size_t n_hits;
    bool gave_up; /* a match took too long */
};

static bool search_open(struct search *s, struct bn_str pattern, struct bn_error *err)
{
    int code;
    PCRE2_SIZE at;
    uint32_t flags = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_CASELESS;
    for (size_t i = 0; i < pattern.n_bytes; i++)
        if (pattern.ptr[i] >= 'A' && pattern.ptr[i] <= 'Z')
            flags &= ~(uint32_t)PCRE2_CASELESS; /* a capital asks for exactly that */
    s->code = pcre2_compile((PCRE2_SPTR)pattern.ptr, pattern.n_bytes, flags, &code, &at, NULL);
    if (!s->code) {
        unsigned char reason[160];
        (void)pcre2_get_error_message(code, reason, sizeof(reason)); /* cut if too long */
        return bn_fail(err, BN_EARG, "the pattern is wrong at character %zu: %s", (size_t)at,
                       (const char *)reason);
    }
    s->match = pcre2_match_data_create_from_pattern(s->code, NULL);
    s->limits = pcre2_match_context_create(NULL);
    if (!s->match || !s->limits)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    pcre2_set_match_limit(s->limits, MATCH_LIMIT);
    return true;
}

static void search_close(struct search *s)
{
    pcre2_match_context_free(s->limits);
    pcre2_match_data_free(s->match);
    pcre2_code_free(s->code);
    strbuf_finish(&s->hits);
}

static void search_text(struct search *s, size_t number, const char *who, struct bn_str text)
{
    for (size_t at = 0; at < text.n_bytes;) {
        const char *end = memchr(text.ptr + at, '\n', text.n_bytes - at);
        const size_t n = (end ? (size_t)(end - text.ptr) : text.n_bytes) - at;
        const int rc =
            pcre2_match(s->code, (PCRE2_SPTR)text.ptr + at, n, 0, 0, s->match, s->limits);
        if (rc >= 0 && s->n_hits++ < MAX_HITS) {
            strbuf_addf(&s->hits, "%3zu %-4s ", number, who);
            term_text_brief((struct bn_str){text.ptr + at, n}, LINE_COLUMNS, &s->hits);
            strbuf_add_char(&s->hits, '\n');
        }
        if (rc < PCRE2_ERROR_NOMATCH)
            s->gave_up = true;
        at += n + 1;
    }
}

bool cmd_find(struct app *app, struct bn_str args)
{
    const struct transcript_state *t = &app->chat.transcript.now;
    struct search s = {0};
    struct bn_error err;
    if (args.n_bytes == 0) {
        ui_notice(&app->ui, TONE_ERROR, "what shall be found? /find PATTERN");
        return false;
    }
    const bool ok = search_open(&s, args, &err);
    for (size_t i = 0; ok && i < t->n; i++) {
        search_text(&s, i + 1, "you", t->items[i]->user);
        search_text(&s, i + 1, "it", t->items[i]->answer.text);
    }
    if (!ok) {
        ui_notice(&app->ui, TONE_ERROR, "%s", err.text);
    } else {
        strbuf_addf(&s.hits, "%zu line%s%s", s.n_hits, s.n_hits == 1 ? "" : "s",
                    s.n_hits > MAX_HITS ? " (the first are shown)" : "");
        if (s.gave_up)
            strbuf_add_text(&s.hits, "; some lines took too long and were left out");
        app->ui.ops->notice(&app->ui, TONE_PLAIN, strbuf_str(&s.hits));
    }
    search_close(&s);
    return ok;
}
