/*
 * Keys of the line editor that Readline lacks: Enter that inserts a newline in an incomplete
 * message, arrow keys that move between the lines of a message before they recall the history, and
 * Tab with choices from line_host. Functions with the parameters `count` and `key` are Readline
 * commands: the repetition count, and the last key of the command's key sequence.
 */
#include "app/terminal/line/line_state.h"

#include "app/common/slash.h"
#include "app/common/term_text.h"
#include "engine/base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>
#include <readline/tilde.h>

#define KEY_REDRAW '\014' /* Ctrl-L */
#define MAX_SEQUENCE 8    /* most bytes of a key sequence; terminals send fewer */

static int insert_newline(int count, int key)
{
    (void)count;
    (void)key;
    rl_insert_text("\n");
    return 0;
}

/* Enter inserts a newline if the message begins with an open fence (SLASH_FENCE), or if the cursor
 * is after a backslash at the end of the message; the newline replaces this backslash. In a
 * message that begins with a fence, also a closed one, a backslash is text. */
static int enter(int count, int key)
{
    const char *line = rl_line_buffer, *close = NULL;
    const size_t n_blank = strspn(line, " \t\n");
    const bool is_fenced = slash_fence(line + n_blank, &close);
    const bool continues =
        !is_fenced && rl_end > 0 && line[rl_end - 1] == '\\' && rl_point == rl_end;
    if (!continues && (!is_fenced || close))
        return rl_newline(count, key);
    if (continues)
        (void)rl_rubout(1, '\b'); /* remove the backslash */
    rl_insert_text("\n");
    return 0;
}

/* A message can have several lines. line_start and line_end return the offset of the first byte,
 * and the offset after the last byte, of the line that contains offset `at`. */
static int line_start(int at)
{
    while (at > 0 && rl_line_buffer[at - 1] != '\n')
        at--;
    return at;
}

static int line_end(int at)
{
    while (at < rl_end && rl_line_buffer[at] != '\n')
        at++;
    return at;
}

/* The column of offset `at` in the line that begins at `start`. byte_at is the inverse, limited to
 * whole characters and to the end of the line. The cursor keeps its column, not its byte, when it
 * moves between lines: a byte offset could split a character. */
static size_t column_of(int start, int at)
{
    return term_text_width((struct bn_str){rl_line_buffer + start, (size_t)(at - start)});
}

static int byte_at(int start, size_t column)
{
    const struct bn_str line = {rl_line_buffer + start, (size_t)(line_end(start) - start)};
    return start + (int)term_text_fit(line, column);
}

/* If the editor is empty, insert the line that line_host.unqueue_last returns. False: nothing was
 * inserted. */
static bool unqueue_last(void)
{
    const struct line_host *host = &line_state.host;
    struct strbuf text = {0};
    const bool ok = rl_end == 0 && host->unqueue_last(host->ud, &text);
    if (ok)
        rl_insert_text(strbuf_text(&text));
    strbuf_finish(&text);
    return ok;
}

/* Up and Down move between the lines of a message. Up in the first line and Down in the last line
 * recall the history. */
static int go_up(int count, int key)
{
    const int start = line_start(rl_point);
    if (unqueue_last())
        return 0;
    if (start == 0)
        return rl_get_previous_history(count, key);
    rl_point = byte_at(line_start(start - 1), column_of(start, rl_point));
    return 0;
}

static int go_down(int count, int key)
{
    const int end = line_end(rl_point);
    if (end == rl_end)
        return rl_get_next_history(count, key);
    rl_point = byte_at(end + 1, column_of(line_start(rl_point), rl_point));
    return 0;
}

/* Readline's commands of vi, such as "D", use "$" to find the end of a deletion. They would also
 * delete the newline if "$" went to the end of a line. */
static bool has_vi_commands(void)
{
    return rl_get_keymap() == rl_get_keymap_by_name("vi-move");
}

/* Home and End go to the ends of a line of the message and, if the cursor is there already, to the
 * ends of the message. */
static int go_line_start(int count, int key)
{
    const int start = line_start(rl_point);
    if (rl_point == start || has_vi_commands())
        return rl_beg_of_line(count, key);
    rl_point = start;
    return 0;
}

static int go_line_end(int count, int key)
{
    const int end = line_end(rl_point);
    if (rl_point == end || has_vi_commands())
        return rl_end_of_line(count, key);
    rl_point = end;
    return 0;
}

/* Put the text from the cursor to offset `to` into the kill ring. Backwards, it is put before the
 * text that the last key has put there. */
static int kill_to(int to)
{
    const int start = to < rl_point ? to : rl_point;
    (void)rl_kill_text(rl_point, to); /* always 0 */
    rl_point = rl_mark = start;
    return 0;
}

/* Ctrl-K and Ctrl-U delete up to the end and the beginning of a line of the message or, if the
 * cursor is there already, the newline. In the last or first line, and with a negative repetition
 * count, which reverses the direction, they call the command of Readline. */
int line_kill_end(int count, int key)
{
    const int end = line_end(rl_point);
    if (count < 0 || end == rl_end)
        return rl_kill_line(count, key);
    return kill_to(rl_point < end ? end : end + 1);
}

/* Kill backwards, or call `readline`. */
static int kill_start(int count, int key, rl_command_func_t *readline)
{
    const int start = line_start(rl_point);
    if (count < 0 || start == 0)
        return readline(count, key);
    return kill_to(rl_point > start ? start : start - 1);
}

int line_kill_start(int count, int key)
{
    return kill_start(count, key, rl_unix_line_discard);
}

int line_kill_backward(int count, int key)
{
    return kill_start(count, key, rl_backward_kill_line);
}

/* The start of the cluster before offset `at` > 0. A grapheme cluster is a character with all that
 * combines with it (term_text_cluster). */
static int cluster_before(int at)
{
    const int start = line_start(at - 1);
    const struct bn_str line = {rl_line_buffer + start, (size_t)(at - start)};
    size_t before = 0;
    for (size_t i = 0; i < line.n_bytes; i = term_text_cluster(line, i))
        before = i;
    return start + (int)before;
}

static int cluster_end(int at)
{
    return (int)term_text_cluster((struct bn_str){rl_line_buffer, (size_t)rl_end}, (size_t)at);
}

/* Left, Right, Backspace and Delete treat a cluster as one character. With a repetition count, and
 * at the ends of the text, they call the command of Readline. */
static int go_left(int count, int key)
{
    if (count != 1 || rl_point == 0)
        return rl_backward_char(count, key);
    rl_point = cluster_before(rl_point);
    return 0;
}

static int go_right(int count, int key)
{
    if (count != 1 || rl_point >= rl_end)
        return rl_forward_char(count, key);
    rl_point = cluster_end(rl_point);
    return 0;
}

static int delete_left(int count, int key)
{
    const int start = rl_point > 0 ? cluster_before(rl_point) : 0;
    if (count != 1 || rl_point == 0)
        return rl_rubout(count, key);
    rl_delete_text(start, rl_point);
    rl_point = start;
    return 0;
}

static int delete_right(int count, int key)
{
    if (count != 1 || rl_point >= rl_end)
        return rl_delete(count, key);
    rl_delete_text(rl_point, cluster_end(rl_point));
    return 0;
}

static int clear_screen(int count, int key)
{
    const struct line_display *d = &line_state.display;
    if (!d->redisplay)
        return rl_clear_screen(count, key);
    d->clear(d->ud);
    return 0;
}

/* The next typed byte, or 0 if the terminal has sent no other byte or a macro supplies the keys. */
static unsigned char next_byte(void)
{
    const struct line_state *s = &line_state;
    const bool is_typed = s->at < s->n_keys && !RL_ISSTATE(RL_STATE_MACROINPUT);
    return is_typed ? (unsigned char)s->keys[s->at] : 0;
}

/* `key` may be the first byte of a character: skip the others, because they are no text without
 * it. */
static void skip_character(int key)
{
    while (key >= 0xC0 && utf8_is_continuation(next_byte()))
        line_state.at++;
}

/* For an unbound key. */
static int refuse_key(int count, int key)
{
    (void)count;
    skip_character(key);
    return rl_ding();
}

/* For an unbound key in a control sequence, which the terminal sends for a function key, for
 * example. `key` is the first byte of the sequence that belongs to no binding. Skip the other
 * bytes, which Readline would insert as text. The sequence ends with the first byte from '@' to
 * '~' (ECMA-48, 5.4), but '[' may come before it: the Linux console sends "Esc [ [ A" for F1. */
static int skip_sequence(int count, int key)
{
    (void)count;
    while (((key >= ' ' && key < '@') || key == '[') && next_byte() >= ' ' && next_byte() <= '~') {
        key = next_byte() == '[' ? '~' : next_byte();
        line_state.at++;
    }
    skip_character(key); /* Alt-[ or Alt-O before a character beyond ASCII */
    return 0;
}

/* What comes before a key in a key sequence. */
enum key_prefix {
    PREFIX_NONE,
    PREFIX_ESCAPE,
    PREFIX_CONTROL, /* "Esc [" or "Esc O", perhaps with more bytes: a control sequence */
    PREFIX_OTHER
};

static enum key_prefix prefix_with(enum key_prefix before, int key)
{
    if (before == PREFIX_CONTROL || (before == PREFIX_ESCAPE && (key == '[' || key == 'O')))
        return PREFIX_CONTROL;
    return before != PREFIX_OTHER && key == ESC ? PREFIX_ESCAPE : PREFIX_OTHER;
}

/* Replace commands of Readline in a key map and, for key sequences, in the maps inside it.
 *
 * For an unbound key and for rl_abort (Ctrl-G), Readline calls longjmp. For a single key this is
 * safe, because the function that reads the key sets the target of the jump. Another function
 * handles the later keys of a sequence. If a macro or a search has supplied these keys, the target
 * is a function that has already returned (Readline 8.2, callback.c). So refuse_key replaces
 * rl_abort in key sequences (depth > 0). It replaces unbound keys at every depth, because such a
 * key needs to ring the bell only. In a control sequence, skip_sequence replaces both. Readline
 * does not jump if the keys before an unbound key are bound themselves, as Esc is in vi mode (then
 * the entry ANYOTHERKEY of the map has their command): it runs this command, and then the key.
 *
 * The commands for keyboard macros call longjmp too, if no macro is defined or if a macro runs
 * itself. A caller of Readline cannot prevent these cases, so keyboard macros are disabled. Four
 * commands that move or delete by one character would divide a cluster, and five know no lines of a
 * message, so those above replace them. ANYOTHERKEY is no key but the last entry of a map. */
static void adapt_keys(Keymap map, int depth, enum key_prefix prefix)
{
    static const struct {
        rl_command_func_t *theirs, *ours;
    } replaced[] = {{rl_backward_char, go_left},
                    {rl_forward_char, go_right},
                    {rl_rubout, delete_left},
                    {rl_delete, delete_right},
                    {rl_beg_of_line, go_line_start},
                    {rl_end_of_line, go_line_end},
                    {rl_kill_line, line_kill_end},
                    {rl_unix_line_discard, line_kill_start},
                    {rl_backward_kill_line, line_kill_backward},
                    {rl_start_kbd_macro, refuse_key},
                    {rl_end_kbd_macro, refuse_key},
                    {rl_call_last_kbd_macro, refuse_key}};
    const bool is_control = prefix == PREFIX_CONTROL;
    const bool has_shorter = map && !is_control && map[ANYOTHERKEY].function;
    for (int key = 0; map && key < ANYOTHERKEY; key++) {
        KEYMAP_ENTRY *e = &map[key];
        if (e->type == ISKMAP && depth < MAX_SEQUENCE) /* e->function is a map, no function */
            adapt_keys((Keymap)(uintptr_t)e->function, depth + 1, prefix_with(prefix, key));
        else if (e->type == ISFUNC &&
                 (e->function ? depth > 0 && e->function == rl_abort : !has_shorter))
            e->function = is_control ? skip_sequence : refuse_key;
        for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++)
            if (e->type == ISFUNC && e->function == replaced[i].theirs)
                e->function = replaced[i].ours;
    }
}

void line_keys_bind(int (*edit_elsewhere)(int count, int key))
{
    static const char *const maps[] = {"emacs-standard", "vi-insert", "vi-move"};
    rl_bind_key('\r', enter);
    rl_bind_key('\n', insert_newline);
    rl_bind_keyseq("\\e\\C-m", insert_newline);
    rl_bind_keyseq("\\e\\C-j", insert_newline);
    rl_bind_keyseq("\\C-x\\C-e", edit_elsewhere);
    rl_bind_key(KEY_REDRAW, clear_screen);
    rl_bind_keyseq("\\e[A", go_up);
    rl_bind_keyseq("\\eOA", go_up);
    rl_bind_keyseq("\\e[B", go_down);
    rl_bind_keyseq("\\eOB", go_down);
    rl_bind_keyseq_if_unbound("\\e\\e[", skip_sequence); /* with Alt in some terminals */
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
        adapt_keys(rl_get_keymap_by_name(maps[i]), 0, PREFIX_NONE);
}

/* ---- completion ---- */

#define BLANKS " \t\n" /* between words */

/* The next of line_state.choices; NULL at the end. Readline calls such a function repeatedly;
 * is_again is 0 in the first call. */
static char *next_word(const char *text, int is_again)
{
    struct line_state *s = &line_state;
    (void)text;
    if (!is_again)
        s->next_choice = 0;
    if (s->next_choice >= s->choices.words.n_bytes)
        return NULL;
    const char *word = s->choices.words.ptr + s->next_choice;
    const size_t n = strcspn(word, "\n");
    s->next_choice += n + 1;
    return strndup(word, n); /* Readline frees it */
}

/* The next completion of `text`, which is '@' and the beginning of a file name. */
static char *next_marked(const char *text, int is_again)
{
    char *path = rl_filename_completion_function(text + 1, is_again);
    const size_t n_bytes = path ? strlen(path) + 2 : 0;
    char *marked = path ? malloc(n_bytes) : NULL; /* Readline frees it */
    if (marked)
        (void)snprintf(marked, n_bytes, "@%s", path); /* fits */
    free(path);
    return marked;
}

/* Readline calls this before it looks whether a completed path is a directory. */
static int remove_mark(char **path)
{
    if (line_state.choices.kind != LINE_CHOICES_AT_FILES || **path != '@')
        return 0;
    char *plain = tilde_expand(*path + 1);
    free(*path);
    *path = plain;
    return 1; /* changed */
}

/* Outside quotes, a backslash precedes these characters of a path (input_next_path in
 * input_text.h). */
#define QUOTED " \t\n\\'\""

/* Whether a backslash quotes the character at `index`: the number of backslashes before it is
 * odd. */
static int is_quoted(char *text, int index)
{
    int n_backslashes = 0;
    while (n_backslashes < index && text[index - 1 - n_backslashes] == '\\')
        n_backslashes++;
    return n_backslashes % 2;
}

/* Whether a backslash quotes this character, in the quotes of the path or without quotes. */
static bool takes_backslash(char c)
{
    switch (line_state.quote) {
    case '\'':
        return false;
    case '"':
        return c == '"' || c == '\\';
    default:
        return strchr(QUOTED, c);
    }
}

/* The path as it is written in its quotes, or with backslashes. Readline frees it. */
static char *quote_path(char *path, int match_type, char *quote)
{
    char *quoted = malloc(4 * strlen(path) + 1), *to = quoted;
    (void)match_type; /* a path, or the common beginning of several paths */
    (void)quote;      /* Readline does not know the quote: see choose_breaks */
    for (; quoted && *path; path++) {
        if (takes_backslash(*path))
            *to++ = '\\';
        else if (*path == '\'' && line_state.quote == '\'') /* close, quote this one, open again */
            to = stpcpy(to, "'\\'");
        *to++ = *path;
    }
    if (quoted)
        *to = 0;
    return quoted;
}

/* The path without backslashes. Readline frees it. */
static char *unquote_path(char *path, int quote)
{
    char *plain = malloc(strlen(path) + 1), *to = plain;
    (void)quote;
    for (; plain && *path; path++) {
        if (*path == '\\' && path[1] && (!line_state.quote || takes_backslash(path[1])))
            path++;
        *to++ = *path;
    }
    if (plain)
        *to = 0;
    return plain;
}

/* Set line_state.choices for `word`, which begins at the index `start` of the line. */
static void find_choices(int start, struct bn_str word)
{
    const struct line_host *host = &line_state.host;
    struct line_choices *c = &line_state.choices;
    strbuf_cut(&c->words, 0);
    c->kind = LINE_CHOICES_WORDS;
    host->complete(host->ud, (struct bn_str){rl_line_buffer, (size_t)start}, word, c);
}

/* The index of the quote that is open at the cursor, as input_next_path reads quotes; -1: none. It
 * must begin a word, or follow an "@" that does: an apostrophe in a message is no quote. */
static int find_open_quote(const char *line, int point)
{
    int open = -1;
    for (int i = 0; i < point; i++) {
        const int begin = i > 0 && line[i - 1] == '@' ? i - 1 : i;
        if (open >= 0 && line[i] == line[open])
            open = -1;
        else if (line[i] == '\\' && (open < 0 || line[open] == '"'))
            i++;
        else if (open < 0 && strchr("'\"", line[i]) &&
                 (begin == 0 || strchr(BLANKS, line[begin - 1])))
            open = i;
    }
    return open;
}

/* Readline calls this for the characters between which the word to complete begins: blanks, or the
 * quote around a path. Readline's own search for quotes would also find apostrophes. */
static char *choose_breaks(void)
{
    static char blanks[] = BLANKS, quote[2];
    struct line_state *s = &line_state;
    const char *line = rl_line_buffer;
    const int open = find_open_quote(line, rl_point);
    s->quote = 0;
    if (open < 0)
        return blanks;
    const bool has_mark = open > 0 && line[open - 1] == '@';
    const struct bn_str path = {line + open + 1, (size_t)(rl_point - open - 1)};
    find_choices(open - has_mark, has_mark ? bn_str_of("@") : path);
    if (s->choices.kind != (has_mark ? LINE_CHOICES_AT_FILES : LINE_CHOICES_FILES))
        return blanks; /* no path is expected here */
    s->quote = quote[0] = line[open];
    return quote;
}

/* The choices of words for `text`. After "NAME=" comes a value, so no blank follows it. */
static char **complete_word(const char *text)
{
    char **matches = rl_completion_matches(text, next_word);
    const size_t n = matches ? strlen(matches[0]) : 0;
    rl_completion_suppress_append = n > 0 && !matches[1] && matches[0][n - 1] == '=';
    return matches;
}

/* The choices for `text`, the bytes from `start` to `end` of the line. */
static char **complete(const char *text, int start, int end)
{
    struct line_choices *c = &line_state.choices;
    (void)end;
    if (line_state.quote) {
        c->kind = LINE_CHOICES_FILES; /* an "@" is before the quote, so it is no part of `text` */
        rl_completion_append_character = line_state.quote;
    } else {
        find_choices(start, bn_str_of(text));
    }
    /* If this variable is 0 and `complete` returns NULL, Readline completes file names. */
    rl_attempted_completion_over = c->kind != LINE_CHOICES_FILES;
    switch (c->kind) {
    case LINE_CHOICES_WORDS:
        return complete_word(text);
    case LINE_CHOICES_AT_FILES:
        rl_filename_completion_desired = 1;
        return rl_completion_matches(text, next_marked);
    case LINE_CHOICES_FILES:
        break;
    }
    return NULL;
}

void line_complete_open(void)
{
    rl_attempted_completion_function = complete;
    rl_completion_word_break_hook = choose_breaks;
    rl_basic_word_break_characters = BLANKS;
    /* Readline quotes file names only if this string is not NULL. It is empty, because
     * choose_breaks finds the quotes. */
    rl_completer_quote_characters = "";
    rl_filename_stat_hook = remove_mark;
    rl_filename_quote_characters = QUOTED;
    rl_char_is_quoted_p = is_quoted;
    rl_filename_quoting_function = quote_path;
    rl_filename_dequoting_function = unquote_path;
    /* No question before a long list, and no pages: for both, Readline would read a key at once,
     * and the event loop would have to wait. */
    rl_completion_query_items = 0;
    rl_variable_bind("page-completions", "off");
}

void line_complete_finish(void)
{
    strbuf_finish(&line_state.choices.words);
}
