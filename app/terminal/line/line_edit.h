/*
 * The line editor: Readline through its callback interface. Readline draws on an ordinary terminal;
 * otherwise the painter draws (line_set_display).
 *
 * The painter reads the keys and passes them to line_feed, which reports when Enter ends the line.
 * A paste is inserted as a whole. A long paste is displayed as a short mark, and line_expand puts
 * its text back. There is only one editor, because the state of Readline is global. Main thread
 * only. Call tty_acquire first.
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
    /* Up on an empty line: append a line to edit instead of recalling the history. False: none. */
    bool (*take_back)(void *ud, struct strbuf *out);
    void (*failed)(void *ud, const char *why); /* the external editor failed */
};

/* False: the editor is already open; its history stays. `name` is the application name for
 * ~/.inputrc. */
bool line_open(const char *name, const struct line_host *host);
void line_close(void);

/* How the line is drawn. All functions get `ud`. */
struct line_display {
    bool is_hidden; /* the line cannot be shown now, or only parts of it */
    void *ud;
    void (*redisplay)(void *ud); /* the line has changed; line_view returns it */
    /* Show what Tab can complete: words[1] to words[n_words], of at most `longest` bytes each. */
    void (*matches)(void *ud, char **words, int n_words, int longest);
    void (*clear)(void *ud); /* Ctrl-L: clear the screen */
    void (*hide)(void *ud);  /* erase the line before an external editor runs */
};
/* NULL: Readline draws the line itself. It cannot draw a line of many rows, so tall texts are shown
 * as marks. Set it only while no line is being edited. */
void line_set_display(const struct line_display *display);
/* What to draw, valid until the text changes. */
struct line_view {
    const char *prompt; /* with Readline's markers; also the prompt of a search */
    struct bn_str text;
    size_t point; /* offset of the cursor */
};
void line_view(struct line_view *out);

/* Add an entry for Up and Ctrl-R. A tall one is recalled as a mark, as a long paste is shown. */
void line_add_history(const char *entry);

/* Start editing: show the prompt (with Readline's markers around control sequences) and the text
 * that line_stop or line_put_back saved. */
void line_begin(const char *prompt);
void line_stop(void); /* stop editing; the text is saved for line_begin */
bool line_is_open(void);
/* Process keys until a line is done. *n_used is the number of bytes used. A paste is used
 * only when it has its end mark. */
enum line_result line_feed(const char *keys, size_t n_keys, size_t *n_used);
/* The finished line, with marks for long pastes; valid until the next one is finished. */
struct bn_str line_displayed_text(void);
/* Append a line with each mark replaced by its text. */
void line_expand(struct bn_str displayed, struct strbuf *out);

/* Insert a text, which may have marks, before what was typed since. It is edited now or by the next
 * line_begin. */
void line_put_back(struct bn_str text);
bool line_is_blank(void); /* no text is being edited or saved for line_begin */
bool line_clear(void);    /* Ctrl-C; false: the line was empty */
/* Whether Esc alone has a meaning: in a search, and in the vi mode of Readline. */
bool line_uses_escape(void);
void line_set_prompt(const char *prompt);
/* For writing other text while Readline draws: line_hide erases the line, line_show draws it again
 * on the cursor's row. */
void line_hide(void);
void line_show(void);
void line_resize(size_t n_rows, size_t n_columns);

#endif
