/*
 * The slash commands. One table serves running, help and completion.
 *
 * A command runs on the main thread while no turn runs, except those of command_runs_now. It shows
 * its result and its errors as notices.
 */
#ifndef APP_COMMANDS_H
#define APP_COMMANDS_H

#include "app/chat/chat.h"
#include "app/terminal/line/line_edit.h"

#define COMMAND_BRIEF_COLUMNS 60 /* a message in a notice is cut to this width */

/* What a command may use and change. After the command, command_run and its caller read the fields
 * behind `is_interactive`. */
struct command_host {
    struct options *options;
    struct chat *chat;
    struct ui *ui;
    const char *history_path; /* the file of the input history; "" if it is not saved */
    bool is_interactive;      /* a user types the commands (not a script) */

    bool ends_program;         /* after this command */
    bool write_failed;         /* the conversation could not be written to its files */
    const char *painter;       /* name of the painter to change to; NULL: no change */
    enum entry_result failure; /* the result of the command if it fails */
};

/* What Tab completes in the arguments. */
enum command_args {
    ARGS_NONE,  /* there is no argument */
    ARGS_FREE,  /* nothing: any text or a number */
    ARGS_WORDS, /* one of the words in small letters of command.args */
    ARGS_FILE,
    ARGS_FILES,
    ARGS_TEXT_FILE,   /* the name of a file if the argument begins with "@" */
    ARGS_SETTING,     /* NAME VALUE */
    ARGS_ASSIGNMENTS, /* NAME=VALUE ... */
    ARGS_COMMAND,     /* the name of a command, or as ARGS_WORDS */
    ARGS_SAVED_CHAT,  /* a name or, with a slash, a file */
};

struct command {
    const char *name;    /* without the slash */
    const char *aliases; /* separated by blanks, not shown by /help; or NULL */
    const char *args;    /* for /help, such as "[N]"; "": command_run refuses an argument */
    const char *brief;   /* one line */
    const char *help;    /* a paragraph with an example */
    enum command_args completes;
    /* False: the command failed, and the reason was shown. */
    bool (*run)(struct command_host *host, struct bn_str args);
};

extern const struct command command_table[]; /* ends with a NULL name */

/* Find a command by its name, an alias, or an unambiguous beginning of its name; else NULL. */
const struct command *command_find(struct bn_str name);
/* The same for a whole name or alias only. */
const struct command *command_named(struct bn_str name);
/* Whether this command may run during an answer. Such commands change neither the conversation nor
 * a setting. */
bool command_runs_now(struct bn_str name, struct bn_str args);
/* Find a command and run it. ENTRY_UNKNOWN: there is no such command, or `name` is the beginning of
 * several; these were shown, or else an option of this name, or the nearest command. If the command
 * fails, the result is host->failure: ENTRY_FAILED, unless the command has set a more exact one. */
enum entry_result command_run(struct command_host *host, struct bn_str name, struct bn_str args);

/* Show the reason as an error. Returns false. */
bool command_fail(struct command_host *host, const char *reason);
/* Show the error. Returns false. Sets host->failure to ENTRY_TOO_LONG for BN_ECONTEXT. */
bool command_fail_error(struct command_host *host, const struct bn_error *err);
/* Set host->failure to ENTRY_NO_FILE, for a command that has shown an error about a file. Returns
 * false. */
bool command_set_file_failed(struct command_host *host);
/* command_fail_error for a function that reads or writes a file. For any error except BN_EARG,
 * BN_ECONTEXT and BN_ENOMEM it also calls command_set_file_failed. */
bool command_fail_file(struct command_host *host, const struct bn_error *err);

/* The number of tokens of a text by itself. In a prompt the tokens at both ends may differ, because
 * the text is joined with that of the template. 0 if the tokenizer fails. */
size_t command_count_tokens(const struct command_host *host, struct bn_str text);

/* Read a numeric argument such as that of /undo: a number from 1 to max. Without an argument, *out
 * is `fallback`, which may be above max. A max above INT32_MAX means that there is no limit: then a
 * larger number becomes max. max is at most SIZE_MAX / 100, so that ten times max does not
 * overflow. False: the argument is not such a number, and the reason was shown. */
bool command_number(struct command_host *host, struct bn_str args, size_t fallback, size_t max,
                    size_t *out);

/* Set a setting of `o` to the text of a user. options_find must find the name. "default" resets it.
 * "off" removes all values of an option that can have several, "random" the seed. Any text may be
 * in double quotes (option_unquote), and is no such word then. BN_EARG: the value names a token
 * that the vocabulary does not have. Errors of options_set and options_reset. */
bool command_assign(const struct command_host *host, struct options *o, const char *name,
                    const char *value, struct bn_error *err);

/* Append the path of the one file that an argument names: the argument itself if a file has this
 * path, else that of input_one_path. */
void command_path(struct bn_str arg, struct strbuf *out);

/* Remove a "!" that ends an argument, unless a backslash quotes it. Returns whether there was one.
 * It means: replace a file that exists or, for /load, continue on a copy if another program uses
 * the saved chat. */
bool command_cut_bang(struct bn_str *args);

/* Whether the file `path` may be written. False: it is empty or a directory, its directory does not
 * exist (store_has_folder), or it exists and `args`, the argument of `command` that named it, has
 * no "!" for command_cut_bang; the reason was shown. */
bool command_may_write(struct command_host *host, const char *command, struct bn_str args,
                       const char *path);

/* Write a text to the file of the user that `args` names, with a "!" if it may be replaced.
 * `command`, such as "export", is for the error message. Shows the result. False: not written. */
bool command_export_text(struct command_host *host, const char *command, struct bn_str args,
                         const struct strbuf *text);

/* Write the conversation to its files after a command has changed it. A failure was shown, and sets
 * host->write_failed. */
void command_save_chat(struct command_host *host);

/* Tab completion, as a line_host function; `ud` is a struct command_host. */
void command_complete(void *ud, struct bn_str before, struct bn_str word, struct line_choices *out);

/* command.run of each command. */
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
