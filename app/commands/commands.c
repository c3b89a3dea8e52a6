/*
 * The table of slash commands, how a name is found, and /help.
 */
#include "app/commands/commands.h"

#include "app/common/term_text.h"

#include <stdio.h>

const struct command command_table[] = {
    {"help", "?", "[COMMAND|keys]", "list the commands, or explain one",
     "/help lists the commands, /help retry explains /retry, /help keys lists the keys. Settings "
     "are explained by /set NAME. A line that begins with a blank or with // is never a command.",
     ARGS_COMMAND, cmd_help},
    {"set", NULL, "[NAME [VALUE|default]]", "show or change a setting",
     "/set lists all settings with where each value comes from; /set temp explains one; /set temp "
     "0.2 changes it for the next answers; /set temp default puts it back. /set temp=0.2 does "
     "too.",
     ARGS_SETTING, cmd_set},
    {"system", NULL, "[TEXT|@FILE|off]", "show, replace or remove the system message",
     "/system You are a pirate. The conversation stays; with the next message it is read again "
     "from its beginning.",
     ARGS_FREE, cmd_system},
    {"retry", "regen", "[NAME=VALUE ...]", "answer the last question anew",
     "/retry drops the last answer and makes another one with a new seed (unless --seed fixes "
     "it). Settings given with it hold for this answer only: /retry temp=1.2 top-k=0",
     ARGS_SETTING, cmd_retry},
    {"edit", NULL, "[N]", "change what you said and ask again",
     "/edit puts your last message back into the editor and takes it and its answer out of the "
     "conversation; /edit 2 does so with your second message and all that follows. /undo brings "
     "it back. Where nothing was said yet it opens $VISUAL or $EDITOR.",
     ARGS_FREE, cmd_edit},
    {"undo", NULL, "[N]", "take back the last exchange",
     "/undo removes your last message and its answer, /undo 3 the last three. After /clear, "
     "/forget, /edit or /load it brings back what they removed.",
     ARGS_FREE, cmd_undo},
    {"redo", NULL, "[N]", "bring back what /undo took", "/redo works until the next message.",
     ARGS_FREE, cmd_redo},
    {"continue", NULL, "", "go on with an answer that was cut off",
     "/continue extends the last answer, for instance after Ctrl-C or --max-tokens.", ARGS_NONE,
     cmd_continue},
    {"clear", "new reset", "", "begin a new conversation",
     "/clear forgets the conversation but keeps the system message. /undo brings it back.",
     ARGS_NONE, cmd_clear},
    {"forget", NULL, "[N]", "drop the oldest exchanges",
     "/forget drops your first message and its answer, /forget 3 the first three, to make room in "
     "the context.",
     ARGS_FREE, cmd_forget},
    {"history", NULL, "[N]", "show the last exchanges",
     "/history shows the whole conversation, /history 2 its last two exchanges.", ARGS_FREE,
     cmd_history},
    {"find", "search", "PATTERN", "search the conversation",
     "/find colou?r looks for a Perl-compatible regular expression and shows each line that "
     "matches with the number of its exchange; on the whole screen it goes to the first, n and N "
     "go to the next and the one before, Esc ends it. Small letters match capitals too.",
     ARGS_FREE, cmd_find},
    {"context", "usage", "", "what fills the context",
     "/context shows how many tokens the system message, your words, the answers and the template "
     "take, how many are free, and what would be dropped next.",
     ARGS_NONE, cmd_context},
    {"file", "read upload", "PATH ...", "attach text files to the next message",
     "/file notes.txt puts the file before your next message. @notes.txt within a message does "
     "the same.",
     ARGS_FILE, cmd_file},
    {"save", NULL, "[NAME|FILE][!]", "keep the conversation under a name",
     "/save trip keeps it as the session trip, which is written after every turn from then on; "
     "/save x.json or a path writes that file. What is there is replaced only if it is this "
     "conversation's own, or a ! follows the name.",
     ARGS_SAVED_CHAT, cmd_save},
    {"load", NULL, "NAME|FILE", "go on with a saved conversation",
     "/load trip takes up the session trip. /undo brings the present conversation back.",
     ARGS_SAVED_CHAT, cmd_load},
    {"sessions", "list", "", "list the saved conversations",
     "/sessions lists the names that /load takes.", ARGS_NONE, cmd_sessions},
    {"export", NULL, "FILE[!]", "write the conversation as .md, .txt or .jsonl",
     "/export talk.md writes Markdown, .txt plain text, .jsonl one message a line. An existing "
     "file is replaced only if a ! follows its name.",
     ARGS_FILE, cmd_export},
    {"copy", NULL, "[last|code [N]|all]", "put text into the clipboard",
     "/copy copies the last answer, /copy code the last block of code in it, /copy code 2 the "
     "second one, /copy all the conversation. It uses wl-copy, xclip, xsel or pbcopy, else asks "
     "the terminal.",
     ARGS_FREE, cmd_copy},
    {"stats", NULL, "[peak]", "numbers of the last answer and of this run",
     "/stats shows times and rates of loading, reading and generating, and memory. /stats peak "
     "measures for a moment what this device can do at all; from then on it is compared with "
     "that.",
     ARGS_FREE, cmd_stats},
    {"info", "show", "", "what model runs, and how",
     "/info shows the model's name and size, its template, the device and the context.", ARGS_NONE,
     cmd_info},
    {"tokens", NULL, "TEXT", "show the tokens of a text",
     "/tokens Hello world shows ids and pieces.", ARGS_FREE, cmd_tokens},
    {"dump", NULL, "[FILE[!]]", "the exact text that the model reads",
     "/dump shows what the model reads if you say nothing more, special tokens visible; /dump "
     "FILE writes it to a file, and /dump FILE! over one that is there.",
     ARGS_FILE, cmd_dump},
    {"probs", NULL, "[K|off]", "show the alternatives of each token",
     "/probs 3 shows, after each answer, its tokens with their probability and the three "
     "likeliest. Every logit is worked out for that, which costs some speed; what is answered is "
     "the same. /probs off ends it.",
     ARGS_FREE, cmd_probs},
    {"ui", NULL, "[inline|full]", "chat on the ordinary or on the whole screen",
     "/ui full shows the chat on the whole screen, with a transcript that scrolls; /ui inline "
     "goes back. F2 does both.",
     ARGS_FREE, cmd_ui},
    {"quit", "bye exit q", "", "leave", "/quit leaves, as Ctrl-D on an empty line does.", ARGS_NONE,
     cmd_quit},
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

static size_t common_prefix(const char *a, struct bn_str b)
{
    size_t n = 0;
    while (n < b.n_bytes && a[n] && a[n] == b.ptr[n])
        n++;
    return n;
}

const struct command *command_find(struct bn_str name, const struct command **near)
{
    const struct command *begins = NULL, *closest = NULL;
    size_t n_begin = 0, best = 0;
    *near = NULL;
    for (const struct command *c = command_table; c->name; c++) {
        const size_t n = common_prefix(c->name, name);
        if (bn_str_is(name, c->name) || has_alias(c, name))
            return c;
        if (n == name.n_bytes && n > 0) {
            begins = c;
            n_begin++;
        }
        if (n > best) {
            best = n;
            closest = c;
        }
    }
    *near = closest;
    return n_begin == 1 ? begins : NULL;
}

enum entry command_run(struct command_host *host, struct bn_str name, struct bn_str args)
{
    const struct command *near, *c = command_find(name, &near);
    const int n = name.n_bytes > 40 ? 40 : (int)name.n_bytes;
    if (c)
        return c->run(host, args) ? ENTRY_DONE : ENTRY_REFUSED;
    if (near)
        ui_notice(
            host->ui, TONE_ERROR,
            "unknown command /%.*s - did you mean /%s? Start with a space to send it as text.", n,
            name.ptr, near->name);
    else
        ui_notice(
            host->ui, TONE_ERROR,
            "unknown command /%.*s - /help lists them. Start with a space to send it as text.", n,
            name.ptr);
    return ENTRY_UNKNOWN;
}

static const char keys_help[] =
    "Enter                     send, even while a model loads; not during an answer\n"
    "Ctrl-J, Alt-Enter         new line; also \\ at the end of a line, \"\"\" ... \"\"\"\n"
    "Up, Down                  lines of a long message, then what was typed before\n"
    "Ctrl-R                    search what was typed before\n"
    "Tab                       complete commands, settings, files\n"
    "Ctrl-C                    stop the answer and keep it; at the prompt: clear it\n"
    "Esc                       stop the answer and keep it\n"
    "Ctrl-X Ctrl-E             write the message in $VISUAL or $EDITOR\n"
    "Ctrl-L                    clear the screen, also while an answer runs\n"
    "Ctrl-Z                    suspend\n"
    "F2                        ordinary or whole screen\n"
    "PgUp, PgDn                whole screen: scroll\n"
    "Ctrl-Home, Ctrl-End       whole screen: to the beginning, to the end\n"
    "n, N                      whole screen, after /find: next match, the one before\n"
    "Ctrl-D                    on an empty line: leave; not while an answer runs\n"
    "and every key of Readline; ~/.inputrc may say $if bitnet-chat";

static void list_commands(struct strbuf *out)
{
    for (const struct command *c = command_table; c->name; c++) {
        const int n = (int)(strlen(c->name) + strlen(c->args)) + (c->args[0] ? 1 : 0);
        strbuf_addf(out, "/%s%s%s%*s  %s\n", c->name, c->args[0] ? " " : "", c->args,
                    n < 27 ? 27 - n : 0, "", c->brief);
    }
    strbuf_add_text(out, "/help COMMAND says more; /help keys lists the keys");
}

static void list_places(const struct command_host *host, struct strbuf *out)
{
    if (host->history_path[0])
        strbuf_addf(out, "\nwhat you type is kept in %s", host->history_path);
    if (host->chat->store->last_path[0])
        strbuf_addf(out, "\nthe last conversation is kept in %s (--private keeps nothing)",
                    host->chat->store->last_path);
}

bool cmd_help(struct command_host *host, struct bn_str args)
{
    struct strbuf text = {0};
    bool ok = true;
    if (args.n_bytes > 0 && args.ptr[0] == '/')
        args = (struct bn_str){args.ptr + 1, args.n_bytes - 1};
    if (args.n_bytes == 0) {
        list_commands(&text);
        list_places(host, &text);
    } else if (bn_str_is(args, "keys")) {
        strbuf_add_text(&text, keys_help);
    } else {
        const struct command *near, *c = command_find(args, &near);
        ok = c != NULL;
        if (c)
            strbuf_addf(&text, "/%s %s: %s\n%s", c->name, c->args, c->brief, c->help);
    }
    if (ok)
        host->ui->ops->notice(host->ui, TONE_PLAIN, strbuf_str(&text));
    else
        ui_notice(host->ui, TONE_ERROR, "there is no command of that name; /help lists them");
    strbuf_finish(&text);
    return ok;
}

bool cmd_quit(struct command_host *host, struct bn_str args)
{
    (void)args; /* /quit leaves whatever follows it */
    host->leaves = true;
    return true;
}

bool cmd_ui(struct command_host *host, struct bn_str args)
{
    static const char *const painters[] = {"inline", "full"};
    if (!host->ui->ops->is_terminal) {
        ui_notice(host->ui, TONE_ERROR, "there is no terminal to chat on");
        return false;
    }
    if (args.n_bytes == 0) {
        ui_notice(host->ui, TONE_PLAIN, "ui = %s; /ui inline and /ui full change it",
                  host->ui->ops->name);
        return true;
    }
    for (size_t i = 0; i < sizeof(painters) / sizeof(painters[0]); i++) {
        if (bn_str_is(args, painters[i])) {
            host->painter = painters[i];
            return true;
        }
    }
    ui_notice(host->ui, TONE_ERROR, "expected inline or full");
    return false;
}
