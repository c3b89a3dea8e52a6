/*
 * The state of the inline painter, for the files ui_inline*.c only. Main thread.
 */
#ifndef APP_UI_INLINE_STATE_H
#define APP_UI_INLINE_STATE_H

#include "app/terminal/line/input_rows.h"
#include "app/terminal/terminfo.h"
#include "app/terminal/text/status.h"
#include "app/terminal/tty.h"
#include "app/ui/ui_terminal.h"

#define INLINE_PROMPT_BYTES 32 /* "(loading 100%) >>> " and a 0, with room to spare */

/* The rows of the line editor on the screen, between answers. */
struct inline_editor {
    struct input_rows drawn; /* the rows on the screen, if is_drawn */
    struct input_rows next;  /* the rows to draw next; between calls its contents are not used */
    size_t at_row;           /* the row of the terminal's cursor */
    bool at_end;             /* the cursor is at the end of the last row */
    bool is_drawn;       /* false: no row is on the screen; the first one begins at the cursor */
    bool is_changed;     /* the text or the size has changed since the rows were drawn */
    bool has_own_prompt; /* `drawn` begins with inline_ui.prompt, not with the prompt of a search */
};

struct inline_ui {
    struct terminfo caps;
    struct tty_size size;
    struct flow_looks looks;
    struct flow flow;
    struct strbuf out; /* bytes to write next */
    struct inline_editor editor;
    bool has_row;     /* the status row is visible, in the row below the cursor */
    bool is_settling; /* the last row of an answer, or the editor, is still that of another width */
    double resized;   /* when the width has changed last, in clock_seconds; used if is_settling */
    bool row_enabled; /* an answer is running, without --plain: show the status row if possible */
    char row[256];    /* text of the status row */
    struct strbuf below; /* rows below the status row: queued lines and typed text, with newlines */
    size_t n_below;      /* number of rows in `below` */
    size_t n_queued;     /* how many of these rows, the first ones, are for queued lines */
    size_t below_cursor; /* offset in `below` of the editor's cursor; SIZE_MAX: not visible */
    struct status_clock row_clock; /* of the status row, or of the prompt while the model loads */
    enum answer_part part;         /* of the text that was added last */
    bool in_answer;                /* between inline_turn_begin and the end of the turn */

    char prompt[INLINE_PROMPT_BYTES];
    bool is_suspended; /* between inline_suspend and inline_resume */
};

/* These functions append to `out`; inline_write_out writes it. In their names, "row" is the status
 * row with the rows below it. All but inline_add_terminfo leave the cursor at the end of the
 * text. */
void inline_add_terminfo(struct inline_ui *u, enum terminfo_string which);
void inline_add_text(struct ui *ui, struct bn_str text); /* a part of the answer */
void inline_erase_row(struct inline_ui *u);
/* Write the row as a whole. The row cannot be painted, and nothing happens, if it is not enabled,
 * if the terminal cannot repaint, or if the text may fill the row of the cursor. */
void inline_paint_row(struct inline_ui *u);
/* Format the row again, and write what has changed; nothing if the row cannot be painted now. */
void inline_refresh_row(struct ui *ui);
/* Clear the screen; write the last row of text and the row. Does nothing without TERMINFO_CLEAR or
 * if the terminal cannot repaint. */
void inline_repaint(struct ui *ui);
/* Adapt to the size of the terminal, if it has changed. The last row of an answer and the status
 * row, or the editor, are drawn again only after the width has stayed the same for a while. */
void inline_follow_size(struct ui *ui);
/* Call it at the end of an answer, before rows below its last one are written. Waits until
 * inline_follow_size has drawn the last row again: usually not at all, and at most a second. */
void inline_settle(struct ui *ui);
/* Milliseconds, rounded up, until inline_follow_size draws rows again; -1: it has none to draw */
int inline_settle_wait(const struct inline_ui *u);
void inline_write_out(struct ui *ui); /* if the terminal is gone, is_hung_up is set */

/* The line editor (ui_inline_edit.c). These functions append to `out`, unless Readline draws. */
void inline_open_editor(struct ui *ui); /* unless it is open */
/* Draw the rows that have changed; not during an answer, nor while the width may still change. */
void inline_draw_editor(struct ui *ui);
/* Call it when the width has changed and may change again. If the terminal has broken the rows so
 * that they take more than half of the screen, erase them at once: they might scroll away. */
void inline_resize_editor(struct inline_ui *u);
/* For writing other text between answers: erase the editor, and draw it again on the cursor's
 * row. */
void inline_hide_editor(struct inline_ui *u);
void inline_show_editor(struct ui *ui);
void inline_leave_editor(struct inline_ui *u); /* begin a row below its rows, which become text */
/* During an answer: append rows of the typed text, with the row of its cursor, at most max_rows,
 * each with a newline. Returns the offset of the cursor in `out`; SIZE_MAX if nothing was typed. */
size_t inline_typed_rows(struct ui *ui, size_t max_rows, struct strbuf *out);

/* Messages of the program, between answers or within one. begin_message erases the editor or the
 * status row and begins a row; then add_message may be called several times; end_message writes
 * `out` and shows the editor again. begin_message is not needed if no answer runs and the editor is
 * not on the screen, as directly after the end of an answer. */
void inline_begin_message(struct ui *ui);
void inline_add_message(struct ui *ui, enum ui_tone tone, struct bn_str text);
void inline_end_message(struct ui *ui);

#endif
