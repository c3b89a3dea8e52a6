/*
 * Pastes in the line editor: see line_state.h.
 */
#include "app/terminal/line/line_state.h"

#include "app/common/term_text.h"
#include "engine/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

/* A paste with at least this many lines or bytes is shown as a mark, because it is too long to read
 * in the editor. */
#define PASTE_LINES 8
#define PASTE_BYTES 1000
#define MAX_PASTES 1000
#define MARK_COLUMNS 20 /* shown of the first line, and of the last */
#define MARK_BYTES 1024 /* enough for the numbers and two excerpts with combining characters */

static size_t count_lines(struct bn_str text)
{
    size_t n = 1;
    for (size_t i = 0; i < text.n_bytes; i++)
        n += text.ptr[i] == '\n';
    return n;
}

/* Append the beginnings of two lines: the first and the last line that are not blank. */
static void brief_ends(struct bn_str text, struct strbuf *out)
{
    size_t end = text.n_bytes, first = 0;
    while (end > 0 && strchr(" \n", text.ptr[end - 1]))
        end--;
    while (first < end && strchr(" \n", text.ptr[first]))
        first++;
    size_t n_first = 0, last = end;
    while (first + n_first < end && text.ptr[first + n_first] != '\n')
        n_first++;
    while (last > first && text.ptr[last - 1] != '\n')
        last--;
    while (last < end && text.ptr[last] == ' ')
        last++;
    term_text_brief((struct bn_str){text.ptr + first, n_first}, MARK_COLUMNS, out);
    if (last > first) {
        strbuf_add_text(out, " ... ");
        term_text_brief((struct bn_str){text.ptr + last, end - last}, MARK_COLUMNS, out);
    }
}

static void paste_mark(size_t index, char out[MARK_BYTES])
{
    const struct bn_str text = strbuf_str(&line_state.pastes[index]);
    struct strbuf ends = {0};
    brief_ends(text, &ends);
    (void)snprintf(out, MARK_BYTES, "[pasted %zu: %zu lines, %zu bytes: %s]", index + 1,
                   count_lines(text), text.n_bytes, strbuf_text(&ends)); /* fits */
    strbuf_finish(&ends);
}

/* CR and CR LF become newlines. Other control characters and invalid bytes become U+FFFD. */
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

void line_paste_insert(const char *bytes, size_t n_bytes)
{
    struct strbuf text = {0};
    clean_paste(bytes, n_bytes, &text);
    const bool is_long =
        text.n_bytes >= PASTE_BYTES || count_lines(strbuf_str(&text)) >= PASTE_LINES;
    if (is_long && line_state.n_pastes < MAX_PASTES &&
        mem_grow(&line_state.pastes, &line_state.cap_pastes, line_state.n_pastes + 1,
                 sizeof(*line_state.pastes))) {
        char mark[MARK_BYTES];
        line_state.pastes[line_state.n_pastes++] = text;
        paste_mark(line_state.n_pastes - 1, mark);
        rl_insert_text(mark);
    } else {
        rl_insert_text(strbuf_text(&text));
        strbuf_finish(&text);
    }
}

void line_paste_expand(const char *line, struct strbuf *out)
{
    const char *at = line;
    while (*at) {
        const char *mark = strstr(at, "[pasted ");
        const size_t number = mark ? strtoul(mark + strlen("[pasted "), NULL, 10) : 0;
        char whole[MARK_BYTES] = "";
        if (number >= 1 && number <= line_state.n_pastes)
            paste_mark(number - 1, whole);
        if (!mark) {
            strbuf_add_text(out, at);
            return;
        }
        strbuf_add(out, at, (size_t)(mark - at));
        if (whole[0] && strncmp(mark, whole, strlen(whole)) == 0) {
            strbuf_add_str(out, strbuf_str(&line_state.pastes[number - 1]));
            at = mark + strlen(whole);
        } else {
            strbuf_add_char(out, *mark);
            at = mark + 1;
        }
    }
}

void line_paste_finish(void)
{
    for (size_t i = 0; i < line_state.n_pastes; i++)
        strbuf_finish(&line_state.pastes[i]);
    mem_free(line_state.pastes);
    line_state.pastes = NULL;
    line_state.n_pastes = line_state.cap_pastes = 0;
}
