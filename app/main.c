/*
 * bitnet-chat: parses the arguments, chooses the painter and starts the event loop. Only main calls
 * exit.
 */
#include "app/app.h"
#include "app/batch/batch.h"
#include "app/common/env.h"
#include "app/common/file/mapped_file.h"
#include "app/common/input_text.h"
#include "app/terminal/signals.h"
#include "app/ui/ui_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct ui_ops *const painters[] = {&ui_inline_ops, &ui_full_ops, &ui_pipe_ops, NULL};

static const char usage[] =
    "usage: bitnet-chat [OPTIONS] [MODEL.gguf] [PROMPT...]\n"
    "\n"
    "Chat with a ternary language model: in a terminal, or one answer for a PROMPT or piped text.\n"
    "Try bitnet-chat; bitnet-chat model.gguf; bitnet-chat model.gguf \"why is the sky blue?\"\n";

static const char usage_end[] =
    "\n"
    "Environment: BITNET_CHAT_MODEL (the model), BITNET_CHAT_CONFIG (the config file),\n"
    "BITNET_CHAT_PRIVATE=1 (as --private), BITNET_CHAT_THREADS, OMP_NUM_THREADS, NO_COLOR,\n"
    "CLICOLOR_FORCE, VISUAL, EDITOR.\n";

/* Print the paths of config file, input history and last conversation; nothing if a directory is
 * unknown. */
static void print_file_paths(void)
{
    char config[PATH_BYTES], state[PATH_BYTES];
    struct bn_error no_home;
    if (path_of(PATH_CONFIG, "config", config, &no_home) &&
        path_of(PATH_STATE, "", state, &no_home))
        printf("Files: %s (settings); %shistory, %slast.json (not with --private)\n", config, state,
               state);
}

/* Open /dev/null in place of standard descriptors that are closed. Otherwise the next file that is
 * opened would get the number of standard output, and the answer would be written into it. False:
 * standard output was closed, so an answer cannot be written, or /dev/null cannot be opened. */
static bool fill_descriptors(void)
{
    const bool has_output = fcntl(STDOUT_FILENO, F_GETFD) != -1;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) == -1 &&
            open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) != fd)
            return false;
    return has_output;
}

/* Character widths need a UTF-8 locale. Only LC_CTYPE is set: LC_NUMERIC stays "C", so numbers are
 * written the same everywhere. */
static void choose_locale(void)
{
    if (setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
        return;
    if (setlocale(LC_CTYPE, "C.UTF-8")) /* if it is missing, each character counts as 1 column */
        env_set_ctype("C.UTF-8");
}

/* Whether a word behind --help is most likely the name of an option: a model file has a dot or a
 * slash, and a prompt usually has blanks. */
static bool is_option_word(const char *word)
{
    return word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")] ==
           '\0';
}

static enum exit_code fail_no_option(const struct options *o, const char *word)
{
    char near[OPTION_NEAR_BYTES];
    if (options_near(o, bn_str_of(word), OPTION_ON_COMMAND, near))
        return report_fail(PROGRAM, EXIT_USAGE, "there is no option --%.80s (did you mean %s?)",
                           word, near);
    return report_fail(PROGRAM, EXIT_USAGE, "there is no option --%.80s (--help all lists them)",
                       word);
}

static enum exit_code print_help(const struct options *o)
{
    size_t n_words;
    const char *const *words = options_words(o, &n_words);
    const bool all = n_words > 0 && strcmp(words[0], "all") == 0;
    const struct option *row = n_words > 0 ? options_find(o, words[0]) : NULL;
    if (n_words == 1 && !all && !row && is_option_word(words[0]))
        return fail_no_option(o, words[0]);
    if (row && option_on_command_line(row)) { /* not a model file, for example */
        const char *const only[] = {row->name, NULL};
        options_print_help(o, stdout, OPTION_HELP_ALL, only);
        return report_flush(PROGRAM);
    }
    fputs(usage, stdout);
    options_print_help(o, stdout, all ? OPTION_HELP_ALL : OPTION_HELP_SHORT, NULL);
    fputs(usage_end, stdout);
    print_file_paths();
    return report_flush(PROGRAM);
}

/* A table for people; scripts get the names alone. */
static enum exit_code print_sessions(void)
{
    const bool is_terminal = isatty(STDOUT_FILENO);
    struct strbuf text = {0};
    struct bn_error err;
    size_t n;
    if (!(is_terminal ? store_table("", &text, &n, &err) : store_list(&text, &n, &err))) {
        strbuf_finish(&text);
        return report_error(PROGRAM, STAGE_RUN, &err);
    }
    if (is_terminal)
        report_text(stdout, strbuf_str(&text), TERM_KEEP_LINES); /* may be invalid UTF-8 */
    else
        fputs(strbuf_text(&text), stdout);
    strbuf_finish(&text);
    return report_flush(PROGRAM);
}

/* Run an option such as --help that needs no model. False: no such option was given. */
static bool run_without_model(const struct options *o, enum exit_code *code)
{
    if (options_flag(o, "help")) {
        *code = print_help(o);
    } else if (options_flag(o, "version")) {
        printf("%s %s\n", PROGRAM, report_version());
        *code = report_flush(PROGRAM);
    } else if (options_text(o, "completion")) {
        options_print_completion(o, options_text(o, "completion"), stdout);
        *code = report_flush(PROGRAM);
    } else if (options_flag(o, "list-sessions")) {
        *code = print_sessions();
    } else {
        return false;
    }
    return true;
}

/* ---- checks of options ---- */

/* Refuse two options that contradict each other. */
static enum exit_code check_exclusive(const struct options *o)
{
    static const char *const pairs[][2] = {
        {"json", "jsonl"},       {"lines", "interactive"}, {"continue", "load"},
        {"continue", "session"}, {"load", "session"},      {"lines", "file"},
        {"batch", "lines"},      {"batch", "interactive"}, {"batch", "file"},
        {"batch", "prompt"},     {"batch", "continue"},    {"batch", "session"},
        {"batch", "load"},       {"tui", "inline"},        {"tui", "plain"},
        {"explain", "info"},     {"explain", "json"},      {"explain", "jsonl"},
        {"explain", "batch"},    {"info", "batch"},        {"raw", "template"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (options_given_on(o, pairs[i][0]) && options_given_on(o, pairs[i][1]))
            return report_fail(PROGRAM, EXIT_USAGE, "--%s and --%s cannot be used together",
                               pairs[i][0], pairs[i][1]);
    return EXIT_DONE;
}

/* Refuse --logprobs where nothing shows the probabilities: neither JSON nor a chat with /probs. */
static enum exit_code check_logprobs(const struct options *o)
{
    if (options_int(o, "logprobs") == 0 || options_flag(o, "json") || options_flag(o, "jsonl"))
        return EXIT_DONE;
    return report_fail(PROGRAM, EXIT_USAGE, "--logprobs needs --json or --jsonl");
}

/* ---- choice of the painter ---- */

/* Read a file of --file: as an attachment, and if it is the only one also as it is. */
static bool read_file(const char *path, bool is_only, const struct options *o,
                      struct pipe_plan *plan, struct bn_error *err)
{
    struct strbuf text = {0};
    struct input_facts facts;
    if (!input_file(path, &text, &facts, err)) {
        strbuf_finish(&text);
        return false;
    }
    if (facts.lack && !options_flag(o, "quiet"))
        report_line(PROGRAM, "warning: '%s' %s", path, facts.lack);
    if (plan->files.n_bytes > 0)
        strbuf_add_char(&plan->files, '\n');
    input_fence(path, strbuf_str(&text), &plan->files);
    plan->has_only_file = is_only;
    if (is_only)
        plan->only_file = text;
    else
        strbuf_finish(&text);
    return !plan->files.failed || bn_fail(err, BN_ENOMEM, "out of memory for '%s'", path);
}

/* For PIPE_ONCE: put the texts of the files of --file before the prompt. For "-" the painter reads
 * standard input to its end. */
static enum exit_code attach_files(const struct app *app, struct pipe_plan *plan)
{
    size_t n;
    struct bn_error err;
    const char *const *paths = options_list(app->options, "file", &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(paths[i], "-") == 0)
            plan->stdin_use = PIPE_STDIN_WHOLE;
        else if (!read_file(paths[i], n == 1, app->options, plan, &err))
            return report_error(PROGRAM, STAGE_RUN, &err);
    }
    return EXIT_DONE;
}

/* For a chat (app->attaches_files): attach the files of --file to the first message, as /file
 * does. */
static enum exit_code attach_to_chat(struct app *app)
{
    size_t n;
    struct bn_error err;
    enum attachment_added added; /* not needed: a file that is given twice is attached once */
    const char *const *paths = options_list(app->options, "file", &n);
    const struct attachment_room room = chat_room(&app->chat);
    for (size_t i = 0; app->attaches_files && i < n; i++) {
        if (strcmp(paths[i], "-") == 0)
            return report_fail(PROGRAM, EXIT_USAGE,
                               "--file - is not possible here: standard input has the messages");
        if (!attachments_add(&app->chat.attached, app->model.tokenizer, paths[i], &room, &added,
                             &err))
            return report_error(PROGRAM, STAGE_RUN, &err);
    }
    return EXIT_DONE;
}

/* Choose the input and output of the pipe painter. With PIPE_ONCE, a standard input that is no
 * terminal is part of the prompt. It may come from a parent program that never writes to it. So
 * with a prompt in the arguments, the painter waits only two seconds for the first byte. */
static enum exit_code plan_pipe(const struct app *app, struct pipe_plan *plan)
{
    const struct options *o = app->options;
    const bool has_tty = isatty(STDIN_FILENO), has_prompt = app->has_prompt;
    plan->output = options_flag(o, "json")    ? PIPE_JSON
                   : options_flag(o, "jsonl") ? PIPE_JSONL
                                              : PIPE_TEXT;
    if (options_flag(o, "info"))
        plan->kind = PIPE_INFO;
    else if (options_flag(o, "explain"))
        plan->kind = PIPE_EXPLAIN;
    else if (options_flag(o, "lines"))
        plan->kind = PIPE_LINES;
    else if (options_flag(o, "interactive"))
        plan->kind = has_tty ? PIPE_INTERACTIVE : PIPE_SCRIPT;
    else if (has_tty && !has_prompt && !options_given(o, "file"))
        plan->kind = PIPE_INTERACTIVE;
    else
        plan->kind = PIPE_ONCE;
    if (plan->kind == PIPE_ONCE && !has_tty)
        plan->stdin_use = has_prompt ? PIPE_STDIN_IF_ANY : PIPE_STDIN_WHOLE;
    if (plan->kind != PIPE_ONCE && plan->kind != PIPE_LINES)
        return EXIT_DONE;
    const enum exit_code code = check_logprobs(o);
    return code == EXIT_DONE && plan->kind == PIPE_ONCE ? attach_files(app, plan) : code;
}

/* Whether a terminal painter is used. All other uses of the program need ui_pipe. */
static bool is_terminal_chat(const struct app *app)
{
    const struct options *o = app->options;
    const bool has_one_message =
        (app->has_prompt || options_given(o, "file")) && !options_flag(o, "interactive");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !has_one_message &&
           !options_flag(o, "info") && !options_flag(o, "explain") && !options_flag(o, "lines") &&
           !options_flag(o, "json") && !options_flag(o, "jsonl");
}

/* If ui_full has failed with *err because this terminal cannot run it, open ui_inline instead.
 * False: the failure is another one, or ui_inline failed, too. *err is the last failure. */
static bool fall_back_to_inline(struct app *app, struct bn_error *err)
{
    const struct bn_error why = *err;
    if (app->ui.ops != &ui_full_ops || err->code != BN_EUNSUPPORTED)
        return false;
    app->ui.ops = &ui_inline_ops;
    if (!app->ui.ops->open(&app->ui, err))
        return false;
    ui_notice(&app->ui, TONE_WARNING, "%s", why.text);
    return true;
}

static bool uses_full_screen(const struct options *o)
{
    const char *ui = options_text(o, "ui");
    if (options_flag(o, "inline") || options_flag(o, "plain"))
        return false;
    return options_flag(o, "tui") || strcmp(ui, "full") == 0;
}

/* Warn if the command line asks for the full screen, but this use of the program has none. This is
 * no error, because an alias may have the option for all uses of the program. */
static void warn_of_full_screen(const struct app *app)
{
    const struct options *o = app->options;
    const bool is_tui = options_flag(o, "tui");
    const bool is_asked = is_tui || options_source(o, "ui") == OPTION_FROM_COMMAND;
    if (!is_asked || !uses_full_screen(o) || options_flag(o, "quiet") ||
        (is_terminal_chat(app) && !options_given(o, "batch")))
        return;
    report_line(PROGRAM, "warning: %s has no effect: only a chat at a terminal has a full screen",
                is_tui ? "--tui" : "--ui full");
}

/* Open the conversation and the painter, and run the event loop. */
static enum exit_code run_chat(struct app *app)
{
    struct bn_error err;
    enum exit_code code = app_open_chat(app);
    if (code == EXIT_DONE)
        code = attach_to_chat(app);
    if (code != EXIT_DONE)
        return code;
    if (!app->ui.ops->open(&app->ui, &err) && !fall_back_to_inline(app, &err)) {
        const unsigned ends = signals_raised() & (SIGNAL_TERMINATE | SIGNAL_HANGUP);
        return ends ? signals_exit_code(ends) : report_error(PROGRAM, STAGE_RUN, &err);
    }
    return app_run(app);
}

/* Set app->ui.ops. The pipe painter takes over `prompt`, which is empty afterwards; otherwise
 * `prompt` does not change. */
static enum exit_code choose_painter(struct app *app, struct strbuf *prompt)
{
    struct pipe_plan plan = {.prompt = *prompt};
    struct bn_error err;
    if (is_terminal_chat(app)) {
        app->ui.ops = uses_full_screen(app->options) ? &ui_full_ops : &ui_inline_ops;
        app->is_interactive = app->attaches_files = true;
        return EXIT_DONE;
    }
    *prompt = (struct strbuf){0};
    app->ui.ops = &ui_pipe_ops;
    const enum exit_code code = plan_pipe(app, &plan);
    app->is_interactive = plan.kind == PIPE_INTERACTIVE;
    app->attaches_files = app->is_interactive || plan.kind == PIPE_SCRIPT;
    /* Also after an error of plan_pipe, because ui_pipe frees the texts of the plan. */
    if (ui_pipe_plan(&app->ui, &plan, &err))
        return code;
    strbuf_finish(&plan.prompt);
    strbuf_finish(&plan.files);
    strbuf_finish(&plan.only_file);
    return report_error(PROGRAM, STAGE_RUN, &err);
}

static enum exit_code run_batch(struct app *app)
{
    if (app->has_prompt)
        return report_fail(PROGRAM, EXIT_USAGE, "--batch takes no prompt");
    const enum exit_code code = check_logprobs(app->options);
    return code == EXIT_DONE ? batch_run(app->options, &app->model) : code;
}

static enum exit_code run(struct app *app, int argc, char **argv)
{
    struct bn_error err;
    struct strbuf prompt = {0};
    enum exit_code code;
    if (!chat_options_open(&app->options, &err) || !options_parse(app->options, argc, argv, &err))
        return report_error(PROGRAM, STAGE_RUN, &err);
    app->ui.options = app->options;
    if (run_without_model(app->options, &code))
        return code;
    code = check_exclusive(app->options);
    if (code == EXIT_DONE)
        code = app_load_options(app, &prompt);
    if (code == EXIT_DONE)
        code = app_open_model(app);
    if (code == EXIT_DONE)
        warn_of_full_screen(app);
    if (code == EXIT_DONE && options_given(app->options, "batch")) {
        code = run_batch(app);
        strbuf_finish(&prompt);
        return code;
    }
    if (code == EXIT_DONE)
        code = choose_painter(app, &prompt);
    if (code == EXIT_DONE && app->ui.ops->is_terminal)
        app->first_prompt = strbuf_str(&prompt);
    if (code == EXIT_DONE)
        code = run_chat(app);
    if (app->ui.ops)
        app->ui.ops->close(&app->ui, UI_CLOSE_END);
    strbuf_finish(&prompt);
    return code;
}

int main(int argc, char **argv)
{
    struct app app = {.painters = painters};
    app.ui.chat = &app.chat;
    app.ui.terminal = &app.terminal;
    app.terminal.complete = app_complete;
    app.terminal.runs_now = app_runs_now;
    app.terminal.callback_ud = &app;
    mapped_file_watch(PROGRAM);
    if (!fill_descriptors())
        exit(report_fail(PROGRAM, EXIT_FILE, "standard output is closed"));
    choose_locale();
    const enum exit_code code = run(&app, argc, argv);
    app_close(&app);
    exit(code);
}
