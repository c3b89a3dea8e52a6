/*
 * The state of the pipe painter, for the files ui_pipe*.c only. Main thread.
 */
#ifndef APP_UI_PIPE_STATE_H
#define APP_UI_PIPE_STATE_H

#include "app/ui/ui_pipe.h"

#include "app/chat/chat.h"
#include "app/common/json_out.h"
#include "app/terminal/text/flow.h"

struct pipe_ui {
    struct pipe_plan plan;
    struct strbuf in;       /* read from stdin and not used yet */
    size_t n_searched;      /* bytes of `in` that are known to have no newline */
    bool at_end;            /* stdin has ended, or is not read */
    bool has_sent_prompt;   /* plan.prompt was sent; PIPE_ONCE: with all other input, or refused */
    bool has_shown_prompt;  /* PIPE_INTERACTIVE: ">>> " is on stderr */
    struct strbuf line;     /* the text of the last event */
    bool ends;              /* the next event is UI_END, or UI_ABORT */
    bool aborts;            /* the next event is UI_ABORT */
    enum exit_code code;    /* of this UI_END or UI_ABORT event */
    double opened;          /* clock_seconds */
    size_t n_lines;         /* lines that were taken from `in`, blank ones included */
    size_t line_number;     /* of the first line of the last text from `in` */
    size_t n_turns_written; /* turns that have ended, with output; some may have failed */
    bool is_separated;      /* PIPE_TEXT: a turn has begun, with an empty line if it needs one */
    bool has_begun;         /* PIPE_JSONL: the event "start" of the present turn was written */
    struct strbuf buffered; /* --no-stream: the answer so far, which is written at its end */
    bool in_thought;        /* the last text was a thought, on stderr */
    bool out_is_tty, err_is_tty; /* stdout, stderr is a terminal */
    struct flow answer, thought; /* PIPE_TEXT: the present turn, for stdout and stderr if they are
                                     terminals */
    bool row_allowed;            /* a progress row may be shown on stderr */
    double row_painted;          /* clock_seconds */
};

/* As in ui_ops. */
bool pipe_wants_input(const struct ui *ui);
void pipe_input(struct ui *ui);
bool pipe_next_event(struct ui *ui, struct ui_event *event);
void pipe_entry_done(struct ui *ui, enum entry_result entry);

/* End the program with the next event. The code of the first call stays, but the code of a later
 * call replaces EXIT_DONE. The code of UI_ABORT stays in any case. */
void pipe_end(struct pipe_ui *p, enum exit_code code);

/* Call it after a command or a message has failed. The program ends with this code; with
 * --keep-going, PIPE_LINES and PIPE_SCRIPT continue and use the first such code at the end of
 * stdin. PIPE_INTERACTIVE ignores it. */
void pipe_failed(struct ui *ui, enum exit_code code);

/* Write to standard output. A failure ends the program. pipe_put_text cleans the text if standard
 * output is a terminal. pipe_put_json writes one line and releases the reference to `object`; NULL
 * means that memory ran out, which is a failure. */
void pipe_put_text(struct ui *ui, struct bn_str text);
void pipe_put_json(struct ui *ui, json_t *object);
/* With --json and --jsonl: write the object of a message that failed. It has only the error, so
 * that the objects can be matched to the messages. With --jsonl the event "start" comes before it,
 * unless it was written already. */
void pipe_put_failed(struct ui *ui, const struct bn_error *err);

#endif
