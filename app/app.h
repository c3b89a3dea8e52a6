/*
 * The program as one struct: what main opened, the conversation, the painter, and how it will end.
 */
#ifndef APP_APP_H
#define APP_APP_H

#include "app/chat/chat.h"
#include "app/chat/conversation/store.h"
#include "app/common/log_file.h"
#include "app/common/report.h"
#include "app/terminal/key_queue.h"
#include "app/terminal/line/history.h"

#define PROGRAM "bitnet-chat"

/* A place in an answer: bytes of its two parts. */
struct answer_mark {
    size_t n_thought, n_shown;
};

struct app {
    struct options *options;
    struct bn_file *file;
    struct tokenizer *tokenizer;
    struct template *template;   /* NULL: --raw */
    struct bn_notes notes;       /* of file, vocabulary and template */
    struct bn_notes model_notes; /* of the model: the worker writes them until it is loaded */
    struct worker *worker;
    struct ui ui;
    const struct ui_ops *next_ui; /* painters change: this one is next; NULL: they do not */
    struct key_queue keys;        /* typed, and no painter had a use for them yet */
    struct answer_mark printed;   /* of the answer that runs: on the ordinary screen already */
    struct chat chat;
    struct store store;
    struct history history;
    struct log_file log;
    char model_name[128]; /* cleaned, for a terminal */
    bool is_demo;         /* no model was named: the built-in one */
    int wake_read, wake_write;

    struct strbuf attachments;  /* of /file: they go before the next message */
    struct bn_str first_prompt; /* to begin a terminal chat with */
    bool was_first_prompt;
    bool is_interactive; /* slash commands and the chat's notices */
    bool is_private;     /* --private or its variable */
    bool leaving;
    bool ending;         /* leave as soon as the turn that runs has stopped ... */
    double ending_since; /* ... or two seconds after this (clock_seconds) */
    double stopping_since;
    enum exit_code code; /* once leaving or ending */
};

/* Where --ctx asks for more than there was in training: tokens of both. */
#define CONTEXT_NOTICE "a context of %zu tokens is more than the %zu the model was trained with"
/* One line about the built-in model that runs. The model is loaded. */
#define DEMO_NOTICE "built-in demo model (%.1f million parameters): try 'what can you do?'"

/* The warnings among the notes, and with --verbose the others too. */
void app_tell_notes(struct app *app, const struct bn_notes *notes);

/* Run until somebody leaves; gives the exit code. */
enum exit_code app_run(struct app *app);
/* End the loop soon. The first code counts, but an error replaces EXIT_DONE. */
void app_leave(struct app *app, enum exit_code code);

/* Go on with another painter of a terminal, soon. One that cannot run here is not taken. */
void app_change_ui(struct app *app, const struct ui_ops *ops);

/* Stop what runs, keep what was said, then leave. */
void app_end(struct app *app, enum exit_code code);
/* Write the conversation to last.json and to the session, where there are such. */
void app_keep(struct app *app);

/* Take up the snapshot of the session file with the next answer, where there is one. */
void app_use_snapshot(struct app *app, const char *session);
/* With --snapshot: write the one of this session file. Tells how large it is; the worker goes on
 * with it, and says how it went. */
void app_keep_snapshot(struct app *app, const char *session);

/* A line or pasted text that a person entered: a command or a message. */
enum entry {
    ENTRY_DONE,
    ENTRY_REFUSED, /* a command that cannot do it; said why */
    ENTRY_UNKNOWN, /* no command; what it may have meant was said */
    ENTRY_UNSENT,  /* a message that cannot be sent: belongs back into the editor */
};
enum entry app_enter(struct app *app, struct bn_str text);
/* A message, whatever it looks like, with what /file has staged. */
bool app_say(struct app *app, struct bn_str text);

#endif
