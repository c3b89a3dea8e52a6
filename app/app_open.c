/*
 * Opens options, files, conversation and worker, and closes everything except the painter: see
 * app.h.
 */
#include "app/app.h"

#include "app/chat/conversation/turn_marks.h"
#include "app/common/input_text.h"
#include "app/common/term_text.h"
#include "app/demo/demo_model.h"
#include "app/options/config.h"
#include "app/options/model_args.h"
#include "app/terminal/signals.h"

#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- options ---- */

static void warn_config(void *ud, const char *sentence)
{
    const struct app *app = ud;
    if (!options_flag(app->options, "quiet"))
        (void)report_fail(PROGRAM, EXIT_DONE, "warning: %s", sentence);
}

static bool is_model_word(const char *word)
{
    const size_t n = strlen(word);
    struct stat st;
    return (n > 5 && strcasecmp(word + n - 5, ".gguf") == 0) ||
           (stat(word, &st) == 0 && S_ISREG(st.st_mode));
}

/* Whether the word looks like a path: with a slash and without a blank. Otherwise a misspelt path
 * would be sent to another model as a question. */
static bool is_path_word(const char *word)
{
    return strchr(word, '/') && !strpbrk(word, " \t\n");
}

/* Without -m, the first word is the model if it looks like one. */
static bool use_model_word(struct app *app, size_t *first_word, struct bn_error *err)
{
    size_t n_words;
    const char *const *words = options_words(app->options, &n_words);
    *first_word = 0;
    if (n_words == 0 || options_source(app->options, "model") == OPTION_FROM_COMMAND ||
        (!is_model_word(words[0]) && !is_path_word(words[0])))
        return true;
    *first_word = 1;
    return options_set(app->options, "model", words[0], OPTION_FROM_COMMAND, err);
}

static void join_prompt(const struct app *app, size_t first_word, struct strbuf *prompt)
{
    size_t n_words;
    const char *const *words = options_words(app->options, &n_words);
    const char *given = options_text(app->options, "prompt");
    if (given)
        strbuf_add_text(prompt, given);
    for (size_t i = first_word; i < n_words; i++)
        strbuf_addf(prompt, "%s%s", prompt->n_bytes > 0 ? " " : "", words[i]);
}

enum exit_code app_open_options(struct app *app, struct strbuf *prompt)
{
    char path[PATH_BYTES];
    struct bn_error err;
    size_t first_word;
    const char *model = env_get(ENV_MODEL);
    if (!config_load(app->options, path, warn_config, app, &err)) {
        (void)report_error(PROGRAM, STAGE_RUN, &err);
        return err.code == BN_EIO ? EXIT_FILE : EXIT_USAGE;
    }
    if ((model && !options_set(app->options, "model", model, OPTION_FROM_ENV, &err)) ||
        !model_args_environment(app->options, &err))
        return report_error(PROGRAM, STAGE_RUN, &err);
    if (!use_model_word(app, &first_word, &err))
        return report_error(PROGRAM, STAGE_RUN, &err);
    join_prompt(app, first_word, prompt);
    return prompt->failed ? report_fail(PROGRAM, EXIT_INTERNAL, "out of memory for the prompt")
                          : EXIT_DONE;
}

/* ---- files ---- */

static bool clean_name(struct app *app, struct bn_error *err)
{
    struct bn_str name = {0};
    struct strbuf clean = {0};
    const char *path = bn_file_path(app->model.file), *slash = strrchr(path, '/');
    if (!bn_file_get_str(app->model.file, "general.name", &name) || name.n_bytes == 0)
        name = bn_str_of(slash ? slash + 1 : path);
    term_text_brief(name, 60, &clean); /* 60 columns; the array may truncate it again */
    (void)snprintf(app->model.name, sizeof(app->model.name), "%s", strbuf_text(&clean));
    strbuf_finish(&clean);
    return strbuf_n_failed() == 0 ||
           bn_fail(err, BN_ENOMEM, "out of memory for the name of the model");
}

/* The file that the user named, or the built-in model. */
static bool open_model_file(struct app *app, struct bn_error *err)
{
    const char *path = options_text(app->options, "model");
    app->model.is_demo = !path;
    if (!path)
        return bn_file_open_memory(demo_model, demo_model_bytes, &app->model.file, err);
    if (bn_file_open(path, &app->model.file, err))
        return true;
    if (is_path_word(path) && !is_model_word(path)) { /* it may have been a question */
        const struct bn_error why = *err;
        (void)bn_fail(err, why.code, "%s (-p TEXT sends a text with a slash)", why.text);
    }
    return false;
}

enum exit_code app_open_files(struct app *app)
{
    struct bn_error err;
    if (!open_model_file(app, &err))
        return report_error(PROGRAM, STAGE_LOAD, &err);
    if (!model_args_tokenizer(app->options, app->model.file, &app->model.notes,
                              &app->model.tokenizer, &err)) {
        (void)bn_fail_prefix(&err, "%s", bn_file_path(app->model.file));
        return report_error(PROGRAM, STAGE_LOAD, &err);
    }
    if (!options_flag(app->options, "raw") &&
        !model_args_template(app->options, app->model.file, app->model.tokenizer, &app->model.notes,
                             &app->model.template, &err)) {
        const bool is_option = options_given(app->options, "template"); /* else of the file */
        return report_error(PROGRAM, is_option ? STAGE_RUN : STAGE_LOAD, &err);
    }
    chat_options_from_model(app->options, app->model.file);
    if (!turn_marks_add(app->model.template, app->options, app->model.tokenizer, &err) ||
        !clean_name(app, &err))
        return report_error(PROGRAM, STAGE_RUN, &err);
    return EXIT_DONE;
}

/* ---- conversation ---- */

static bool is_private(const struct app *app)
{
    const char *value = env_get(ENV_PRIVATE);
    return options_flag(app->options, "private") || (value && strcmp(value, "0") != 0);
}

/* If the state directory cannot be used, write nothing and show one warning. */
static void choose_paths(struct app *app)
{
    struct bn_error path_error = {0};
    const bool writes_last = app->is_interactive || options_flag(app->options, "continue");
    app->store.tokenizer = app->model.tokenizer;
    app->store.model_name = app->model.name;
    app->store.is_script = !app->is_interactive;
    app->store.is_private = is_private(app);
    if (app->store.is_private)
        return;
    store_clean();
    if (writes_last && !path_of(PATH_STATE, "last.json", app->store.last_path, &path_error))
        app->store.last_path[0] = 0;
    if (app->is_interactive && options_flag(app->options, "history") &&
        !path_of(PATH_STATE, "history", app->terminal.history.path, &path_error))
        app->terminal.history.path[0] = 0;
    if (path_error.code)
        bn_notes_add(&app->model.notes, BN_NOTE_WARNING, "no_place", "%s: this chat is not saved",
                     path_error.text);
}

static enum exit_code read_conversation(struct app *app, const char *path)
{
    struct transcript loaded = {0};
    struct store_reading reading;
    struct strbuf said = {0};
    struct bn_error err;
    if (!store_read(&app->store, path, &loaded, &reading, &err)) {
        (void)report_error(PROGRAM, STAGE_RUN, &err);
        return EXIT_FILE;
    }
    transcript_finish(&app->chat.transcript);
    app->chat.transcript = loaded;
    chat_use_snapshot(&app->chat, path);
    store_reading_text(&reading, &said);
    if (said.n_bytes > 0 && !options_flag(app->options, "quiet"))
        (void)report_fail(PROGRAM, EXIT_DONE, "%s", strbuf_text(&said));
    strbuf_finish(&said);
    return EXIT_DONE;
}

static enum exit_code open_conversation(struct app *app)
{
    struct bn_error err;
    const char *load = options_text(app->options, "load");
    const char *session = options_text(app->options, "session");
    char last[PATH_BYTES];
    enum exit_code code = EXIT_DONE;
    const size_t n_session = session ? strlen(session) : 0;
    const bool is_file = n_session > 5 && strcmp(session + n_session - 5, ".json") == 0;
    if (session && strchr(session, '/') && !is_file)
        return report_fail(PROGRAM, EXIT_USAGE,
                           "--session '%s': a name has no slash, and a file ends in .json",
                           session);
    if (session && !store_path(session, app->store.session_path, &err))
        return report_error(PROGRAM, STAGE_RUN, &err);
    if (load) {
        char path[PATH_BYTES];
        if (!store_path(load, path, &err))
            return report_error(PROGRAM, STAGE_RUN, &err);
        code = read_conversation(app, path);
    } else if (session && access(app->store.session_path, F_OK) == 0) {
        code = read_conversation(app, app->store.session_path);
    } else if (options_flag(app->options, "continue")) {
        if (!path_of(PATH_STATE, "last.json", last, &err))
            return report_error(PROGRAM, STAGE_RUN, &err);
        if (access(last, F_OK) != 0)
            return report_fail(PROGRAM, EXIT_FILE, "there is no last conversation in '%s'", last);
        code = read_conversation(app, last);
    }
    return code;
}

static enum exit_code set_system(struct app *app)
{
    struct strbuf text = {0};
    struct bn_error err;
    const char *given = options_text(app->options, "system");
    if (!given || (options_source(app->options, "system") != OPTION_FROM_COMMAND &&
                   app->chat.transcript.now.n > 0))
        return EXIT_DONE; /* keep the system message of the loaded conversation */
    const bool ok = input_text_or_file(given, &text, &err) &&
                    (transcript_set_system(&app->chat.transcript, strbuf_str(&text)) ||
                     bn_fail(&err, BN_ENOMEM, "out of memory for the system message"));
    strbuf_finish(&text);
    return ok ? EXIT_DONE : report_error(PROGRAM, STAGE_RUN, &err);
}

/* ---- worker ---- */

static bool open_worker(struct app *app, struct bn_error *err)
{
    const enum signal_user user = app->ui.ops->is_terminal ? SIGNALS_TERMINAL : SIGNALS_PIPE;
    int wake[2];
    if (!signals_open(user, wake, err))
        return false;
    app->wake_read = wake[0];
    struct worker_config cfg = {.file = app->model.file,
                                .tokenizer = app->model.tokenizer,
                                .n_ctx = (size_t)options_int(app->options, "ctx"),
                                .wake_fd = wake[1]};
    model_args_config(app->options, &cfg.model);
    cfg.model.notes = &app->model_notes;
    cfg.model.log = log_file_sink(&app->log);
    return worker_open(&cfg, &app->worker, err);
}

enum exit_code app_open_chat(struct app *app)
{
    struct bn_error err;
    struct chat *c = &app->chat;
    c->maker = (struct prompt_maker){.tokenizer = app->model.tokenizer,
                                     .template = app->model.template,
                                     .options = app->options,
                                     .now = time(NULL)};
    c->model = &app->model;
    c->store = &app->store;
    c->options = app->options;
    c->ui = &app->ui;
    c->overflow = app->is_interactive ? OVERFLOW_DROP : OVERFLOW_STOP;
    c->n_alts = (size_t)options_int(app->options, "logprobs");
    const char *log = options_text(app->options, "log");
    if (log && !log_file_open(&app->log, log, &err)) {
        (void)report_error(PROGRAM, STAGE_RUN, &err);
        return EXIT_FILE;
    }
    choose_paths(app);
    enum exit_code code = open_conversation(app);
    if (code == EXIT_DONE)
        code = set_system(app);
    if (code != EXIT_DONE)
        return code;
    if (!open_worker(app, &err))
        return report_error(PROGRAM, STAGE_RUN, &err);
    c->worker = app->worker;
    return EXIT_DONE;
}

void app_close(struct app *app)
{
    worker_close(app->worker);
    chat_finish(&app->chat);
    terminal_chat_finish(&app->terminal);
    log_file_close(&app->log);
    template_close(app->model.template);
    tokenizer_close(app->model.tokenizer);
    bn_file_close(app->model.file);
    options_close(app->options);
}
