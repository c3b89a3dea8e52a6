/*
 * The state of the inline painter, for the files ui_inline*.c only. Main thread.
 */
#ifndef APP_UI_INLINE_STATE_H
#define APP_UI_INLINE_STATE_H

#include "app/terminal/line/input_rows.h"
#include "app/terminal/terminfo.h"
#include "app/terminal/tty.h"
#include "app/ui/terminal_chat.h"

#define INLINE_PROMPT_BYTES 32

/* The rows of the line editor on the screen. */
struct inline_editor {
    struct input_rows drawn; /* what is on the screen: n_rows rows from row `first` on */
    struct input_rows next;  /* scratch memory */
    size_t first, n_rows;
    size_t at_row;   /* the row of the terminal's cursor, counted from `first` */
    bool at_end;     /* the cursor is at the end of the last row */
    bool is_drawn;   /* false: the cursor is where the first row begins */
    bool is_changed; /* the line differs from what is drawn */
    bool
        has_own_prompt; /* `drawn` begins with the prompt of inline_ui, not with that of a search */
};

struct inline_ui {
    struct terminfo caps;
    struct tty_size size;
    struct flow_looks looks;
    struct flow flow;
    struct strbuf out; /* bytes to write next */
    struct inline_editor editor;
    bool has_row;        /* the status row is visible below the cursor */
    bool row_enabled;    /* an answer is running */
    char row[256];       /* text of the status row */
    struct strbuf below; /* the rows below it, each with a newline: queued lines and typed text */
    size_t n_below;      /* the number of these rows */
    size_t n_queued;     /* how many of them, at the start, are queued lines */
    double row_painted;
    enum chat_phase row_phase; /* phase of the chat at row_painted */
    enum answer_part part;
    bool in_answer;

    char prompt[INLINE_PROMPT_BYTES];
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

/* The line editor (ui_inline_edit.c). These functions append to `out`, except when Readline draws.
 * */
void inline_open_editor(struct ui *ui); /* unless it is open */
void inline_draw_editor(struct ui *ui); /* what has changed; not during an answer */
/* For writing other text between answers: erase the editor, and draw it again on the cursor's row.
 * */
void inline_hide_editor(struct inline_ui *u);
void inline_show_editor(struct ui *ui);
void inline_leave_editor(struct inline_ui *u); /* leave its rows and go to the row below them */
void inline_resize_editor(struct inline_ui *u, size_t columns); /* erase it at the new width */
/* Append the text that is typed during an answer, at most max_rows rows, each with a newline. */
void inline_typed_rows(struct ui *ui, size_t max_rows, struct strbuf *out);

/* Messages of the program, between answers or within one. */
void inline_begin_message(struct ui *ui);
void inline_add_message(struct ui *ui, enum ui_tone tone, struct bn_str text);
void inline_end_message(struct ui *ui);

#endif
