/*
 * The state of the line editor, for the files line_*.c only. There is one, because Readline keeps
 * its own state in global variables and calls back without an argument.
 */
#ifndef APP_LINE_STATE_H
#define APP_LINE_STATE_H

#include "app/common/strbuf.h"
#include "app/terminal/line/line_edit.h"

#include <stdio.h>

struct line_state {
    struct line_host host; /* zero before line_open */

    const char *keys; /* (n_keys) given to line_feed; Readline reads from `at` on */
    size_t n_keys, at;

    bool is_open, is_done, is_end;
    char *line;               /* the line that is done; Readline's memory */
    char *kept;               /* text of an editor that was left; Readline's memory */
    const char *final_prompt; /* see line_set_final_prompt */
    bool enter_waits, was_refused;

    struct line_display display; /* functions are NULL while Readline draws by itself */
    FILE *sink;                  /* takes Readline's own output while `display` is used */

    struct strbuf *pastes; /* (n_pastes) the text of paste i is shown as a mark with number i + 1 */
    size_t n_pastes, cap_pastes;

    struct line_choices choices; /* of the completion in progress */
    size_t next_choice;          /* offset in choices.words */
};
extern struct line_state line_state;

/* Draw the line, by Readline or by the display. */
void line_redisplay(void);

/* Bind the keys that Readline lacks. `edit_elsewhere` opens the user's own editor. */
void line_keys_bind(int (*edit_elsewhere)(int count, int key));

/* Insert a paste at the cursor: cleaned, and a long one as a mark that stands for it. The caller
 * redraws. */
void line_paste_insert(const char *bytes, size_t n_bytes);
/* Append the line to out, with each mark replaced by its paste. */
void line_paste_expand(const char *line, struct strbuf *out);
void line_paste_finish(void);

void line_complete_open(void); /* Tab asks host.complete */
void line_complete_finish(void);

#endif
