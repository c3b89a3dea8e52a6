/*
 * Readline as the editor: see line_edit.h. State is file-scope, as Readline's own is.
 *
 * Readline pulls its keys through getc from the piece that line_feed was given; it never sees the
 * markers of a paste, because it would read to the end of one within a single call.
 */
#include "app/line_edit.h"

#include "app/edit_file.h"
#include "app/input_text.h"
#include "app/term_text.h"
#include "app/tty.h"
#include "engine/base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#define PASTE_BEGIN "\033[200~"
#define PASTE_END "\033[201~"
#define N_MARK (sizeof(PASTE_BEGIN) - 1)
/* A paste beyond this is shown as a mark: a screen is no place to proof-read it. */
#define PASTE_LINES 8
#define PASTE_BYTES 1000
#define MAX_PASTES 1000
#define MAX_MEMORY_ENTRY 4096 /* longer messages are not worth recalling */

static struct {
    struct app *app;
    const char *keys; /* (n_keys) being fed */
    size_t n_keys, at;
    bool is_open, is_done, is_end;
    char *line;                         /* done, Readline's memory */
    char *kept;                         /* text of an editor that was left; Readline's memory */
    const struct line_display *display; /* NULL: Readline's own */
    FILE *sink;                         /* what Readline would write where we display */
    bool enter_waits, was_refused;
    struct strbuf *pastes; /* (n_pastes), number i + 1 in the mark */
    size_t n_pastes, cap_pastes;
} edit;

static void redisplay(void)
{
    if (edit.display)
        edit.display->redisplay();
    else
        rl_redisplay();
}

/* ---- keys to Readline ---- */

static int next_key(FILE *unused)
{
    (void)unused;
    if (edit.at < edit.n_keys)
        return (unsigned char)edit.keys[edit.at++];
    for (;;) { /* Readline wants more within one command (a quoted key, a search): wait for it */
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
    return edit.at < edit.n_keys;
}

static void on_line(char *line)
{
    rl_callback_handler_remove();
    edit.is_open = false;
    edit.is_end = line == NULL;
    edit.is_done = true;
    free(edit.line);
    edit.line = line;
}

static void no_terminal_change(int meta)
{
    (void)meta; /* tty_take has done it */
}

static void no_terminal_change_back(void)
{
}

/* ---- commands of the editor ---- */

static int insert_newline(int count, int key)
{
    (void)count;
    (void)key;
    rl_insert_text("\n");
    return 0;
}

/* A fence that is open, or a backslash at the end, makes Enter a new line. */
static bool wants_more(void)
{
    const char *line = rl_line_buffer;
    const size_t n = (size_t)rl_end;
    const size_t n_blank = strspn(line, " \t\n");
    if (strncmp(line + n_blank, "\"\"\"", 3) == 0)
        return !strstr(line + n_blank + 3, "\"\"\"");
    return n > 0 && line[n - 1] == '\\' && rl_point == rl_end;
}

static int enter(int count, int key)
{
    if (!wants_more()) {
        edit.was_refused |= edit.enter_waits;
        return edit.enter_waits ? 0 : rl_newline(count, key);
    }
    if (rl_line_buffer[rl_end - 1] == '\\')
        (void)rl_rubout(1, '\b'); /* the backslash has done its work */
    rl_insert_text("\n");
    return 0;
}

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

/* Up and Down: between the lines of a message first, then through what was typed before. */
static int go_up(int count, int key)
{
    const int start = line_start(rl_point);
    if (start == 0)
        return rl_get_previous_history(count, key);
    const int above = line_start(start - 1), column = rl_point - start;
    rl_point = above + (column < start - 1 - above ? column : start - 1 - above);
    return 0;
}

static int go_down(int count, int key)
{
    const int end = line_end(rl_point);
    if (end == rl_end)
        return rl_get_next_history(count, key);
    const int column = rl_point - line_start(rl_point), last = line_end(end + 1);
    rl_point = end + 1 + column < last ? end + 1 + column : last;
    return 0;
}

static int edit_elsewhere(int count, int key)
{
    struct strbuf text = {0};
    struct bn_error err;
    struct ui *ui = &edit.app->ui;
    (void)count;
    (void)key;
    strbuf_add_text(&text, rl_line_buffer);
    if (edit.display)
        ui->ops->suspend(ui);
    else
        line_hide();
    tty_give_back();
    const bool ok = edit_file_run(&text, &err);
    struct bn_error no_terminal;
    if (edit.display)
        ui->ops->resume(ui);
    else
        (void)tty_take(TTY_PASTE_MARKED, &no_terminal); /* it was one a moment ago */
    if (ok)
        rl_replace_line(strbuf_text(&text), 0);
    else
        fprintf(stderr, "%s: %s\r\n", PROGRAM, err.text);
    rl_point = rl_end;
    line_show();
    strbuf_finish(&text);
    return 0;
}

static void bind_keys(void)
{
    rl_bind_key('\r', enter);
    rl_bind_key('\n', insert_newline);
    rl_bind_keyseq("\\e\\C-m", insert_newline);
    rl_bind_keyseq("\\e\\C-j", insert_newline);
    rl_bind_keyseq("\\C-x\\C-e", edit_elsewhere);
    rl_bind_keyseq("\\e[A", go_up);
    rl_bind_keyseq("\\eOA", go_up);
    rl_bind_keyseq("\\e[B", go_down);
    rl_bind_keyseq("\\eOB", go_down);
}

/* ---- pastes ---- */

static const char *find(const char *p, size_t n, const char *mark)
{
    for (size_t at = 0; at + N_MARK <= n; at++) {
        const char *esc = memchr(p + at, '\033', n - at);
        if (!esc || (size_t)(p + n - esc) < N_MARK)
            return NULL;
        if (memcmp(esc, mark, N_MARK) == 0)
            return esc;
        at = (size_t)(esc - p);
    }
    return NULL;
}

static size_t count_lines(struct bn_str text)
{
    size_t n = 1;
    for (size_t i = 0; i < text.n_bytes; i++)
        n += text.ptr[i] == '\n';
    return n;
}

static void paste_mark(size_t index, char out[80])
{
    (void)snprintf(out, 80, "[pasted %zu: %zu lines, %zu bytes]", index + 1,
                   count_lines(strbuf_str(&edit.pastes[index])),
                   edit.pastes[index].n_bytes); /* fits */
}

/* CR and CR LF are line ends, other controls and broken bytes are shown as what they are: nothing.
 */
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

static void take_paste(const char *bytes, size_t n_bytes)
{
    struct strbuf text = {0};
    clean_paste(bytes, n_bytes, &text);
    const bool is_long =
        text.n_bytes >= PASTE_BYTES || count_lines(strbuf_str(&text)) >= PASTE_LINES;
    if (is_long && edit.n_pastes < MAX_PASTES &&
        mem_grow(&edit.pastes, &edit.cap_pastes, edit.n_pastes + 1, sizeof(*edit.pastes))) {
        char mark[80];
        edit.pastes[edit.n_pastes++] = text;
        paste_mark(edit.n_pastes - 1, mark);
        rl_insert_text(mark);
    } else {
        rl_insert_text(strbuf_text(&text));
        strbuf_finish(&text);
    }
    redisplay();
}

void line_text(struct strbuf *out)
{
    const char *at = edit.line ? edit.line : "";
    while (*at) {
        const char *mark = strstr(at, "[pasted ");
        const size_t number = mark ? strtoul(mark + strlen("[pasted "), NULL, 10) : 0;
        char whole[80] = "";
        if (number >= 1 && number <= edit.n_pastes)
            paste_mark(number - 1, whole);
        if (!mark) {
            strbuf_add_text(out, at);
            return;
        }
        strbuf_add(out, at, (size_t)(mark - at));
        if (whole[0] && strncmp(mark, whole, strlen(whole)) == 0) {
            strbuf_add_str(out, strbuf_str(&edit.pastes[number - 1]));
            at = mark + strlen(whole);
        } else {
            strbuf_add_char(out, *mark);
            at = mark + 1;
        }
    }
}

/* ---- editing ---- */

bool line_is_open(void)
{
    return edit.is_open;
}

void line_begin(const char *prompt)
{
    edit.is_done = edit.is_end = false;
    edit.is_open = true;
    rl_callback_handler_install(prompt, on_line);
    if (edit.kept) {
        rl_insert_text(edit.kept);
        free(edit.kept);
        edit.kept = NULL;
        redisplay();
    }
}

void line_leave(void)
{
    if (!edit.is_open)
        return;
    free(edit.kept);
    edit.kept = rl_end > 0 ? rl_copy_text(0, rl_end) : NULL;
    rl_callback_handler_remove();
    edit.is_open = false;
}

static void feed_keys(const char *keys, size_t n, size_t *n_used)
{
    edit.keys = keys;
    edit.n_keys = n;
    edit.at = 0;
    while (edit.at < n && !edit.is_done)
        rl_callback_read_char();
    *n_used = edit.at;
    edit.keys = NULL;
    edit.n_keys = edit.at = 0;
}

enum line_result line_feed(const char *keys, size_t n_keys, size_t *n_used)
{
    size_t used = 0;
    while (used < n_keys && !edit.is_done) {
        const char *rest = keys + used;
        const char *paste = find(rest, n_keys - used, PASTE_BEGIN);
        const size_t n_typed = paste ? (size_t)(paste - rest) : n_keys - used;
        size_t n;
        if (n_typed > 0) {
            feed_keys(rest, n_typed, &n);
            used += n;
            continue;
        }
        const char *end = find(paste + N_MARK, n_keys - used - N_MARK, PASTE_END);
        if (!end)
            break;
        take_paste(paste + N_MARK, (size_t)(end - paste) - N_MARK);
        used = (size_t)(end - keys) + N_MARK;
    }
    *n_used = used;
    if (!edit.is_done)
        return LINE_EDITING;
    return edit.is_end ? LINE_END : LINE_DONE;
}

void line_set(struct bn_str text)
{
    struct strbuf copy = {0};
    term_text_clean(text, TERM_KEEP_LINES, &copy);
    if (edit.is_open) {
        rl_replace_line(strbuf_text(&copy), 1);
        rl_point = rl_end;
        redisplay();
    } else {
        free(edit.kept);
        edit.kept = strdup(strbuf_text(&copy));
    }
    strbuf_finish(&copy);
}

void line_restore(void)
{
    if (!edit.line)
        return;
    if (edit.is_open) { /* before what was typed since */
        rl_point = 0;
        rl_insert_text(edit.line);
        if (rl_point < rl_end)
            rl_insert_text("\n");
        rl_point = rl_end;
        redisplay();
        free(edit.line);
    } else {
        free(edit.kept);
        edit.kept = edit.line;
    }
    edit.line = NULL;
}

bool line_clear(void)
{
    if (!edit.is_open)
        return false;
    rl_callback_sigcleanup(); /* out of a search or a half-typed key */
    if (rl_end == 0)
        return false;
    (void)rl_clear_visible_line(); /* only says whether there was one */
    rl_replace_line("", 1);
    line_show();
    return true;
}

void line_set_prompt(const char *prompt)
{
    if (!edit.is_open)
        return;
    (void)rl_clear_visible_line(); /* only says whether there was one */
    rl_set_prompt(prompt);
    line_show();
}

void line_hide(void)
{
    (void)rl_clear_visible_line(); /* only says whether there was one */
    fflush(rl_outstream);
}

void line_show(void)
{
    rl_on_new_line();
    redisplay();
    fflush(rl_outstream);
}

void line_resize(size_t n_rows, size_t n_columns)
{
    rl_set_screen_size((int)n_rows, (int)n_columns);
    if (!edit.is_open)
        return;
    line_hide();
    line_show();
}

void line_add_history(const char *entry)
{
    if (strlen(entry) <= MAX_MEMORY_ENTRY)
        add_history(entry);
}

void line_view(struct line_view *out)
{
    const bool is_open = edit.is_open && rl_line_buffer;
    *out = (struct line_view){.prompt = rl_display_prompt ? rl_display_prompt : ""};
    if (is_open)
        out->text = (struct bn_str){rl_line_buffer, (size_t)rl_end};
    out->point = is_open ? (size_t)rl_point : 0;
}

struct bn_str line_shown(void)
{
    return bn_str_of(edit.line ? edit.line : "");
}

void line_set_enter(enum line_enter enter)
{
    edit.enter_waits = enter == LINE_ENTER_WAITS;
}

bool line_was_refused(void)
{
    const bool was = edit.was_refused;
    edit.was_refused = false;
    return was;
}

void line_set_display(const struct line_display *display)
{
    if (display && !edit.sink)
        edit.sink = fopen("/dev/null", "w");
    edit.display = display && edit.sink ? display : NULL;
    edit.enter_waits = false;
    rl_redisplay_function = edit.display ? edit.display->redisplay : rl_redisplay;
    rl_completion_display_matches_hook = edit.display ? edit.display->matches : NULL;
    rl_outstream = edit.display ? edit.sink : stdout;
}

bool line_open(struct app *app)
{
    const struct tty_size size = tty_size(STDOUT_FILENO);
    if (edit.app)
        return false;
    edit.app = app;
    rl_readline_name = PROGRAM;
    rl_instream = stdin;
    rl_outstream = stdout;
    rl_catch_signals = 0;
    rl_catch_sigwinch = 0;
    rl_change_environment = 0;
    rl_prep_term_function = no_terminal_change;
    rl_deprep_term_function = no_terminal_change_back;
    rl_getc_function = next_key;
    rl_input_available_hook = has_key;
    rl_tty_set_echoing(1); /* the terminal does not, so Readline shall */
    rl_initialize();
    bind_keys();
    line_complete_open(app);
    using_history();
    stifle_history(HISTORY_MAX_ENTRIES);
    rl_set_screen_size((int)size.rows, (int)size.columns);
    return true;
}

void line_close(void)
{
    line_set_display(NULL);
    if (edit.sink)
        (void)fclose(edit.sink); /* nobody reads it */
    if (edit.is_open)
        rl_callback_handler_remove();
    for (size_t i = 0; i < edit.n_pastes; i++)
        strbuf_finish(&edit.pastes[i]);
    mem_free(edit.pastes);
    free(edit.line);
    free(edit.kept);
    clear_history();
    memset(&edit, 0, sizeof(edit));
}
