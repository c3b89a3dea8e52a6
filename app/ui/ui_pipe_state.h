/*
 * The state of the pipe painter, for the files ui_pipe*.c only. Main thread.
 */
#ifndef APP_UI_PIPE_STATE_H
#define APP_UI_PIPE_STATE_H

#include "app/ui/ui_pipe.h"

#include "app/chat/chat.h"
#include "app/common/json_out.h"

struct pipe_ui {
    struct pipe_plan plan;
    struct strbuf in;      /* read from stdin and not used yet */
    bool at_end;           /* of stdin */
    bool has_sent_prompt;  /* ONCE: the turn has begun; others: plan.prompt was sent */
    bool has_shown_prompt; /* INTERACTIVE: the prompt is on stderr */
    struct strbuf line;    /* the text of the last event */
    bool ends;             /* the next event is UI_END, or UI_ABORT */
    bool aborts;           /* the next event is UI_ABORT */
    enum exit_code code;   /* of that event */
    double opened;
    size_t n_answers;
    struct strbuf buffered; /* --no-stream: the answer until it ends */
    bool in_thought;        /* the last text was a thought, on stderr */
    bool out_is_tty, row_allowed;
    size_t n_row; /* columns of the progress row on stderr */
    double row_painted;
};

/* As in ui_ops. */
bool pipe_wants_input(const struct ui *ui);
void pipe_input(struct ui *ui);
bool pipe_next_event(struct ui *ui, struct ui_event *event);
void pipe_entry_done(struct ui *ui, enum entry entry);

/* End the program with the next event. The first code stays, but an error replaces EXIT_DONE. */
void pipe_end(struct pipe_ui *p, enum exit_code code);

/* A command or a message has failed. A script ends with this code, or with --keep-going later. */
void pipe_failed(struct ui *ui, enum exit_code code);

/* Write to standard output, cleaned if it is a terminal. A failure ends the program. */
void pipe_put_text(struct ui *ui, struct bn_str text);
void pipe_put_json(struct ui *ui, json_t *object);

#endif
