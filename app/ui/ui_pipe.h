/*
 * The painter for pipes and scripts. Input is one prompt, one turn per line, or a script of lines
 * and commands. Only answers go to stdout; everything else goes to stderr.
 */
#ifndef APP_UI_PIPE_H
#define APP_UI_PIPE_H

#include "app/chat/ui.h"
#include "app/common/strbuf.h"

enum pipe_kind {
    PIPE_ONCE,        /* one prompt, one answer */
    PIPE_LINES,       /* each line of stdin is a turn */
    PIPE_SCRIPT,      /* lines and commands on stdin */
    PIPE_INTERACTIVE, /* a script typed at a terminal, with prompts on stderr */
    PIPE_INFO,        /* print information about the model when it is loaded */
    PIPE_EXPLAIN,     /* print how the model would run */
};
enum pipe_output { PIPE_TEXT, PIPE_JSON, PIPE_JSONL };
enum pipe_stdin {
    PIPE_STDIN_UNUSED,
    PIPE_STDIN_WHOLE,  /* read all of it, and put it before the prompt */
    PIPE_STDIN_IF_ANY, /* the same if the first byte comes soon */
};

struct pipe_plan {
    enum pipe_kind kind;
    enum pipe_output output;
    enum pipe_stdin stdin_use; /* for PIPE_ONCE */
    struct strbuf files;       /* for PIPE_ONCE: attachments; owned by the painter after open */
    struct strbuf prompt;      /* the first message, or empty; owned as `files` */
};

extern const struct ui_ops ui_pipe_ops;

/* Set the plan and take ownership of its texts. Call it before open. BN_ENOMEM: the texts stay with
 * the caller. */
bool ui_pipe_plan(struct ui *ui, const struct pipe_plan *plan, struct bn_error *err);

#endif
