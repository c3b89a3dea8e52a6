/*
 * The state of the line editor, for the files line_*.c only. There is only one, because Readline
 * keeps its own state in global variables and its callbacks get no argument.
 */
#ifndef APP_LINE_STATE_H
#define APP_LINE_STATE_H

#include "app/common/strbuf.h"
#include "app/terminal/line/line_edit.h"

#include <stdio.h>

struct line_state {
    struct line_host host; /* zero before line_open */

    const char *keys; /* (n_keys) the keys of line_feed; Readline reads from `at` on */
    size_t n_keys, at;

    bool is_open, is_done, is_end;
    char *line;               /* the finished line; allocated by Readline */
    char *saved;              /* the text for the next line_begin; allocated by Readline */
    const char *final_prompt; /* see line_set_final_prompt */
    bool refuses_enter, enter_was_refused;

    struct line_display display; /* functions are NULL while Readline draws */
    FILE *sink;                  /* receives Readline's own output while `display` is used */

    struct strbuf *pastes; /* (n_pastes) long pastes; paste i has a mark with number i + 1 */
    size_t n_pastes, cap_pastes;

    struct line_choices choices; /* of the completion in progress */
    size_t next_choice;          /* offset in choices.words */
};
extern struct line_state line_state;

/* Draw the line with Readline or with the display. */
void line_redisplay(void);

/* Bind the keys that Readline lacks. `edit_elsewhere` opens the user's own editor. */
void line_keys_bind(int (*edit_elsewhere)(int count, int key));

/* Insert a cleaned paste at the cursor, a long one as a mark. The caller redraws. */
void line_paste_insert(const char *bytes, size_t n_bytes);
/* Append the line to out, with each mark replaced by its paste. */
void line_paste_expand(const char *line, struct strbuf *out);
void line_paste_finish(void);

void line_complete_open(void); /* let Tab call host.complete */
void line_complete_finish(void);

#endif
