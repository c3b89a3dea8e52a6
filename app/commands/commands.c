/*
 * The table of slash commands, the search for a name, and /help.
 */
#include "app/commands/commands.h"

#include "app/common/term_text.h"
#include "app/options/near_name.h"
#include "engine/base/size.h"

#include <stdio.h>

const struct command command_table[] = {
    {"help", "?", "[COMMAND|keys]", "list the commands, or explain one",
     "/help lists the commands, /help retry explains /retry, /help keys lists the keys. /set NAME "
     "explains a setting. A line that begins with a space or with // is never a command.",
     ARGS_COMMAND, cmd_help},
    {"set", NULL, "[NAME [VALUE|default]]", "show or change a setting",
     "/set lists all settings with the source of each value. /set temp explains one setting. "
     "/set temp 0.2 or /set temp=0.2 changes it for the next answers. /set temp default restores "
     "the value of the model file or its family, or else the default of the program. /set stop "
     "TEXT and /set logit-bias ID=X add a value, /set stop off removes all. A value may be in "
     "double quotes, such as a text with blanks at its ends.",
     ARGS_SETTING, cmd_set},
    {"system", NULL, "[TEXT|@FILE|off]", "show, replace or remove the system message",
     "/system You are a pirate. The conversation stays. With the next message the model reads it "
     "again from the beginning.",
     ARGS_TEXT_FILE, cmd_system},
    {"retry", "regen", "[NAME=VALUE ...]", "answer the last question again",
     "/retry replaces the last answer by one with a new seed (unless --seed fixes it). Settings "
     "after the command apply to this answer only: /retry temp=1.2 top-k=0. /undo restores the "
     "earlier answer.",
     ARGS_ASSIGNMENTS, cmd_retry},
    {"edit", NULL, "[N]", "change your message and send it again",
     "/edit removes your last message and its answer from the conversation and puts the message "
     "into the editor. /edit 2 does this with your second message and removes everything after "
     "it. /undo restores them, and the saved chat keeps them until the message is sent. If the "
     "conversation is empty, /edit opens $VISUAL or $EDITOR.",
     ARGS_FREE, cmd_edit},
    {"undo", NULL, "[N]", "remove the last turn",
     "/undo removes your last message and its answer, /undo 3 the last three. Directly after "
     "/retry, /edit, /clear, /forget or /load it restores the conversation as it was before.",
     ARGS_FREE, cmd_undo},
    {"redo", NULL, "[N]", "restore what /undo removed", "/redo works until the next answer.",
     ARGS_FREE, cmd_redo},
    {"continue", NULL, "", "continue an answer that was cut off",
     "/continue extends the last answer, for instance after Ctrl-C or --max-tokens.", ARGS_NONE,
     cmd_continue},
    {"clear", "new reset", "", "start a new conversation",
     "/clear removes all messages except the system message. /undo restores them.", ARGS_NONE,
     cmd_clear},
    {"forget", NULL, "[N]", "remove the oldest turns",
     "/forget removes your first message and its answer, /forget 3 the first three, to free space "
     "in the context.",
     ARGS_FREE, cmd_forget},
    {"history", NULL, "[N]", "show the last turns",
     "/history shows the whole conversation, /history 2 its last two turns. Of a thought and of "
     "attached files it shows only the size.",
     ARGS_FREE, cmd_history},
    {"find", "search", "PATTERN", "search the conversation",
     "/find colou?r searches for a Perl-compatible regular expression and shows each matching "
     "line with the number of its turn; of a long line only the text around each match. Thoughts "
     "are searched only if they are shown. The full screen jumps to the first match and marks it; "
     "n and N go to the next and the previous match, Esc ends the search. Small letters match "
     "capitals too.",
     ARGS_FREE, cmd_find},
    {"context", "usage", "", "show what fills the context",
     "/context shows how many tokens the system message, your messages, the answers and the "
     "template use, how many are free, and which turn would be dropped next.",
     ARGS_NONE, cmd_context},
    {"file", "read upload", "[PATH ...|off [N]]", "attach text files to the next message",
     "/file notes.txt puts the file before your next message. @notes.txt within a message does "
     "the same. A path with blanks is quoted or has backslashes: /file 'my notes.txt'. /file lists "
     "the files for the next message, /file off removes them, /file off 2 the second one.",
     ARGS_FILES, cmd_file},
    {"save", NULL, "[NAME|FILE][!]", "save the conversation",
     "/save trip saves it under the name trip, and again after every turn. With x.json or a path "
     "it is saved in that file. A file of another conversation is replaced only if ! follows the "
     "name, and never by an empty conversation.",
     ARGS_SAVED_CHAT, cmd_save},
    {"load", NULL, "NAME|FILE[!]", "load a saved conversation",
     "/load trip continues the conversation that was saved as trip. /undo restores the present "
     "one. If another chat uses trip, /load trip! continues on a copy.",
     ARGS_SAVED_CHAT, cmd_load},
    {"sessions", "list", "", "list the saved conversations",
     "/sessions lists the names for /load. At a terminal it also shows the time of the last "
     "change, the number of turns and the first message of each; a star marks this conversation.",
     ARGS_NONE, cmd_sessions},
    {"export", NULL, "FILE[!]", "write the conversation as .md, .txt or .jsonl",
     "/export talk.md writes Markdown, .txt plain text, .jsonl one message per line. Thoughts are "
     "left out, except in .jsonl, which has them in the key \"thought\". An existing file is "
     "replaced only if ! follows its name.",
     ARGS_FILE, cmd_export},
    {"copy", NULL, "[last|code [N]|all]", "copy text to the clipboard",
     "/copy copies the last answer, /copy code its last code block, /copy code 2 the second one, "
     "/copy all the conversation; thoughts are left out. It uses wl-copy, xclip, xsel or pbcopy. "
     "Without these programs it sends the text to the clipboard of the terminal.",
     ARGS_WORDS, cmd_copy},
    {"stats", NULL, "[peak]", "statistics of the last answer and of this run",
     "/stats shows times and rates of loading, reading and generating, and the memory in use. "
     "/stats peak measures the limits of this device; /stats then compares the speed with them.",
     ARGS_WORDS, cmd_stats},
    {"info", "show", "", "show the model, the device and the context",
     "/info shows the model's name and size, its template, the device and the context.", ARGS_NONE,
     cmd_info},
    {"tokens", NULL, "TEXT", "show the tokens of a text",
     "/tokens Hello world shows the id and the text of each token.", ARGS_FREE, cmd_tokens},
    {"dump", NULL, "[FILE[!]]", "show the exact text that the model reads",
     "/dump shows the conversation with the special tokens of the template. /dump FILE writes it "
     "to a file; /dump FILE! replaces an existing file.",
     ARGS_FILE, cmd_dump},
    {"probs", NULL, "[K|off]", "show the alternatives of each token",
     "/probs 3 shows, after each answer, the probability of each token and the three most likely "
     "tokens. This makes answers slower because all logits are computed, but it does not change "
     "them. /probs off ends it.",
     ARGS_WORDS, cmd_probs},
    {"ui", NULL, "[inline|full]", "choose the ordinary or the whole screen",
     "/ui full shows the chat on the full screen, with a transcript that scrolls. /ui inline "
     "returns to the ordinary screen. F2 switches between them.",
     ARGS_WORDS, cmd_ui},
    {"quit", "bye exit q", "", "end the program",
     "/quit ends the program, as Ctrl-D on an empty line does. If the conversation can be saved "
     "neither under a name nor as the last conversation, at a terminal only the second /quit or "
     "Ctrl-D ends the program.",
     ARGS_NONE, cmd_quit},
    {0},
};

static bool has_alias(const struct command *c, struct bn_str name)
{
    for (const char *word = c->aliases; word && *word;) {
        const size_t n = strcspn(word, " ");
        if (bn_str_equal(name, (struct bn_str){word, n}))
            return true;
        word += n + (word[n] == ' ');
    }
    return false;
}

const struct command *command_named(struct bn_str name)
{
    for (const struct command *c = command_table; c->name; c++)
        if (bn_str_is(name, c->name) || has_alias(c, name))
            return c;
    return NULL;
}

/* The number of commands whose names begin with `begin`; 0 if it is empty. *first becomes the first
 * of them, and is not changed if there is none. */
static size_t count_matches(struct bn_str begin, const struct command **first)
{
    size_t n = 0;
    for (const struct command *c = command_table; c->name && begin.n_bytes > 0; c++)
        if (bn_str_starts(bn_str_of(c->name), begin) && n++ == 0)
            *first = c;
    return n;
}

const struct command *command_find(struct bn_str name)
{
    const struct command *named = command_named(name), *begins = NULL;
    return named ? named : count_matches(name, &begins) == 1 ? begins : NULL;
}

#define NAME_BYTES 48 /* longer than every name of a command or an option, with its 0 */

/* Copy a typed name in small letters. A longer name is cut, so it matches none. */
static void lower_name(struct bn_str name, char out[NAME_BYTES])
{
    const size_t n = size_min(name.n_bytes, NAME_BYTES - 1);
    for (size_t i = 0; i < n; i++)
        out[i] = name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? (char)(name.ptr[i] + 32) : name.ptr[i];
    out[n] = '\0';
}

/* The command whose name is the nearest to a mistyped one, or NULL. */
static const char *near_command(struct bn_str name)
{
    char lower[NAME_BYTES];
    lower_name(name, lower);
    const struct command *named = command_named(bn_str_of(lower)); /* also by an alias */
    struct near_name near = {.typed = bn_str_of(lower)};
    if (named)
        return named->name;
    for (const struct command *c = command_table; c->name; c++)
        (void)near_name_add(&near, c->name);
    return near.best;
}

/* Run a command. If memory ran out for a text, a part of the result is missing, so this fails. A
 * command without arguments refuses one, because the user expects it to have an effect. */
static bool run(struct command_host *host, const struct command *c, struct bn_str args)
{
    const size_t n_failed = strbuf_n_failed();
    if (args.n_bytes > 0 && !c->args[0]) {
        ui_notice(host->ui, TONE_ERROR, "usage: /%s, without an argument; nothing was done",
                  c->name);
        return false;
    }
    if (!c->run(host, args))
        return false;
    if (strbuf_n_failed() == n_failed)
        return true;
    ui_notice(host->ui, TONE_ERROR, "out of memory: the result of /%s is incomplete", c->name);
    return false;
}

/* Commands that change neither the conversation nor a setting, so their order among messages does
 * not matter. With an argument, those of the second list may set, attach, measure or write a file,
 * so they wait for the end of the answer. */
static const char *const shows[] = {"help", "history", "find", "context", "sessions",
                                    "info", "tokens",  "ui",   NULL};
static const char *const shows_if_bare[] = {"set", "stats", "dump", "file", NULL};

bool command_runs_now(struct bn_str name, struct bn_str args)
{
    const struct command *c = command_find(name);
    return c && (options_list_has(shows, c->name) ||
                 (args.n_bytes == 0 && options_list_has(shows_if_bare, c->name)));
}

/* Show as an error that the beginning `begin` of a name is not unique, with the names and then
 * `hint`. False: at most one name begins so. */
static bool show_matches(struct command_host *host, struct bn_str begin, const char *hint)
{
    const struct command *first = NULL;
    const size_t n = count_matches(begin, &first);
    struct strbuf text = {0};
    size_t n_listed = 0;
    if (n < 2)
        return false;
    strbuf_addf(&text, "/%.*s may be ", (int)begin.n_bytes, begin.ptr); /* shorter than a name */
    for (const struct command *c = first; n_listed < n; c++)
        if (bn_str_starts(bn_str_of(c->name), begin)) {
            const char *between = n_listed + 1 < n ? ", " : " or ";
            strbuf_addf(&text, "%s/%s", n_listed > 0 ? between : "", c->name);
            n_listed++;
        }
    strbuf_add_text(&text, hint);
    host->ui->ops->notice(host->ui, TONE_ERROR, strbuf_str(&text));
    strbuf_finish(&text);
    return true;
}

/* The setting or other option of this name, or NULL. A command of this name, in capitals, comes
 * first: see near_command. */
static const struct option *option_named(const struct command_host *host, struct bn_str name)
{
    char lower[NAME_BYTES];
    lower_name(name, lower);
    if (command_named(bn_str_of(lower)))
        return NULL;
    return options_find(host->options, option_translate_name(lower));
}

/* If the unknown command is the name of a setting or of another option, append to `hint` how it is
 * set. */
static bool hint_setting(const struct command_host *host, struct bn_str name, struct bn_str args,
                         struct strbuf *hint)
{
    const struct option *row = option_named(host, name);
    if (!row)
        return false;
    if (row->places & OPTION_BY_SET)
        strbuf_addf(hint, "did you mean /set %s", row->name);
    else
        strbuf_addf(hint, "it is an option of the command line: --%s", row->name);
    if (args.n_bytes > 0) {
        strbuf_add_char(hint, ' ');
        term_text_brief(args, COMMAND_BRIEF_COLUMNS, hint);
    }
    strbuf_add_char(hint, row->places & OPTION_BY_SET ? '?' : '.');
    return true;
}

enum entry_result command_run(struct command_host *host, struct bn_str name, struct bn_str args)
{
    const struct command *c = command_find(name);
    const int n = name.n_bytes > 40 ? 40 : (int)name.n_bytes; /* the notice cuts a longer name */
    struct strbuf hint = {0};
    host->failure = ENTRY_FAILED;
    if (c)
        return run(host, c, args) ? ENTRY_DONE : host->failure;
    if (show_matches(host, name, ". Start with a space to send it as text."))
        return ENTRY_UNKNOWN;
    if (!hint_setting(host, name, args, &hint)) {
        const char *near = near_command(name);
        strbuf_addf(&hint, "%s%s%s", near ? "did you mean /" : "/help lists them.",
                    near ? near : "", near ? "?" : "");
    }
    ui_notice(host->ui, TONE_ERROR,
              "unknown command /%.*s - %s Start with a space to send it as text.", n, name.ptr,
              strbuf_text(&hint));
    strbuf_finish(&hint);
    return ENTRY_UNKNOWN;
}

static const char keys_help[] =
    "Enter                     send; during an answer the line waits for its end\n"
    "Ctrl-J, Alt-Enter         new line; also \\ at the end of a line, \"\"\" ... \"\"\"\n"
    "Up, Down                  lines of a long message, then earlier input\n"
    "                          Up, nothing typed: take back the last waiting line\n"
    "Ctrl-R                    search earlier input\n"
    "Tab                       complete commands, settings, files\n"
    "Ctrl-C                    stop the answer and keep it; at the prompt: clear it\n"
    "                          if the answer does not stop: again, to leave\n"
    "Esc                       stop the answer and keep it; send no waiting line\n"
    "Ctrl-X Ctrl-E             write the message in $VISUAL or $EDITOR\n"
    "Ctrl-L                    clear the screen, also while an answer runs\n"
    "Ctrl-Z                    suspend\n"
    "F2                        ordinary or whole screen\n"
    "PgUp, PgDn                whole screen: scroll\n"
    "Ctrl-Home, Ctrl-End       whole screen: go to the beginning, to the end\n"
    "n, N                      whole screen, after /find: next match, previous match\n"
    "Ctrl-D                    on an empty line: leave; not while an answer runs\n"
    "and the other keys of Readline, without keyboard macros; ~/.inputrc can use\n"
    "$if bitnet-chat";

static void list_commands(struct strbuf *out)
{
    for (const struct command *c = command_table; c->name; c++) {
        const int n = (int)(strlen(c->name) + strlen(c->args)) + (c->args[0] ? 1 : 0);
        /* 27 columns: more than the longest command with its arguments. */
        strbuf_addf(out, "/%s%s%s%*s  %s\n", c->name, c->args[0] ? " " : "", c->args,
                    n < 27 ? 27 - n : 0, "", c->brief);
    }
    strbuf_add_text(out, "/help COMMAND explains one; /help keys lists the keys");
}

static void list_paths(const struct command_host *host, struct strbuf *out)
{
    if (host->history_path[0])
        strbuf_addf(out, "\nyour input is saved in %s", host->history_path);
    if (host->chat->store->last.path[0])
        strbuf_addf(out, "\nthe last conversation is saved in %s (not with --private)",
                    host->chat->store->last.path);
}

static void show_no_command(struct command_host *host, struct bn_str name)
{
    const char *near = near_command(name);
    const struct option *row = option_named(host, name);
    if (row)
        ui_notice(host->ui, TONE_ERROR, "%s is an option, not a command; /set %s explains it",
                  row->name, row->name);
    else if (near)
        ui_notice(host->ui, TONE_ERROR, "there is no command of that name - did you mean /%s?",
                  near);
    else
        ui_notice(host->ui, TONE_ERROR, "there is no command of that name; /help lists them");
}

bool cmd_help(struct command_host *host, struct bn_str args)
{
    struct strbuf text = {0};
    bool ok = true;
    if (args.n_bytes > 0 && args.ptr[0] == '/')
        args = (struct bn_str){args.ptr + 1, args.n_bytes - 1};
    if (args.n_bytes == 0) {
        list_commands(&text);
        list_paths(host, &text);
    } else if (bn_str_is(args, "keys")) {
        strbuf_add_text(&text, keys_help);
    } else {
        const struct command *c = command_find(args);
        ok = c != NULL;
        if (c)
            strbuf_addf(&text, "/%s%s%s: %s\n%s", c->name, c->args[0] ? " " : "", c->args, c->brief,
                        c->help);
    }
    if (ok)
        host->ui->ops->notice(host->ui, TONE_TABLE, strbuf_str(&text));
    else if (!show_matches(host, args, ""))
        show_no_command(host, args);
    strbuf_finish(&text);
    return ok;
}

bool cmd_quit(struct command_host *host, struct bn_str args)
{
    (void)args; /* no arguments */
    host->ends_program = true;
    return true;
}

bool cmd_ui(struct command_host *host, struct bn_str args)
{
    static const char *const painters[] = {"inline", "full"};
    if (!host->ui->ops->is_terminal)
        return command_fail(host, "/ui needs a terminal");
    if (args.n_bytes == 0) {
        ui_notice(host->ui, TONE_PLAIN, "ui = %s; /ui inline and /ui full change it",
                  host->ui->ops->name);
        return true;
    }
    for (size_t i = 0; i < sizeof(painters) / sizeof(painters[0]); i++) {
        if (bn_str_is(args, painters[i])) {
            if (strcmp(painters[i], host->ui->ops->name) != 0)
                host->painter = painters[i];
            return true;
        }
    }
    return command_fail(host, "expected inline or full");
}
