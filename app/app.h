/*
 * The program bitnet-chat as one struct: the open files, the conversation, the painter, and the
 * exit code. main.c calls the app_open functions, then app_run.
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
    struct bn_notes model_notes; /* about the weights; written by the worker until WORKER_LOADED */
    struct worker *worker;
    const struct ui_ops *const *painters; /* ends with NULL */
    struct ui ui;
    const struct ui_ops *next_ui; /* the painter to change to; NULL: no change */
    struct terminal_chat terminal;
    struct chat chat;
    struct store store;
    struct log_file log;
    int wake_read; /* read end of the wake pipe */

    struct bn_str first_prompt; /* first message of a terminal chat; empty if none or sent */
    bool is_interactive;        /* a user types: a terminal chat or PIPE_INTERACTIVE */
    bool attaches_files;        /* the files of --file belong to the next message of the chat */
    bool has_checked;           /* the sense check was queued */
    bool leaving;               /* end the loop now */
    bool ending;                /* end the loop when the turn stops, but within two seconds */
    double ending_since;        /* when `ending` was set (clock_seconds) */
    double stopping_since;      /* when a stop of the turn was first seen; 0: no stop requested */
    enum exit_code code;        /* valid once leaving or ending */
};

/* The app_open functions print their error to stderr and return the exit code; EXIT_DONE: none. */

/* Read the config file and the environment. Sets the option "model". Appends the words of the
 * command line that do not name the model to `prompt`. */
enum exit_code app_open_options(struct app *app, struct strbuf *prompt);
/* Open the model file, its vocabulary and its template. Takes milliseconds. */
enum exit_code app_open_files(struct app *app);
/* Start the worker, which begins to load the model, and open the conversation (--continue, --load,
 * --session, --system). app->ui.ops must be set. */
enum exit_code app_open_chat(struct app *app);
/* Choose the files of the chat, take their locks, and read the conversation to continue
 * (--continue, --load, --session). */
enum exit_code app_open_saved(struct app *app);
/* Close everything that is open, also after a failure. */
void app_close(struct app *app);

/* Show the warnings among the notes, and with --verbose the others too. */
void app_show_notes(struct app *app, const struct bn_notes *notes);

/* Run until the user leaves or something ends the program. Returns the exit code. */
enum exit_code app_run(struct app *app);
/* End the loop soon. The first code stays, but an error replaces EXIT_DONE. */
void app_leave(struct app *app, enum exit_code code);

/* Stop the running turn, write its files, then leave. Does nothing if the program already ends. */
void app_end(struct app *app, enum exit_code code);

/* Handle an event of the painter. */
void app_event(struct app *app, const struct ui_event *event);
/* Send the attached files and this text as a message, even if the text begins with a slash. False:
 * not sent, and the reason was shown. */
bool app_send_message(struct app *app, struct bn_str text);
/* Stop the answer because the user wants it. Lines that wait return to the editor. */
void app_stop_answer(struct app *app);
/* Whether the line is a command that may run during an answer, as in struct terminal_chat. */
bool app_runs_now(void *ud, struct bn_str line);
/* Tab completion in the line editor, as in struct terminal_chat; `ud` is a struct app. */
void app_complete(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out);

#endif
