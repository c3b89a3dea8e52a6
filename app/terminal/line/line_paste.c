/*
 * Long texts in the line editor, and the marks that are shown instead of them: see line_state.h.
 */
#include "app/terminal/line/line_state.h"

#include "app/common/term_text.h"
#include "engine/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

/* A pasted or recalled text with at least this many lines or bytes is shown as a mark, because it
 * is too long to read in the editor. */
#define PASTE_LINES 8
#define PASTE_BYTES 1000
#define MAX_PASTES 2000 /* texts of each kind that are kept; later ones are shown as they are */
#define MARK_COLUMNS 20 /* shown of the first line, and of the last */
/* Below 100 bytes of labels and numbers, and two texts of term_text_brief. For 20 columns it uses
 * at most 16 * 20 + 16 bytes of a text and adds three dots. */
#define MARK_BYTES 1024

/* After a newline at the end, one more line is counted, which is empty. */
static size_t count_lines(struct bn_str text)
{
    return bn_str_count(text, '\n') + 1;
}

/* Append the beginnings of two lines, at most MARK_COLUMNS columns each, with " ... " between them:
 * the first and the last line that are not blank. If they are the same line, append only one. */
static void brief_ends(struct bn_str text, struct strbuf *out)
{
    size_t end = text.n_bytes, first = 0;
    while (end > 0 && strchr(" \t\n", text.ptr[end - 1]))
        end--;
    while (first < end && strchr(" \t\n", text.ptr[first]))
        first++;
    size_t n_first = 0, last = end;
    while (first + n_first < end && text.ptr[first + n_first] != '\n')
        n_first++;
    while (last > first && text.ptr[last - 1] != '\n')
        last--;
    while (last < end && strchr(" \t", text.ptr[last]))
        last++;
    term_text_brief((struct bn_str){text.ptr + first, n_first}, MARK_COLUMNS, out);
    if (last > first) {
        strbuf_add_text(out, " ... ");
        term_text_brief((struct bn_str){text.ptr + last, end - last}, MARK_COLUMNS, out);
    }
}

static const char *const labels[LINE_MARKS] = {
    [LINE_MARK_PASTED] = "[pasted ", [LINE_MARK_EARLIER] = "[earlier "};

/* Write the mark of a stored text. */
static void paste_mark(enum line_mark kind, size_t index, char out[MARK_BYTES])
{
    const struct bn_str text = strbuf_str(&line_state.pastes[kind].items[index]);
    struct strbuf ends = {0};
    brief_ends(text, &ends);
    const size_t n_lines = count_lines(text);
    (void)snprintf(out, MARK_BYTES, "%s%zu: %zu line%s, %zu bytes: %s]", labels[kind], index + 1,
                   n_lines, n_lines == 1 ? "" : "s", text.n_bytes, strbuf_text(&ends)); /* fits */
    strbuf_finish(&ends);
}

/* CR and CR LF become newlines. Harmful characters, such as other control characters, and invalid
 * bytes become U+FFFD (term_text.h). */
static void clean_paste(const char *bytes, size_t n_bytes, struct strbuf *out)
{
    struct strbuf lines = {0};
    for (size_t i = 0; i < n_bytes; i++) {
        if (bytes[i] == '\r' && i + 1 < n_bytes && bytes[i + 1] == '\n')
            continue;
        strbuf_add_char(&lines, bytes[i] == '\r' ? '\n' : bytes[i]);
    }
    term_text_clean(strbuf_str(&lines), TERM_KEEP_LINES, out);
    strbuf_finish(&lines);
}

/* If a mark begins at `at`, set *text to its text and return the length of the mark; else 0. */
static size_t mark_at(const char *at, size_t n_bytes, struct bn_str *text)
{
    for (int kind = 0; kind < LINE_MARKS; kind++) {
        const struct line_pastes *p = &line_state.pastes[kind];
        const size_t n_label = strlen(labels[kind]);
        char whole[MARK_BYTES];
        if (n_bytes < n_label || memcmp(at, labels[kind], n_label) != 0)
            continue;
        const size_t number = strtoul(at + n_label, NULL, 10); /* the text ends with a 0 */
        if (number < 1 || number > p->n)
            continue;
        paste_mark((enum line_mark)kind, number - 1, whole);
        const size_t n = strlen(whole);
        if (n > n_bytes || memcmp(at, whole, n) != 0)
            continue;
        *text = strbuf_str(&p->items[number - 1]);
        return n;
    }
    return 0;
}

void line_expand(struct bn_str displayed, struct strbuf *out)
{
    struct strbuf copy = {0};
    struct bn_str text;
    strbuf_add_str(&copy, displayed); /* mark_at needs a 0 at the end */
    out->failed |= copy.failed;
    const char *bytes = strbuf_text(&copy);
    for (size_t at = 0; at < copy.n_bytes;) {
        const size_t n_mark = mark_at(bytes + at, copy.n_bytes - at, &text);
        if (n_mark > 0)
            strbuf_add_str(out, text);
        else
            strbuf_add_char(out, bytes[at]);
        at += n_mark > 0 ? n_mark : 1;
    }
    strbuf_finish(&copy);
}

void line_paste_shorten(struct bn_str text, enum line_mark kind, struct strbuf *out)
{
    struct line_pastes *p = &line_state.pastes[kind];
    struct strbuf copy = {0};
    char mark[MARK_BYTES];
    const bool is_long = text.n_bytes >= PASTE_BYTES || count_lines(text) >= PASTE_LINES;
    if (is_long)
        line_expand(text, &copy); /* so that the text of a mark never contains marks */
    if (!is_long || copy.failed || p->n >= MAX_PASTES ||
        !mem_grow(&p->items, &p->cap, p->n + 1, sizeof(*p->items))) {
        strbuf_finish(&copy);
        strbuf_add_str(out, text);
        return;
    }
    p->items[p->n++] = copy;
    paste_mark(kind, p->n - 1, mark);
    strbuf_add_text(out, mark);
}

void line_paste_insert(const char *bytes, size_t n_bytes)
{
    struct strbuf text = {0}, shown = {0};
    clean_paste(bytes, n_bytes, &text);
    line_paste_shorten(strbuf_str(&text), LINE_MARK_PASTED, &shown);
    rl_insert_text(strbuf_text(&shown));
    strbuf_finish(&shown);
    strbuf_finish(&text);
}

void line_paste_finish(void)
{
    for (int kind = 0; kind < LINE_MARKS; kind++) {
        struct line_pastes *p = &line_state.pastes[kind];
        for (size_t i = 0; i < p->n; i++)
            strbuf_finish(&p->items[i]);
        mem_free(p->items);
        *p = (struct line_pastes){0};
    }
}
