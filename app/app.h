/*
 * The program bitnet-chat as one struct: what was opened, the conversation, the painter, and how
 * the program will end.
 */
#ifndef APP_APP_H
#define APP_APP_H

#include "app/chat/chat.h"
#include "app/common/log_file.h"
#include "app/options/chat_options.h"
#include "app/ui/terminal_chat.h"

struct app {
    struct options *options;
    struct open_model model;
    struct bn_notes model_notes; /* about the weights; the worker writes them until it has loaded */
    struct worker *worker;
    const struct ui_ops *const *painters; /* all there are; NULL ends the list */
    struct ui ui;
    const struct ui_ops *next_ui; /* change to this painter next; NULL: stay with this one */
    struct terminal_chat terminal;
    struct chat chat;
    struct store store;
    struct log_file log;
    int wake_read, wake_write;

    struct strbuf attachments;  /* files that go before the next message */
    struct bn_str first_prompt; /* the first message of a terminal chat; empty: none, or sent */
    bool is_interactive;        /* a person types: slash commands, the chat's notices */
    bool leaving;
    bool ending;         /* leave as soon as the running turn has stopped ... */
    double ending_since; /* ... or two seconds after this (clock_seconds) */
    double stopping_since;
    enum exit_code code; /* once leaving or ending */
};

/* Show the warnings among the notes, and with --verbose the others too. */
void app_show_notes(struct app *app, const struct bn_notes *notes);

/* Run until the user leaves or something ends the program. Returns the exit code. */
enum exit_code app_run(struct app *app);
/* End the loop soon. The first code stays, but an error replaces EXIT_DONE. */
void app_leave(struct app *app, enum exit_code code);

/* Stop what runs, write what was said to its files, then leave. */
void app_end(struct app *app, enum exit_code code);

/* Act on what the painter made of the input. */
void app_event(struct app *app, const struct ui_event *event);
/* Carry out a line that the user entered: a slash command or a message. */
enum entry app_enter(struct app *app, struct bn_str text);
/* Send a message, whatever it looks like, with the attached files. False: not sent, and the reason
 * was shown. */
bool app_say(struct app *app, struct bn_str text);
/* Tab completion in the line editor, as in struct terminal_chat; `ud` is a struct app. */
void app_complete(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out);

#endif
