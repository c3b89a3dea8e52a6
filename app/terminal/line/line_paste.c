/*
 * Long texts in the line editor, and the placeholders that are shown instead of them: see
 * line_state.h.
 */
#include "app/terminal/line/line_state.h"

#include "app/common/term_text.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <stdlib.h>
#include <string.h>

#include <readline/history.h>
#include <readline/readline.h>

/* A pasted or recalled text with at least this many lines or bytes is shown as a placeholder,
 * because it is too long to read in the editor. */
#define PASTE_LINES 8
#define PASTE_BYTES 1000
#define MAX_PASTES 2000  /* texts of each kind that are kept; later ones are shown as they are */
#define BRIEF_COLUMNS 20 /* shown of the first line, and of the last */

/* A newline at the end belongs to the last line. */
static size_t count_lines(struct bn_str text)
{
    const bool has_end = text.n_bytes > 0 && text.ptr[text.n_bytes - 1] == '\n';
    return bn_str_count(text, '\n') + 1 - has_end;
}

/* Append the beginnings of two lines, at most BRIEF_COLUMNS columns each, with " ... " between
 * them: the first and the last line that are not blank. If they are the same line, append only one.
 * */
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
    term_text_brief((struct bn_str){text.ptr + first, n_first}, BRIEF_COLUMNS, out);
    if (last > first) {
        strbuf_add_text(out, " ... ");
        term_text_brief((struct bn_str){text.ptr + last, end - last}, BRIEF_COLUMNS, out);
    }
}

static const char *const labels[LINE_PLACEHOLDERS] = {
    [LINE_PLACEHOLDER_PASTED] = "[pasted ", [LINE_PLACEHOLDER_EARLIER] = "[earlier "};

/* Write the placeholder of a text, which has the number `number` of its kind. */
static void write_placeholder(enum line_placeholder kind, size_t number, struct bn_str text,
                              struct strbuf *out)
{
    const size_t n_lines = count_lines(text);
    strbuf_addf(out, "%s%zu: %zu line%s, %zu bytes: ", labels[kind], number, n_lines,
                n_lines == 1 ? "" : "s", text.n_bytes);
    brief_ends(text, out);
    strbuf_add_char(out, ']');
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

/* The stored text whose placeholder begins at `at` (n_bytes, then a 0); NULL: none does. */
static const struct line_paste *placeholder_at(const char *at, size_t n_bytes)
{
    for (int kind = 0; kind < LINE_PLACEHOLDERS; kind++) {
        const struct line_pastes *p = &line_state.pastes[kind];
        const size_t n_label = strlen(labels[kind]);
        if (n_bytes < n_label || memcmp(at, labels[kind], n_label) != 0)
            continue;
        const size_t number = strtoul(at + n_label, NULL, 10);
        if (number >= 1 && number <= p->n &&
            bn_str_starts((struct bn_str){at, n_bytes},
                          strbuf_str(&p->items[number - 1].placeholder)))
            return &p->items[number - 1];
    }
    return NULL;
}

struct span {
    size_t start, end;
};

/* The stored text of the first placeholder in a text (n_bytes, then a 0) at or behind `at`, and its
 * place. NULL: there is none. */
static const struct line_paste *next_placeholder(const char *text, size_t n_bytes, size_t at,
                                                 struct span *span)
{
    for (const char *p = text + at;
         n_bytes > 0 && (p = memchr(p, '[', n_bytes - (size_t)(p - text))); p++) {
        const size_t start = (size_t)(p - text);
        const struct line_paste *paste = placeholder_at(p, n_bytes - start);
        if (paste) {
            *span = (struct span){start, start + paste->placeholder.n_bytes};
            return paste;
        }
    }
    return NULL;
}

void line_expand(struct bn_str displayed, struct strbuf *out)
{
    struct strbuf copy = {0};
    strbuf_add_str(&copy, displayed); /* next_placeholder needs a 0 at the end */
    out->failed |= copy.failed;
    const char *bytes = strbuf_text(&copy);
    size_t at = 0;
    const struct line_paste *paste;
    for (struct span s; (paste = next_placeholder(bytes, copy.n_bytes, at, &s)); at = s.end) {
        strbuf_add(out, bytes + at, s.start - at);
        strbuf_add_str(out, strbuf_str(&paste->text));
    }
    strbuf_add(out, bytes + at, copy.n_bytes - at);
    strbuf_finish(&copy);
}

void line_paste_shorten(struct bn_str text, enum line_placeholder kind, struct strbuf *out)
{
    struct line_pastes *p = &line_state.pastes[kind];
    struct line_paste paste = {0};
    const bool is_long = text.n_bytes >= PASTE_BYTES || count_lines(text) >= PASTE_LINES;
    if (is_long) {
        line_expand(text, &paste.text); /* so that it never contains placeholders itself */
        write_placeholder(kind, p->n + 1, strbuf_str(&paste.text), &paste.placeholder);
    }
    if (!is_long || paste.text.failed || paste.placeholder.failed || p->n >= MAX_PASTES ||
        !mem_grow(&p->items, &p->cap, p->n + 1, sizeof(*p->items))) {
        strbuf_finish(&paste.text);
        strbuf_finish(&paste.placeholder);
        strbuf_add_str(out, text);
        return;
    }
    p->items[p->n++] = paste;
    strbuf_add_str(out, strbuf_str(&paste.placeholder));
}

void line_paste_insert(const char *bytes, size_t n_bytes)
{
    struct strbuf text = {0}, shown = {0};
    line_state.before.is_valid = false; /* the external editor may have removed placeholders */
    clean_paste(bytes, n_bytes, &text);
    line_paste_shorten(strbuf_str(&text), LINE_PLACEHOLDER_PASTED, &shown);
    rl_insert_text(strbuf_text(&shown));
    strbuf_finish(&shown);
    strbuf_finish(&text);
}

/* ---- editing a placeholder as a whole ---- */

static size_t count_placeholders(const char *text, size_t n_bytes)
{
    size_t n = 0;
    for (struct span s = {0}; next_placeholder(text, n_bytes, s.end, &s);)
        n++;
    return n;
}

/* Widen the range `cut` of `text` so that it has each placeholder as a whole or not at all. */
static struct span whole_placeholders(struct bn_str text, struct span cut)
{
    struct span wide = cut;
    for (struct span s = {0}; next_placeholder(text.ptr, text.n_bytes, s.end, &s);)
        if (s.start < cut.end && s.end > cut.start) {
            wide.start = size_min(wide.start, s.start);
            wide.end = size_max(wide.end, s.end);
        }
    return wide;
}

/* Whether the last key has put the text that it deleted into the kill ring. */
static bool is_kill(void)
{
    static rl_command_func_t *const kills[] = {
        line_kill_end, line_kill_backward,    rl_kill_full_line,   line_kill_start,
        rl_kill_word,  rl_backward_kill_word, rl_unix_word_rubout, rl_unix_filename_rubout,
        rl_kill_region};
    for (size_t i = 0; i < sizeof(kills) / sizeof(kills[0]); i++)
        if (rl_last_func == kills[i])
            return true;
    return false;
}

/* Make one undo group of all changes since rl_undo_list was `older`, so that one undo reverts both
 * what a key did and what was added to it. Readline's own group can only begin after the key. */
static void join_undo(UNDO_LIST *older)
{
    UNDO_LIST *first = rl_undo_list; /* the first change after `older` is the last in the list */
    while (first && first->next != older)
        first = first->next;
    if (!first) /* nothing was changed, or the key has removed `older` */
        return;
    rl_add_undo(UNDO_BEGIN, 0, 0, NULL);
    UNDO_LIST *begin = rl_undo_list;
    rl_undo_list = begin->next;
    begin->next = older;
    first->next = begin;
    rl_add_undo(UNDO_END, 0, 0, NULL);
}

/* A key has replaced a part of `before`. If this part begins or ends inside of a placeholder, and
 * the key has only deleted, delete the rest of the placeholder too; else revert what the key has
 * done. Returns whether the line has changed. */
static bool repair_placeholders(struct bn_str before)
{
    const size_t n_now = (size_t)rl_end;
    if (count_placeholders(rl_line_buffer, n_now) >= count_placeholders(before.ptr, before.n_bytes))
        return false;
    const size_t n_least = size_min(before.n_bytes, n_now);
    size_t n_first = 0, n_last = 0; /* equal bytes at the beginning and at the end */
    while (n_first < n_least && before.ptr[n_first] == rl_line_buffer[n_first])
        n_first++;
    while (n_last < n_least - n_first &&
           before.ptr[before.n_bytes - 1 - n_last] == rl_line_buffer[n_now - 1 - n_last])
        n_last++;
    const struct span now = {n_first, n_now - n_last}; /* the new bytes */
    const struct span cut = {n_first, before.n_bytes - n_last};
    const struct span wide = whole_placeholders(before, cut);
    /* If nothing was inserted, and the bytes before the cut equal those at its end, then the cut
     * may have begun earlier: "[a][a]" without one "[a]". */
    for (struct span s = cut;
         now.start == now.end && s.start > 0 && before.ptr[s.start - 1] == before.ptr[s.end - 1];) {
        s = (struct span){s.start - 1, s.end - 1};
        const struct span other = whole_placeholders(before, s);
        if (other.start == s.start && other.end == s.end)
            return false;
    }
    const size_t n_right = wide.end - cut.end, n_left = cut.start - wide.start;
    if (n_right + n_left == 0)
        return false;
    if (now.start < now.end) { /* other characters instead of a part, or inside: refuse the key */
        (void)rl_delete_text(0, rl_end);
        rl_point = 0;
        (void)rl_insert_text(before.ptr);
        rl_point = line_state.before.point;
        (void)rl_ding();    /* fails only without a terminal */
    } else if (is_kill()) { /* so that Ctrl-Y inserts the whole placeholder */
        (void)rl_kill_text((int)now.end, (int)(now.end + n_right)); /* appends to the kill */
        (void)rl_kill_text((int)now.start, (int)wide.start);        /* backwards: prepends */
        rl_point = (int)wide.start;
    } else {
        (void)rl_delete_text((int)now.end, (int)(now.end + n_right));
        (void)rl_delete_text((int)wide.start, (int)now.start);
        rl_point = (int)wide.start;
    }
    join_undo(line_state.before.undo);
    return true;
}

/* Move the cursor out of a placeholder, in the direction in which the key has moved it. */
static bool leave_placeholder(int before)
{
    const size_t at = (size_t)rl_point;
    for (struct span s = {0}; next_placeholder(rl_line_buffer, (size_t)rl_end, s.end, &s);)
        if (s.start < at && at < s.end) {
            rl_point = (int)(rl_point < before ? s.start : s.end);
            return true;
        }
    return false;
}

static bool is_searching(void)
{
    return RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH);
}

void line_paste_before_key(void)
{
    struct line_before *b = &line_state.before;
    struct span ignored;
    b->point = rl_point;
    b->history = where_history();
    b->undo = rl_undo_list;
    b->is_valid =
        !is_searching() && next_placeholder(rl_line_buffer, (size_t)rl_end, 0, &ignored) != NULL;
    strbuf_cut(&b->text, 0);
    if (b->is_valid)
        strbuf_add(&b->text, rl_line_buffer, (size_t)rl_end);
    b->is_valid = b->is_valid && !b->text.failed;
}

/* Whether the last key has undone earlier changes. */
static bool is_undo(void)
{
    return rl_last_func == rl_undo_command || rl_last_func == rl_revert_line ||
           rl_last_func == rl_vi_undo;
}

void line_paste_after_key(void)
{
    const struct line_before *b = &line_state.before;
    if (line_state.is_done || is_searching())
        return;
    /* A search, the history and undo replace the line as a whole. */
    const bool is_edit = b->is_valid && where_history() == b->history && !is_undo();
    const bool is_repaired = is_edit && repair_placeholders(strbuf_str(&b->text));
    if (leave_placeholder(b->point) || is_repaired)
        line_redisplay();
}

void line_paste_finish(void)
{
    for (int kind = 0; kind < LINE_PLACEHOLDERS; kind++) {
        struct line_pastes *p = &line_state.pastes[kind];
        for (size_t i = 0; i < p->n; i++) {
            strbuf_finish(&p->items[i].text);
            strbuf_finish(&p->items[i].placeholder);
        }
        mem_free(p->items);
        *p = (struct line_pastes){0};
    }
    strbuf_finish(&line_state.before.text);
}
