/*
 * The inline painter's state, for its files only. Main thread.
 */
#ifndef APP_UI_INLINE_STATE_H
#define APP_UI_INLINE_STATE_H

#include "app/terminal/tty.h"
#include "app/terminal/ui_inline_term.h"
#include "app/ui/terminal_chat.h"

#define INLINE_PROMPT_BYTES 128 /* two terminal strings, progress, marks */

struct inline_ui {
    struct term_caps caps;
    struct tty_size size;
    struct flow_paint paint;
    struct flow flow;
    struct strbuf out; /* to be written */
    bool has_row;      /* the ephemeral row stands below the cursor */
    bool wants_row;    /* something runs */
    char row[256];     /* its text */
    double row_painted;
    enum chat_phase row_phase; /* what the chat did then */
    enum answer_part part;
    bool in_answer;

    bool has_new_keys; /* since next_event was called last */
    bool said_busy;
    char prompt[INLINE_PROMPT_BYTES];       /* as Readline has it */
    char final_prompt[INLINE_PROMPT_BYTES]; /* of what was sent: without progress */
    bool is_open, is_suspended;
};

/* Bytes to be written: strings of the terminal, text of an answer, and the ephemeral row, which is
 * erased before the text moves into it. */
void inline_add_caps(struct inline_ui *u, enum term_string which);
void inline_add_text(struct ui *ui, struct bn_str text);
void inline_erase_row(struct inline_ui *u);
void inline_paint_row(struct inline_ui *u);
void inline_refresh_row(struct ui *ui); /* with what the chat does now */
void inline_paint_anew(struct ui *ui);  /* an answer's last row and the row, on an empty screen */
void inline_follow_size(struct ui *ui); /* where the terminal has another size than before */
void inline_write_out(struct ui *ui);

/* The program's own words, between answers or in the middle of one. */
void inline_begin_aside(struct ui *ui);
void inline_add_aside(struct ui *ui, enum ui_tone tone, struct bn_str text);
void inline_end_aside(struct ui *ui);

/* As in ui_ops. */
void inline_input(struct ui *ui);
bool inline_next_event(struct ui *ui, struct ui_event *event);

#endif
