/*
 * The line editor: Readline through its callback interface. Readline draws on an ordinary terminal;
 * otherwise the painter draws (line_set_display).
 *
 * The painter reads the keys and passes them to line_feed, which reports when Enter ends the line.
 * A paste is inserted as a whole. A long paste is displayed as a short mark, and line_text puts its
 * text back. There is only one editor, because the state of Readline is global. Main thread only.
 * Call tty_acquire first.
 */
#ifndef APP_LINE_EDIT_H
#define APP_LINE_EDIT_H

#include "app/common/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

enum line_result {
    LINE_EDITING,
    LINE_DONE, /* a line is finished; line_text returns it */
    LINE_END,  /* Ctrl-D on an empty line */
};

/* What Tab can complete a word to. */
struct line_choices {
    enum line_choice_kind {
        LINE_CHOICES_WORDS,   /* the words below, possibly none */
        LINE_CHOICES_FILES,   /* names of files */
        LINE_CHOICES_AT_FILES /* names of files after an '@' */
    } kind;
    struct strbuf words; /* each ends with a newline */
};

/* Functions that the editor calls. All get `ud`. */
struct line_host {
    void *ud;
    /* Find the choices for `word`, which follows the text `before`. `out` is empty. */
    void (*complete)(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out);
    /* Leave the screen and return to it. Called before and after an external editor runs
     * (edit_file.h), and only while a display is set. */
    void (*suspend)(void *ud);
    void (*resume)(void *ud);
    void (*failed)(void *ud, const char *why); /* the external editor failed */
};

/* False: the editor is already open; its history stays. `name` is the application name for
 * ~/.inputrc. */
bool line_open(const char *name, const struct line_host *host);
void line_close(void);

/* Functions that draw the line; Readline draws it if line_set_display gets NULL. Called from
 * line_feed and from functions that change the text. Set it only while no line is being edited. */
struct line_display {
    void *ud;
    void (*redisplay)(void *ud);
    /* Show what Tab can complete: words[1] to words[n_words], of at most `longest` bytes each. */
    void (*matches)(void *ud, char **words, int n_words, int longest);
};
void line_set_display(const struct line_display *display);
/* What to draw, valid until the text changes. */
struct line_view {
    const char *prompt; /* with Readline's markers; also the prompt of a search */
    struct bn_str text;
    size_t point; /* offset of the cursor */
};
void line_view(struct line_view *out);

enum line_enter { LINE_ENTER_SENDS, LINE_ENTER_REFUSED };
void line_set_enter(enum line_enter enter);
bool line_enter_was_refused(void); /* whether Enter was refused since the last call */
void line_add_history(const char *entry);

/* Start editing: show the prompt (with Readline's markers around control sequences) and the text
 * that line_stop, line_set or line_restore saved. */
void line_begin(const char *prompt);
void line_stop(void); /* stop editing; the text is saved for line_begin */
bool line_is_open(void);
/* Process keys until a line is done. *n_used is the number of bytes used. A paste is used
 * only when it has its end mark. */
enum line_result line_feed(const char *keys, size_t n_keys, size_t *n_used);
/* The finished line, with the text of its pastes. */
void line_text(struct strbuf *out);
struct bn_str line_displayed_text(void); /* the same, with marks for long pastes */

void line_set(struct bn_str text); /* replace the text that is being edited */
void line_restore(void);           /* edit the finished line again, with its marks */
bool line_clear(void);             /* Ctrl-C; false: the line was empty */
void line_set_prompt(const char *prompt);
/* The prompt of a line after Enter. The caller keeps the memory. NULL: unchanged. */
void line_set_final_prompt(const char *prompt);
/* For writing other text: line_hide erases the editor, line_show draws it on the cursor's row. */
void line_hide(void);
void line_show(void);
void line_resize(size_t n_rows, size_t n_columns);

#endif
