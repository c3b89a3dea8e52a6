/*
 * The state of the line editor, for the files line_*.c only. It is a global variable, because
 * Readline keeps its own state in global variables and passes no pointer of ours to its callbacks.
 */
#ifndef APP_LINE_STATE_H
#define APP_LINE_STATE_H

#include "app/common/strbuf.h"
#include "app/terminal/line/line_edit.h"

#include <stdio.h>

/* Kinds of placeholders. A placeholder is a short label in the line that stands for a long text, as
 * "[pasted 1: 9 lines, 310 bytes: first line ... last line]". */
enum line_placeholder {
    LINE_PLACEHOLDER_PASTED,  /* pasted, or from the external editor */
    LINE_PLACEHOLDER_EARLIER, /* recalled from the history, or put back into the editor */
    LINE_PLACEHOLDERS         /* number of kinds */
};

struct line_state {
    struct line_host host; /* zero before line_open */

    const char *keys; /* (n_keys) typed keys of line_feed, no paste; Readline reads from `at` on */
    size_t n_keys, at;

    /* is_open: a line is being edited. is_done: the line of the latest line_begin was finished by
     * Enter or Ctrl-D, not by line_stop. is_end: it was Ctrl-D. */
    bool is_open, is_done, is_end;
    char *line;  /* the finished line; allocated by Readline */
    char *saved; /* the text for the next line_begin, from malloc; NULL: none */

    struct line_display display; /* all zero while Readline draws */
    FILE *sink;                  /* receives Readline's own output while `display` is used */

    /* Texts that are shown as placeholders, for each kind. The placeholder of items[i] has the
     * number i + 1. */
    struct line_pastes {
        struct line_paste {
            struct strbuf text, placeholder;
        } * items; /* (n) */
        size_t n, cap;
    } pastes[LINE_PLACEHOLDERS];
    /* The line as it was before a key, for line_paste_after_key. */
    struct line_before {
        bool is_valid; /* else the key may do anything to the placeholders */
        struct strbuf text;
        int point, history;     /* rl_point, where_history */
        struct undo_list *undo; /* rl_undo_list */
    } before;

    struct line_choices choices; /* of the completion in progress */
    char quote;                  /* the open quote around the path that is completed, or 0 */
    size_t next_choice;          /* offset in choices.words of the next word for Readline */
};
extern struct line_state line_state;

/* Draw the line with Readline or with the display. */
void line_redisplay(void);

/* Bind the keys that Readline lacks. Moving and deleting by one character treat a cluster
 * (term_text.h) as one character. The keys of keyboard macros and single keys without a binding
 * only ring the bell. A key that sends an escape sequence without a binding, such as a function
 * key, does nothing.
 * `edit_elsewhere` is a Readline command for Ctrl-X Ctrl-E, which runs the user's own editor. */
void line_keys_bind(int (*edit_elsewhere)(int count, int key));
/* The Readline commands of Ctrl-K, Ctrl-U and Ctrl-X Backspace. They stop at the ends of a line of
 * the message. line_paste.c compares rl_last_func with them. */
int line_kill_end(int count, int key);
int line_kill_start(int count, int key);
int line_kill_backward(int count, int key);

/* Clean a paste (line ends, control characters) and insert it at the cursor, a long one as a
 * placeholder. The caller redraws. */
void line_paste_insert(const char *bytes, size_t n_bytes);
/* Append a text to `out`, as a placeholder if the text has many lines or bytes. term_text_clean
 * must have cleaned the text. With too many placeholders, or without memory, the text is appended
 * as it is. */
void line_paste_shorten(struct bn_str text, enum line_placeholder kind, struct strbuf *out);
/* Call these around each key that Readline processes. They keep placeholders whole, because a part
 * of a placeholder would be sent as it is, without the long text. If the key has deleted a part of
 * one, the rest is deleted too. If the key has put other characters into one, the change is
 * reverted. If the cursor is inside of one, it moves to its start or end. */
void line_paste_before_key(void);
void line_paste_after_key(void);
void line_paste_finish(void); /* free the texts of all placeholders */

void line_complete_open(void); /* let Tab call host.complete */
void line_complete_finish(void);

#endif
