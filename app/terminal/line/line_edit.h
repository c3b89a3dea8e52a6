/*
 * The line editor: Readline through its callback interface, which shows itself at the bottom of an
 * ordinary terminal, or is shown by a painter (line_set_display).
 *
 * Keys are read by the painter and handed in; a line comes back when Enter ends it. Pastes are
 * taken in whole, long ones shown as a short mark and put in when the line is sent. There is one
 * editor, because Readline's state is global. Main thread only; the terminal is taken by tty_take
 * before.
 */
#ifndef APP_LINE_EDIT_H
#define APP_LINE_EDIT_H

#include "app/common/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

enum line_result {
    LINE_EDITING,
    LINE_DONE, /* line_text has it */
    LINE_END,  /* Ctrl-D on an empty line */
};

/* What Tab offers for a word. */
struct line_choices {
    enum line_choice_kind {
        LINE_CHOICES_WORDS, /* the words below, perhaps none */
        LINE_CHOICES_FILES, /* names of files */
        LINE_CHOICES_MARKED /* names of files after an '@' */
    } kind;
    struct strbuf words; /* each ends with a newline */
};

/* What the editor needs from the program. All functions get `ud`. */
struct line_host {
    void *ud;
    /* Choices for `word`, which follows the text `before`. `out` is empty. */
    void (*complete)(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out);
    /* Around the user's own editor: give up the screen and take it again. Called only while a
     * display is set. */
    void (*suspend)(void *ud);
    void (*resume)(void *ud);
    void (*failed)(void *ud, const char *why); /* the user's own editor could not be used */
};

/* False: the editor is open already and keeps its history. `name` is for ~/.inputrc. */
bool line_open(const char *name, const struct line_host *host);
void line_close(void);

/* Who shows the editor; NULL: Readline itself. The calls come from within line_feed and from what
 * changes the text. Set while no line is being edited. */
struct line_display {
    void *ud;
    void (*redisplay)(void *ud);
    /* The choices of Tab: words[1] to words[n_words], of at most `longest` bytes each. */
    void (*matches)(void *ud, char **words, int n_words, int longest);
};
void line_set_display(const struct line_display *display);
/* What to show: valid until the text changes. */
struct line_view {
    const char *prompt; /* with Readline's marks; of a search, too */
    struct bn_str text;
    size_t point; /* the cursor's byte */
};
void line_view(struct line_view *out);

enum line_enter { LINE_ENTER_SENDS, LINE_ENTER_WAITS };
void line_set_enter(enum line_enter enter);
bool line_was_refused(void); /* Enter was pressed while it waits, since this was last asked */
void line_add_history(const char *entry);

/* Show the prompt (with Readline's marks around what has no width) and what was there to edit. */
void line_begin(const char *prompt);
void line_leave(void); /* end editing, keep the text for the next line_begin */
bool line_is_open(void);
/* Take keys until a line is done; gives how many were used. A paste whose end has not come yet is
 * left. */
enum line_result line_feed(const char *keys, size_t n_keys, size_t *n_used);
/* The line that is done, long pastes put in. */
void line_text(struct strbuf *out);
struct bn_str line_shown(void); /* the same as it stood, long pastes as marks */

void line_set(struct bn_str text); /* replace what is being edited */
void line_restore(void);           /* edit the line that was done again, as it stood */
bool line_clear(void);             /* Ctrl-C: false if there was nothing to clear */
void line_set_prompt(const char *prompt);
/* The prompt that a line has once it is sent; the caller's memory, NULL: the one that it had. */
void line_set_final_prompt(const char *prompt);
/* Take the editor off the screen, and put it back on the cursor's row: around anything else shown.
 */
void line_hide(void);
void line_show(void);
void line_resize(size_t n_rows, size_t n_columns);

#endif
