/*
 * The slash commands: one table for running, help and completion.
 *
 * A command runs on the main thread while no turn does, and says what it has to say through the
 * painter's notice.
 */
#ifndef APP_COMMANDS_H
#define APP_COMMANDS_H

#include "app/chat/chat.h"
#include "app/terminal/line/line_edit.h"

/* What a command may use and change. The event loop fills it in, and reads the last three fields
 * after the command. */
struct command_host {
    struct options *options;
    struct chat *chat;
    struct ui *ui;
    struct strbuf *attachments; /* files that go before the next message */
    const char *history_path;   /* of the input history, "" for none */
    bool is_interactive;        /* a person types the commands */

    bool leaves;         /* end the program */
    bool write_failed;   /* the conversation could not be written to its files */
    const char *painter; /* go on with the painter of this name; NULL: the same */
};

enum command_args { /* what completes its argument */
                    ARGS_NONE,
                    ARGS_FREE,
                    ARGS_FILE,
                    ARGS_SETTING,
                    ARGS_COMMAND,
                    ARGS_SAVED_CHAT,
};

struct command {
    const char *name;    /* without the slash */
    const char *aliases; /* words with blanks between, not shown by help; or NULL */
    const char *args;    /* "[N]", for help; "" */
    const char *brief;   /* one line */
    const char *help;    /* a paragraph with an example */
    enum command_args completes;
    /* False: it could not be done and the painter has been told. */
    bool (*run)(struct command_host *host, struct bn_str args);
};

extern const struct command command_table[]; /* ends with a NULL name */

/* By name, alias, or unambiguous beginning; NULL: none, and *near is one that looks like it, or
 * NULL. */
const struct command *command_find(struct bn_str name, const struct command **near);
enum entry command_run(struct command_host *host, struct bn_str name, struct bn_str args);

/* "/undo" wants a number: from 1 to max, `fallback` where there is no argument. False: told the
 * user. */
bool command_number(struct command_host *host, struct bn_str args, size_t fallback, size_t max,
                    size_t *out);

/* The name of the setting that a person means: other programs' names for it are known. */
const char *command_setting(const char *said);

/* May a command make this file? One that is there only if "!" follows its name, which is taken off.
 * False: told the user. */
bool command_may_write(struct command_host *host, const char *name, struct bn_str *path);

/* Write the conversation to its files after a command has changed it. */
void command_write_files(struct command_host *host);

/* Tab completion, as a line_host function; `ud` is a struct command_host. */
void command_complete(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out);

bool cmd_help(struct command_host *host, struct bn_str args);
bool cmd_set(struct command_host *host, struct bn_str args);
bool cmd_system(struct command_host *host, struct bn_str args);
bool cmd_retry(struct command_host *host, struct bn_str args);
bool cmd_edit(struct command_host *host, struct bn_str args);
bool cmd_undo(struct command_host *host, struct bn_str args);
bool cmd_redo(struct command_host *host, struct bn_str args);
bool cmd_continue(struct command_host *host, struct bn_str args);
bool cmd_clear(struct command_host *host, struct bn_str args);
bool cmd_forget(struct command_host *host, struct bn_str args);
bool cmd_history(struct command_host *host, struct bn_str args);
bool cmd_find(struct command_host *host, struct bn_str args);
bool cmd_context(struct command_host *host, struct bn_str args);
bool cmd_file(struct command_host *host, struct bn_str args);
bool cmd_save(struct command_host *host, struct bn_str args);
bool cmd_load(struct command_host *host, struct bn_str args);
bool cmd_sessions(struct command_host *host, struct bn_str args);
bool cmd_export(struct command_host *host, struct bn_str args);
bool cmd_stats(struct command_host *host, struct bn_str args);
bool cmd_info(struct command_host *host, struct bn_str args);
bool cmd_tokens(struct command_host *host, struct bn_str args);
bool cmd_dump(struct command_host *host, struct bn_str args);
bool cmd_probs(struct command_host *host, struct bn_str args);
bool cmd_copy(struct command_host *host, struct bn_str args);
bool cmd_ui(struct command_host *host, struct bn_str args);
bool cmd_quit(struct command_host *host, struct bn_str args);

#endif
