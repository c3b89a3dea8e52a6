/*
 * The line editor: Readline through its callback interface. A painter draws the line itself if it
 * has set a display (line_set_display); otherwise Readline draws it.
 *
 * The painter reads the keys and passes them to line_feed, which reports when Enter ends the line.
 * A paste is inserted as a whole. A long paste is displayed as a placeholder, a short label with a
 * number (line_state.h), and line_expand replaces placeholders by their texts. There is only one
 * editor, because the state of Readline is global. Main thread only. Call tty_acquire first.
 */
#ifndef APP_LINE_EDIT_H
#define APP_LINE_EDIT_H

#include "app/common/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

enum line_result {
    LINE_EDITING,
    LINE_DONE, /* a line is finished; line_displayed_text returns it */
    LINE_END,  /* Ctrl-D on an empty line */
};

/* The completions of a word that Tab offers. */
struct line_choices {
    enum line_choice_kind {
        LINE_CHOICES_WORDS,   /* the words below, possibly none */
        LINE_CHOICES_FILES,   /* names of files */
        LINE_CHOICES_AT_FILES /* names of files after an '@' */
    } kind;
    struct strbuf words; /* each ends with a newline; no blank follows one that ends with '=' */
};

/* Functions that the editor calls, none of them NULL. All get `ud`. */
struct line_host {
    void *ud;
    /* Set *out to the choices for `word`, which follows the text `before`. On entry out->words is
     * empty and out->kind is LINE_CHOICES_WORDS. Each choice must begin with `word`. A path in
     * quotes comes without the quote: then only `kind` is used. */
    void (*complete)(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out);
    /* `suspend` leaves the screen before an external editor runs (edit_file.h). `resume` returns to
     * the screen and acquires the terminal. Called only while a display is set; without one, the
     * line editor itself erases its line and later acquires the terminal. */
    void (*suspend)(void *ud);
    void (*resume)(void *ud);
    /* Called for Up on an empty line. Append a line to `out` to edit it instead of recalling the
     * history. False: recall the history. */
    bool (*unqueue_last)(void *ud, struct strbuf *out);
    void (*failed)(void *ud, const char *why); /* the external editor failed */
};

/* Set up the editor; *host is copied. False: it is set up already, and its history and host stay.
 * `name` is the application name for conditions in ~/.inputrc; it must stay valid. */
bool line_open(const char *name, const struct line_host *host);
/* Free everything, with the text, the entries of line_add_history and the texts of the
 * placeholders. */
void line_close(void);

/* How the line is drawn. No function is NULL, and all get `ud`. */
struct line_display {
    bool is_hidden; /* the line is not drawn; line_put_back works as if Readline drew it */
    void *ud;
    void (*redisplay)(void *ud); /* the line has changed; line_view returns it */
    /* List the choices of Tab: words[1] to words[n_words]. `longest`: most columns of one; a path
     * counts without its directories. */
    void (*matches)(void *ud, char **words, int n_words, int longest);
    void (*clear)(void *ud); /* Ctrl-L: clear the screen */
    void (*hide)(void *ud);  /* erase the line before an external editor runs */
};
/* Copy *display. Readline draws the line if `display` is NULL, or if /dev/null cannot be opened for
 * Readline's own output. Readline cannot draw a line of many rows, so line_put_back then inserts a
 * long text as a placeholder. Call this function only while no line is being edited. */
void line_set_display(const struct line_display *display);
/* The line to draw, valid until it changes. The text is empty while no line is being edited. */
struct line_view {
    const char *prompt; /* of line_begin or of a search, with Readline's markers (input_rows.h) */
    struct bn_str text;
    size_t point; /* offset of the cursor in `text` */
};
void line_view(struct line_view *out);

/* Add an entry for Up and Ctrl-R, unless it equals the newest one. An entry as long as a long paste
 * is recalled as a placeholder. */
void line_add_history(const char *entry);
/* Whether the editor is at an entry that was recalled or found, so that Up recalls earlier ones. */
bool line_is_earlier_entry(void);

/* Start editing: show the prompt (with Readline's markers around control sequences) and the text
 * that line_stop or line_put_back saved. No line may be open. */
void line_begin(const char *prompt);
void line_stop(void); /* stop editing; the text is saved for line_begin */
bool line_is_open(void);
/* Process keys until a line is finished or no key is left; a line must be open. *n_used is the
 * number of bytes that were processed. A paste is processed only when its end sequence has arrived.
 * The incomplete paste, and the keys behind a finished line, must be passed again. Hold back an
 * incomplete control sequence at the end of the keys (term_keys_tail), which Readline would get as
 * keys. */
enum line_result line_feed(const char *keys, size_t n_keys, size_t *n_used);
/* The finished line, with placeholders for long pastes; valid until the next line is finished. */
struct bn_str line_displayed_text(void);
/* Append a displayed line to `out` and replace each placeholder by its text. A placeholder that the
 * user has changed is text. */
void line_expand(struct bn_str displayed, struct strbuf *out);

/* Insert a text, which may have placeholders, before the text in the editor, with a newline between
 * them. If no line is being edited, the next line_begin shows it. */
void line_put_back(struct bn_str text);
bool line_is_empty(void); /* no text is being edited or saved for line_begin */
/* For Ctrl-C: end a search, and delete the text, which becomes an entry for Up. False: no line is
 * being edited, or no text. */
bool line_clear(void);
/* Whether Readline shows a prompt of its own: of a search or a repetition count. */
bool line_has_other_prompt(void);
/* Whether Esc alone has a meaning for Readline: in a search, and in its vi mode. */
bool line_uses_escape(void);
void line_set_prompt(const char *prompt);     /* of the line that is being edited; else nothing */
void line_replace_prompt(const char *prompt); /* the same, but the caller draws the line */
/* For writing other text while Readline draws: line_hide erases the line, line_show draws it again
 * on the cursor's row. line_leave erases nothing: it keeps the line as text and begins a row. */
void line_hide(void);
void line_leave(void);
void line_show(void);
void line_resize(size_t n_rows, size_t n_columns); /* the screen has a new size: draw again */

#endif
