/*
 * The program bitnet-chat as one struct: the open files, the conversation, the painter, and the
 * exit code. main.c calls app_load_options, app_open_model and app_open_chat, opens the painter,
 * and calls app_run. Main thread only.
 */
#ifndef APP_APP_H
#define APP_APP_H

#include "app/chat/chat.h"
#include "app/common/log_file.h"
#include "app/options/chat_options.h"
#include "app/ui/ui_terminal.h"

struct app {
    struct options *options;
    struct open_model model;     /* the file without its weights */
    struct bn_notes model_notes; /* about the weights; see struct worker_config */
    struct worker *worker;
    const struct ui_ops *const *painters; /* all painters, then NULL */
    struct ui ui;                         /* the chosen painter: ui.ops is NULL before the choice */
    const struct ui_ops *next_painter;    /* the painter to change to; NULL: no change */
    struct ui_terminal terminal;          /* state that the painters of a terminal share */
    struct chat chat;
    struct store store; /* the files of the chat */
    struct log_file log;
    int wake_read; /* read end of the wake pipe */

    /* First message of a terminal chat, from the command line; empty if none or sent. main.c owns
     * the text. */
    struct bn_str first_prompt;
    bool has_prompt;      /* a prompt is on the command line; it may be empty */
    bool is_interactive;  /* a user types: a terminal chat, or PIPE_INTERACTIVE (ui_pipe.h) */
    bool attaches_files;  /* the files of --file are attached to the first message */
    bool is_check_queued; /* the sense check was queued at least once */
    bool has_refused_end; /* since the last message the program has refused to end, because the chat
                             is not saved */
    bool ends_now;        /* end the event loop now */
    bool ends_after_turn; /* end the event loop when the turn stops, or after two seconds */
    double ends_after_turn_since; /* clock_seconds when `ends_after_turn` was set */
    double stopping_since;        /* clock_seconds when the loop first saw a requested stop; or 0 */
    /* The input has ended, or /quit was entered. Then `code` may come from a failure that
     * --keep-going has passed over, and the last jobs still run. */
    bool is_script_done;
    enum exit_code code; /* valid if `ends_now` or `ends_after_turn` */
};

/* The app_open functions print an error to stderr and return its exit code, or EXIT_DONE. Only if
 * the user declines a copy of a saved chat, or ends the input at this question, they return
 * EXIT_FILE without an error. */

/* Call this after options_parse. Reads the config file and the environment. Without --model, if the
 * first word of the command line names a model or looks like a path, it becomes the option "model".
 * Appends the text of --prompt and the other words to `prompt`, which the caller frees. */
enum exit_code app_load_options(struct app *app, struct strbuf *prompt);
/* Open the model file, its vocabulary and, without --raw, its template. The weights are not loaded
 * yet. */
enum exit_code app_open_model(struct app *app);
/* Open the log and the conversation (--continue, --load, --session, --system), then start the
 * worker, which begins to load the weights. app->ui.ops must be set. */
enum exit_code app_open_chat(struct app *app);
/* A step of app_open_chat. Choose the files of the chat, take their locks, and read the
 * conversation to continue (--continue, --load, --session). */
enum exit_code app_open_saved(struct app *app);
/* Close everything that is open, also after a failure. The painter and the wake pipe stay: the
 * caller has closed the painter, and signal handlers use the pipe until the program ends. */
void app_close(struct app *app);

/* Run the event loop until app_end_now or app_end_after_turn ends it. Then finish the jobs of the
 * worker, unless the exit code is an error or a turn still runs, and close the files of the chat in
 * any case (chat_close_files). Returns the exit code. */
enum exit_code app_run(struct app *app);
/* End the event loop without waiting for a turn. The code of the first call of app_end_now or
 * app_end_after_turn counts, but an error in a later call of app_end_now replaces EXIT_DONE. */
void app_end_now(struct app *app, enum exit_code code);
/* Stop the running turn, and return. The event loop ends when the turn has stopped and its answer
 * is written to the files of the chat, but at the latest after two seconds; at once if no turn
 * runs. Does nothing if `ends_after_turn` or `ends_now` is set. */
void app_end_after_turn(struct app *app, enum exit_code code);

/* Handle an event that the painter has returned. */
void app_event(struct app *app, const struct ui_event *event);
/* Send the attached files, those of @paths in the text, and this text as a message, even if the
 * text begins with a slash. The chat must not be busy. After success no file is attached. False:
 * not sent, the reason was shown, and the files that were attached before stay. */
bool app_send_message(struct app *app, struct bn_str text);
/* The user stops the answer. Lines that wait for its end are not sent (ui_ops.unqueue_all). */
void app_stop_answer(struct app *app);
/* Whether the line is a command that may run during an answer, as in struct ui_terminal. `ud` is
 * not used. */
bool app_runs_now(void *ud, struct bn_str line);
/* Tab completion in the line editor, as in struct ui_terminal; `ud` is a struct app. */
void app_complete(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out);

#endif
