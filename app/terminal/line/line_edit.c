/*
 * The line editor on top of Readline: see line_edit.h.
 *
 * Readline gets its keys through rl_getc_function from the bytes that were passed to line_feed. It
 * never gets the control sequences around a paste: after the first, Readline would read until the
 * second within a single call, and the event loop would have to wait.
 */
#include "app/terminal/line/line_state.h"

#include "app/common/term_text.h"
#include "app/terminal/line/edit_file.h"
#include "app/terminal/line/history.h"
#include "app/terminal/term_keys.h"
#include "app/terminal/tty.h"
#include "engine/base/size.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#define MIN_COLUMNS 8 /* see set_screen_size */

struct line_state line_state;

/* ---- display ---- */

void line_redisplay(void)
{
    if (line_state.display.redisplay)
        line_state.display.redisplay(line_state.display.ud);
    else
        rl_redisplay();
}

static void show_matches(char **words, int n_words, int longest)
{
    line_state.display.matches(line_state.display.ud, words, n_words, longest);
}

void line_set_display(const struct line_display *display)
{
    struct line_state *s = &line_state;
    if (display && !s->sink)
        s->sink = fopen("/dev/null", "w");
    const bool is_ours = display && s->sink; /* if /dev/null cannot be opened, Readline draws */
    s->display = is_ours ? *display : (struct line_display){0};
    rl_redisplay_function = is_ours ? line_redisplay : rl_redisplay;
    rl_completion_display_matches_hook = is_ours ? show_matches : NULL;
    rl_outstream = is_ours ? s->sink : stdout;
}

/* ---- keys to Readline ---- */

static int next_key(FILE *unused)
{
    (void)unused;
    if (line_state.at < line_state.n_keys)
        return (unsigned char)line_state.keys[line_state.at++];
    for (;;) { /* some commands of Readline read another key at once, as skip-csi-sequence does */
        unsigned char key;
        const ssize_t n = read(STDIN_FILENO, &key, 1);
        if (n == 1)
            return key;
        if (n == 0 || errno != EINTR)
            return EOF;
    }
}

static int has_key(void)
{
    return line_state.at < line_state.n_keys;
}

/* Readline calls this function when a line is finished. `line` is NULL after Ctrl-D on an empty
 * line. */
static void on_line(char *line)
{
    rl_callback_handler_remove();
    line_state.is_open = false;
    line_state.is_end = line == NULL;
    line_state.is_done = true;
    free(line_state.line);
    line_state.line = line;
}

static void keep_terminal_mode(int meta)
{
    (void)meta; /* tty_acquire has set the mode */
}

static void keep_terminal_mode_at_end(void)
{
    /* tty_release restores the mode */
}

/* Before an external editor runs: erase the line and restore the mode of the terminal. */
static void leave_screen(void)
{
    const struct line_host *host = &line_state.host;
    if (line_state.display.redisplay) {
        line_state.display.hide(line_state.display.ud);
        host->suspend(host->ud);
    } else {
        line_hide();
    }
    tty_release();
}

static void return_to_screen(void)
{
    const struct line_host *host = &line_state.host;
    struct bn_error no_terminal;
    if (line_state.display.redisplay)
        host->resume(host->ud);
    else
        (void)tty_reacquire(&no_terminal); /* fails only if the terminal is gone */
}

/* Ctrl-X Ctrl-E: edit the line, with the texts of its placeholders, in an external editor. */
static int edit_elsewhere(int count, int key)
{
    struct strbuf text = {0}, before = {0};
    struct bn_error err;
    (void)count;
    (void)key;
    line_expand(bn_str_of(rl_line_buffer), &text);
    strbuf_add_str(&before, strbuf_str(&text));
    leave_screen();
    const bool ok = text.failed || before.failed
                        ? bn_fail(&err, BN_ENOMEM, "out of memory for the editor")
                        : edit_file_run(&text, &err);
    return_to_screen();
    if (ok && !bn_str_equal(strbuf_str(&text), strbuf_str(&before))) {
        (void)rl_begin_undo_group();     /* always 0; one undo restores the line */
        (void)rl_delete_text(0, rl_end); /* returns the number of bytes */
        rl_point = 0;
        line_paste_insert(strbuf_text(&text), text.n_bytes);
        (void)rl_end_undo_group(); /* always 0 */
    }
    rl_point = rl_end;
    line_show();
    if (!ok)
        line_state.host.failed(line_state.host.ud, err.text);
    strbuf_finish(&before);
    strbuf_finish(&text);
    return 0;
}

/* ---- editing ---- */

bool line_is_open(void)
{
    return line_state.is_open;
}

void line_begin(const char *prompt)
{
    line_state.is_done = line_state.is_end = false;
    line_state.is_open = true;
    rl_callback_handler_install(prompt, on_line);
    if (line_state.saved) {
        rl_insert_text(line_state.saved);
        free(line_state.saved);
        line_state.saved = NULL;
        line_redisplay();
    }
}

static bool is_in_undo_list(const void *data)
{
    const UNDO_LIST *u = rl_undo_list;
    while (u && u != data)
        u = u->next;
    return u != NULL;
}

/* Free the undo list of the line. A search stores the present list in the recalled entry, and later
 * changes of the line are added before it. rl_free_undo_list clears the pointer of an entry only if
 * it is the whole list (Readline 8.2, undo.c), and the next recall would then use freed memory. */
static void free_undo_list(void)
{
    HIST_ENTRY **entries = history_list(); /* NULL: no entry; ends with NULL */
    for (size_t i = 0; rl_undo_list && entries && entries[i]; i++)
        if (entries[i]->data && is_in_undo_list(entries[i]->data))
            entries[i]->data = NULL;
    rl_free_undo_list();
}

void line_stop(void)
{
    if (!line_state.is_open)
        return;
    rl_callback_sigcleanup(); /* leave a search or an incomplete key sequence */
    free(line_state.saved);
    line_state.saved = rl_end > 0 ? rl_copy_text(0, rl_end) : NULL;
    free_undo_list(); /* it is for the text that ends here */
    using_history();  /* Up begins at the newest entry again */
    rl_callback_handler_remove();
    line_state.is_open = false;
}

/* Pass n typed bytes, without pastes, to Readline until a line is finished. */
static void feed_keys(const char *keys, size_t n, size_t *n_used)
{
    line_state.keys = keys;
    line_state.n_keys = n;
    line_state.at = 0;
    while (line_state.at < n && !line_state.is_done) {
        line_paste_before_key();
        rl_callback_read_char();
        line_paste_after_key();
    }
    *n_used = line_state.at;
    line_state.keys = NULL;
    line_state.n_keys = line_state.at = 0;
}

enum line_result line_feed(const char *keys, size_t n_keys, size_t *n_used)
{
    size_t used = 0;
    while (used < n_keys && !line_state.is_done) {
        const char *rest = keys + used;
        const char *paste = term_paste_find(rest, n_keys - used, TERM_PASTE_BEGIN);
        const size_t n_typed = paste ? (size_t)(paste - rest) : n_keys - used;
        size_t n;
        if (n_typed > 0) {
            feed_keys(rest, n_typed, &n);
            used += n;
            continue;
        }
        const char *text = paste + TERM_PASTE_BYTES;
        const char *end = term_paste_find(text, (size_t)(keys + n_keys - text), TERM_PASTE_END);
        if (!end)
            break;
        line_paste_insert(text, (size_t)(end - text));
        line_redisplay();
        used = (size_t)(end - keys) + TERM_PASTE_BYTES;
    }
    *n_used = used;
    if (!line_state.is_done)
        return LINE_EDITING;
    return line_state.is_end ? LINE_END : LINE_DONE;
}

void line_put_back(struct bn_str text)
{
    struct strbuf copy = {0}, shown = {0};
    term_text_clean(text, TERM_KEEP_LINES, &copy);
    if (line_state.display.redisplay && !line_state.display.is_hidden)
        strbuf_add_str(&shown, strbuf_str(&copy));
    else
        line_paste_shorten(strbuf_str(&copy), LINE_PLACEHOLDER_EARLIER, &shown);
    if (line_state.is_open) {
        rl_callback_sigcleanup(); /* the end of a search would replace the text */
        rl_point = 0;
        rl_insert_text(strbuf_text(&shown));
        if (rl_point < rl_end)
            rl_insert_text("\n");
        rl_point = rl_end;
        line_redisplay();
    } else {
        if (line_state.saved)
            strbuf_addf(&shown, "\n%s", line_state.saved);
        free(line_state.saved);
        line_state.saved = strdup(strbuf_text(&shown));
    }
    strbuf_finish(&shown);
    strbuf_finish(&copy);
}

bool line_is_empty(void)
{
    return line_state.is_open ? rl_end == 0 : !line_state.saved;
}

bool line_uses_escape(void)
{
    return rl_editing_mode == 0 /* vi */ || RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH);
}

/* Add the text to the entries for Up, unless it is the recalled entry itself. As in the history
 * file, a text that begins with a space or a newline is left out. */
static void keep_cleared_text(void)
{
    const HIST_ENTRY *recalled = current_history(); /* NULL: none */
    char *text = rl_copy_text(0, rl_end);
    if (rl_end > 0 && text[0] != ' ' && text[0] != '\n' &&
        !(recalled && strcmp(recalled->line, text) == 0))
        line_add_history(text);
    free(text);
}

bool line_clear(void)
{
    if (!line_state.is_open)
        return false;
    rl_callback_sigcleanup(); /* leave a search or an incomplete key sequence */
    keep_cleared_text();
    const bool has_text = rl_end > 0;
    if (has_text)
        (void)rl_clear_visible_line(); /* always 0 */
    free_undo_list();
    rl_replace_line("", 1);
    (void)rl_initialize(); /* always 0; Up and Ctrl-R begin at the newest entry again */
    if (has_text)
        line_show();
    return has_text;
}

bool line_has_other_prompt(void)
{
    return line_state.is_open &&
           RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_NUMERICARG);
}

void line_set_prompt(const char *prompt)
{
    if (!line_state.is_open)
        return;
    (void)rl_clear_visible_line(); /* always 0 */
    rl_set_prompt(prompt);
    line_show();
}

void line_replace_prompt(const char *prompt)
{
    if (line_state.is_open && !line_has_other_prompt())
        rl_set_prompt(prompt);
}

void line_hide(void)
{
    (void)rl_clear_visible_line(); /* always 0 */
    fflush(rl_outstream);
}

void line_leave(void)
{
    const int point = rl_point;
    rl_point = rl_end; /* the newline comes after the last row */
    line_redisplay();
    rl_point = point;
    (void)fputc('\n', rl_outstream); /* the caller's next write reports errors */
    fflush(rl_outstream);
}

void line_show(void)
{
    rl_on_new_line();
    line_redisplay();
    fflush(rl_outstream);
}

/* Readline fails to draw if the prompt and one character do not fit into the columns. So it gets at
 * least MIN_COLUMNS, enough for ">>> " and a wide character. */
static void set_screen_size(size_t n_rows, size_t n_columns)
{
    rl_set_screen_size((int)n_rows, (int)size_max(n_columns, MIN_COLUMNS));
}

void line_resize(size_t n_rows, size_t n_columns)
{
    set_screen_size(n_rows, n_columns);
    if (!line_state.is_open)
        return;
    line_hide();
    line_show();
}

static bool is_newest_entry(const char *entry)
{
    const HIST_ENTRY *newest = history_get(history_base + history_length - 1); /* NULL: no entry */
    return newest && strcmp(newest->line, entry) == 0;
}

void line_add_history(const char *entry)
{
    struct strbuf clean = {0}, shown = {0};
    term_text_clean(bn_str_of(entry), TERM_KEEP_LINES, &clean);
    line_paste_shorten(strbuf_str(&clean), LINE_PLACEHOLDER_EARLIER, &shown);
    /* A line that is being edited is after the newest entry and must stay there. Otherwise
     * Readline would take it for a changed form of the new entry. */
    if (line_state.is_open && RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH))
        rl_callback_sigcleanup(); /* a search has numbers of entries and pointers to them */
    const bool is_at_end = where_history() == history_length;
    if (!shown.failed && !clean.failed && !is_newest_entry(strbuf_text(&shown)))
        add_history(strbuf_text(&shown));
    if (is_at_end)
        using_history(); /* the position after the newest entry */
    strbuf_finish(&shown);
    strbuf_finish(&clean);
}

bool line_is_earlier_entry(void)
{
    return line_state.is_open && where_history() != history_length;
}

void line_view(struct line_view *out)
{
    const bool is_open = line_state.is_open && rl_line_buffer;
    *out = (struct line_view){.prompt = rl_display_prompt ? rl_display_prompt : ""};
    if (is_open)
        out->text = (struct bn_str){rl_line_buffer, (size_t)rl_end};
    out->point = is_open ? (size_t)rl_point : 0;
}

struct bn_str line_displayed_text(void)
{
    return bn_str_of(line_state.line ? line_state.line : "");
}

bool line_open(const char *name, const struct line_host *host)
{
    const struct tty_size size = tty_size(STDOUT_FILENO);
    if (line_state.host.complete) /* not NULL while the editor is set up */
        return false;
    line_state.host = *host;
    rl_readline_name = name;
    rl_instream = stdin;
    rl_outstream = stdout;
    /* The program itself handles signals and changes of the screen's size. Readline must not set
     * LINES and COLUMNS in the environment either. */
    rl_catch_signals = 0;
    rl_catch_sigwinch = 0;
    rl_change_environment = 0;
    rl_prep_term_function = keep_terminal_mode;
    rl_deprep_term_function = keep_terminal_mode_at_end;
    rl_getc_function = next_key;
    rl_input_available_hook = has_key;
    rl_tty_set_echoing(1); /* else Readline shows no text, because the terminal does not echo */
    rl_initialize();
    line_keys_bind(edit_elsewhere);
    line_complete_open();
    using_history();
    stifle_history(HISTORY_MAX_ENTRIES);
    set_screen_size(size.rows, size.columns);
    return true;
}

void line_close(void)
{
    line_set_display(NULL);
    if (line_state.sink)
        (void)fclose(line_state.sink); /* its content is not used */
    if (line_state.is_open)
        rl_callback_handler_remove();
    line_paste_finish();
    line_complete_finish();
    free(line_state.line);
    free(line_state.saved);
    clear_history();
    line_state = (struct line_state){0};
}
