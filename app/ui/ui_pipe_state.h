/*
 * The pipe painter's state, for its files only. Main thread.
 */
#ifndef APP_UI_PIPE_STATE_H
#define APP_UI_PIPE_STATE_H

#include "app/ui/ui_pipe.h"

#include "app/app.h"
#include "app/common/json_out.h"

struct pipe_ui {
    struct pipe_plan plan;
    struct strbuf in;  /* read from stdin and not used yet */
    bool at_end;       /* of stdin */
    bool has_asked;    /* ONCE: the turn has begun; others: the first prompt is through */
    bool has_prompted; /* TYPED: the prompt stands on stderr */
    double opened;
    size_t n_answers;
    struct strbuf held; /* --no-stream: the answer until its end */
    bool in_thought;    /* the last text was thought, on stderr */
    bool out_is_tty, row_allowed;
    size_t n_row; /* columns of the progress row on stderr */
    double row_painted;
};

/* Standard input: what it holds becomes turns. */
bool pipe_wants_input(const struct ui *ui);
void pipe_input(struct ui *ui);
void pipe_ready(struct ui *ui);

/* Standard output, cleaned where it is a terminal; a failure ends the program. */
void pipe_put_text(struct ui *ui, struct bn_str text);
void pipe_put_json(struct ui *ui, json_t *object);
void pipe_turn_failed(struct ui *ui, const struct bn_error *err);

#endif
