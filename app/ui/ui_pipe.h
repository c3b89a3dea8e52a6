/*
 * The painter for pipes and scripts, and what it shall do: one prompt, one turn a line, or a script
 * of lines and commands. Answers go to stdout and nothing else does; the rest goes to stderr.
 */
#ifndef APP_UI_PIPE_H
#define APP_UI_PIPE_H

#include "app/chat/ui.h"
#include "app/common/strbuf.h"

enum pipe_kind {
    PIPE_ONCE,    /* one prompt, one answer */
    PIPE_LINES,   /* each line of stdin is a turn */
    PIPE_SCRIPT,  /* lines and commands on stdin */
    PIPE_TYPED,   /* the same from a terminal, with prompts on stderr */
    PIPE_INFO,    /* say what model runs, once it does */
    PIPE_EXPLAIN, /* say what would run how, once it can */
};
enum pipe_output { PIPE_TEXT, PIPE_JSON, PIPE_JSONL };
enum pipe_stdin {
    PIPE_STDIN_UNUSED,
    PIPE_STDIN_WHOLE,  /* read to its end: it is the prompt, or goes before it */
    PIPE_STDIN_IF_ANY, /* the same, if something arrives soon */
};

struct pipe_plan {
    enum pipe_kind kind;
    enum pipe_output output;
    enum pipe_stdin takes_stdin; /* ONCE */
    struct strbuf files;         /* ONCE: attachments; owned by the painter from open on */
    struct strbuf prompt;        /* the first message, or empty; likewise */
};

extern const struct ui_ops ui_pipe_ops;

/* Before open: what this painter shall do. BN_ENOMEM. */
bool ui_pipe_plan(struct ui *ui, const struct pipe_plan *plan, struct bn_error *err);

#endif
