/*
 * The state of the inline painter, for the files ui_inline*.c only. Main thread.
 */
#ifndef APP_UI_INLINE_STATE_H
#define APP_UI_INLINE_STATE_H

#include "app/terminal/terminfo.h"
#include "app/terminal/tty.h"
#include "app/ui/terminal_chat.h"

#define INLINE_PROMPT_BYTES 128 /* two control strings, progress, Readline's markers */

struct inline_ui {
    struct terminfo caps;
    struct tty_size size;
    struct flow_looks looks;
    struct flow flow;
    struct strbuf out; /* bytes to write next */
    bool has_row;      /* the status row is visible below the cursor */
    bool row_enabled;  /* an answer is running */
    char row[256];     /* text of the status row */
    double row_painted;
    enum chat_phase row_phase; /* phase of the chat at row_painted */
    enum answer_part part;
    bool in_answer;

    bool has_new_keys;                      /* since the last call of next_event */
    char prompt[INLINE_PROMPT_BYTES];       /* as passed to Readline */
    char final_prompt[INLINE_PROMPT_BYTES]; /* the prompt of sent lines: without progress */
    bool is_open, is_suspended;
};

/* These functions append to `out`. The status row is erased before text moves into it. */
void inline_add_terminfo(struct inline_ui *u, enum terminfo_string which);
void inline_add_text(struct ui *ui, struct bn_str text);
void inline_erase_row(struct inline_ui *u);
void inline_paint_row(struct inline_ui *u);
void inline_refresh_row(struct ui *ui); /* show the current status */
void inline_repaint(struct ui *ui);     /* the last row of text and the status row */
void inline_follow_size(struct ui *ui); /* adapt to a new size of the terminal */
void inline_write_out(struct ui *ui);

/* Messages of the program, between answers or within one. */
void inline_begin_message(struct ui *ui);
void inline_add_message(struct ui *ui, enum ui_tone tone, struct bn_str text);
void inline_end_message(struct ui *ui);

#endif
