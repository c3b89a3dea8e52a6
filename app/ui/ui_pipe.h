/*
 * The painter for pipes and scripts. Its input is one prompt, lines that are one turn each, or a
 * script of messages and commands. Answers, all JSON and information about the model are written to
 * stdout, everything else to stderr.
 */
#ifndef APP_UI_PIPE_H
#define APP_UI_PIPE_H

#include "app/chat/ui.h"
#include "app/common/strbuf.h"

enum pipe_kind {
    PIPE_ONCE,        /* one prompt, one answer */
    PIPE_LINES,       /* each line of stdin that is not blank is a turn */
    PIPE_SCRIPT,      /* messages and commands: lines of stdin, or several lines in fences */
    PIPE_INTERACTIVE, /* a script that is typed at a terminal, with ">>> " on stderr */
    PIPE_INFO,        /* print information about the model when it is loaded */
    PIPE_EXPLAIN,     /* print how the model would run */
};
/* JSON: one object per answer. JSONL: one object per event, such as a token, in a line of its own.
 * With both, PIPE_INFO prints one object. PIPE_EXPLAIN always prints text. */
enum pipe_output { PIPE_TEXT, PIPE_JSON, PIPE_JSONL };
enum pipe_stdin {
    PIPE_STDIN_UNUSED,
    PIPE_STDIN_WHOLE,  /* read all of stdin, and put it before the prompt */
    PIPE_STDIN_IF_ANY, /* the same if its first byte, or its end, comes within two seconds of
                          ops->open; else ignore it with a warning */
};

struct pipe_plan {
    enum pipe_kind kind;
    enum pipe_output output;
    enum pipe_stdin stdin_use; /* for PIPE_ONCE */
    struct strbuf files;       /* for PIPE_ONCE: the texts of attachments, or empty */
    bool has_only_file;        /* `files` has one file, whose text is `only_file`. It is the prompt
                                  if neither stdin nor `prompt` has a text */
    struct strbuf only_file;
    struct strbuf prompt; /* the first message (PIPE_ONCE: its last part), or empty */
};

extern const struct ui_ops ui_pipe_ops;

/* Set the plan. Call it before ops->open. The painter now owns the texts of the plan,
 * and ops->close frees them; after BN_ENOMEM, the caller still owns them. */
bool ui_pipe_plan(struct ui *ui, const struct pipe_plan *plan, struct bn_error *err);

#endif
