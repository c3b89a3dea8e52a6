/*
 * The slash commands: one table for running, help and completion.
 *
 * A command runs on the main thread while no turn does, and says what it has to say through the
 * painter's notice.
 */
#ifndef APP_COMMANDS_H
#define APP_COMMANDS_H

#include "app/app.h"

enum command_args { /* what completes its argument */
                    ARGS_NONE,
                    ARGS_FREE,
                    ARGS_FILE,
                    ARGS_SETTING,
                    ARGS_COMMAND,
                    ARGS_SESSION,
};

struct command {
    const char *name;    /* without the slash */
    const char *aliases; /* words with blanks between, not shown by help; or NULL */
    const char *args;    /* "[N]", for help; "" */
    const char *brief;   /* one line */
    const char *help;    /* a paragraph with an example */
    enum command_args completes;
    /* False: it could not be done and the painter has been told. */
    bool (*run)(struct app *app, struct bn_str args);
};

extern const struct command command_table[]; /* ends with a NULL name */

/* By name, alias, or unambiguous beginning; NULL: none, and *near is one that looks like it, or
 * NULL. */
const struct command *command_find(struct bn_str name, const struct command **near);
enum entry command_run(struct app *app, struct bn_str name, struct bn_str args);

/* "/undo" wants a number: from 1 to max, `fallback` where there is no argument. False: told the
 * user. */
bool command_number(struct app *app, struct bn_str args, size_t fallback, size_t max, size_t *out);

/* The name of the setting that a person means: other programs' names for it are known. */
const char *command_setting(const char *said);

/* May a command make this file? One that is there only if "!" follows its name, which is taken off.
 * False: told the user. */
bool command_may_write(struct app *app, const char *name, struct bn_str *path);

bool cmd_help(struct app *app, struct bn_str args);
bool cmd_set(struct app *app, struct bn_str args);
bool cmd_system(struct app *app, struct bn_str args);
bool cmd_retry(struct app *app, struct bn_str args);
bool cmd_edit(struct app *app, struct bn_str args);
bool cmd_undo(struct app *app, struct bn_str args);
bool cmd_redo(struct app *app, struct bn_str args);
bool cmd_continue(struct app *app, struct bn_str args);
bool cmd_clear(struct app *app, struct bn_str args);
bool cmd_forget(struct app *app, struct bn_str args);
bool cmd_history(struct app *app, struct bn_str args);
bool cmd_find(struct app *app, struct bn_str args);
bool cmd_context(struct app *app, struct bn_str args);
bool cmd_file(struct app *app, struct bn_str args);
bool cmd_save(struct app *app, struct bn_str args);
bool cmd_load(struct app *app, struct bn_str args);
bool cmd_sessions(struct app *app, struct bn_str args);
bool cmd_export(struct app *app, struct bn_str args);
bool cmd_stats(struct app *app, struct bn_str args);
bool cmd_info(struct app *app, struct bn_str args);
bool cmd_tokens(struct app *app, struct bn_str args);
bool cmd_dump(struct app *app, struct bn_str args);
bool cmd_probs(struct app *app, struct bn_str args);
bool cmd_copy(struct app *app, struct bn_str args);
bool cmd_ui(struct app *app, struct bn_str args);
bool cmd_quit(struct app *app, struct bn_str args);

#endif
