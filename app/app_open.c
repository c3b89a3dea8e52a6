/*
 * Opens options, files, conversation and worker, and closes everything except the painter: see
 * app.h.
 */
#include "app/app.h"

#include "app/chat/conversation/turn_marks.h"
#include "app/common/env.h"
#include "app/common/term_text.h"
#include "app/demo/demo_model.h"
#include "app/options/config.h"
#include "app/options/model_args.h"
#include "app/options/near_name.h"
#include "app/terminal/signals.h"
#include "engine/base/memory.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- options ---- */

static void show_config_remark(void *ud, enum config_remark kind, const char *sentence)
{
    const struct app *app = ud;
    if (kind == CONFIG_ERROR)
        report_line(PROGRAM, "%s", sentence);
    else if (!options_flag(app->options, "quiet"))
        report_line(PROGRAM, "warning: %s", sentence);
}

/* Whether the word looks like a path: with a slash and without a blank. */
static bool is_path_word(const char *word)
{
    return strchr(word, '/') && !strpbrk(word, " \t\n");
}

#define ENDING ".gguf"

static bool has_model_ending(const char *word)
{
    const size_t n = strlen(word);
    return n > strlen(ENDING) && strcasecmp(word + n - strlen(ENDING), ENDING) == 0;
}

/* Whether the word names a model file: it ends with ".gguf" in small or capital letters, or it is
 * the path of a regular file. A word such as "models" may be a question even if a directory has
 * this name. But a path such as ./models or /dev/null is no question if it exists. */
static bool is_model_word(const char *word)
{
    char path[PATH_BYTES];
    struct stat st;
    if (has_model_ending(word))
        return true;
    path_expand_home(word, path); /* as options_set does */
    return stat(path, &st) == 0 && (S_ISREG(st.st_mode) || is_path_word(word));
}

/* The number of bytes of the word before a mistyped ".gguf", or of the whole word. */
static size_t stem_bytes(const char *word)
{
    const char *dot = strrchr(word, '.');
    struct near_name ending = {.typed = bn_str_of(dot ? dot : "")};
    return near_name_add(&ending, ENDING) ? (size_t)(dot - word) : strlen(word);
}

/* Warn if the name of a model file of the working directory is similar to the word. Without digits
 * the word must be the whole name, because a word of a question may be similar to one. */
static void warn_of_similar_model(const char *word)
{
    struct near_name model = {.typed = {word, stem_bytes(word)}};
    char found[NAME_MAX + 1], stem[NAME_MAX + 1];
    DIR *folder = strpbrk(word, " \t\n") ? NULL : opendir(".");
    for (const struct dirent *file; folder && (file = readdir(folder));) {
        if (!path_ends_with(file->d_name, ENDING))
            continue;
        const int n_bytes = (int)(strlen(file->d_name) - strlen(ENDING));
        (void)snprintf(stem, sizeof(stem), "%.*s", n_bytes, file->d_name); /* fits */
        if (near_name_add(&model, stem))
            model.best = strcpy(found, stem);
    }
    if (folder)
        closedir(folder);
    if (model.best && (model.cost == 0 || strpbrk(word, "0123456789")))
        report_line(PROGRAM, "warning: '%s' is sent as text; did you mean the model %s" ENDING "?",
                    word, model.best);
}

/* Warn if the first word of the prompt may have been meant as the model, because another model gets
 * it as text. --quiet does not hide this warning: the answer is not the one that was asked for. */
static void warn_of_mistyped(const char *word)
{
    if (is_path_word(word))
        report_line(PROGRAM,
                    "warning: there is no file '%s', so it is the prompt; -m names a model", word);
    else
        warn_of_similar_model(word);
}

/* Warn if a word behind the first one is a model file: "bitnet-chat hi model.gguf" sends its name
 * to another model. One warning is enough for a list of files. */
static void warn_of_later_model(const char *const *words, size_t n_words)
{
    for (size_t i = 1; i < n_words; i++)
        if (has_model_ending(words[i]) && access(words[i], F_OK) == 0) {
            report_line(PROGRAM, "warning: '%s' is part of the prompt; -m names a model", words[i]);
            return;
        }
}

/* Without --model, the first word is the model if it names one. *first_word is the index of the
 * first word of the prompt. */
static bool use_model_word(struct app *app, size_t *first_word, struct bn_error *err)
{
    size_t n_words;
    const char *const *words = options_words(app->options, &n_words);
    *first_word = 0;
    if (n_words == 0 || options_source(app->options, "model") == OPTION_FROM_COMMAND)
        return true;
    if (!words[0][0]) /* often a variable of a script that is not set */
        return bn_fail(err, BN_EARG, "the first word is empty: expected a model or a prompt");
    warn_of_later_model(words, n_words);
    if (!is_model_word(words[0]))
        return true;
    *first_word = 1;
    return options_set(app->options, "model", words[0], OPTION_FROM_COMMAND, err);
}

/* Append the text of --prompt and the words from first_word on, with spaces between them, and set
 * app->has_prompt. */
static void join_prompt(struct app *app, size_t first_word, struct strbuf *prompt)
{
    size_t n_words;
    const char *const *words = options_words(app->options, &n_words);
    const char *given = options_text(app->options, "prompt");
    app->has_prompt = given || first_word < n_words;
    if (given)
        strbuf_add_text(prompt, given);
    for (size_t i = first_word; i < n_words; i++)
        strbuf_addf(prompt, "%s%s", prompt->n_bytes > 0 ? " " : "", words[i]);
}

enum exit_code app_load_options(struct app *app, struct strbuf *prompt)
{
    struct bn_error err;
    size_t first_word;
    const char *model = env_get(ENV_MODEL);
    if (!config_load(app->options, show_config_remark, app, &err))
        return report_error(PROGRAM, STAGE_RUN, &err);
    if ((model && !options_set(app->options, "model", model, OPTION_FROM_ENV, &err)) ||
        !model_args_environment(app->options, &err))
        return report_error(PROGRAM, STAGE_RUN, &err);
    if (!use_model_word(app, &first_word, &err))
        return report_error(PROGRAM, STAGE_RUN, &err);
    join_prompt(app, first_word, prompt);
    size_t n_words;
    const char *const *words = options_words(app->options, &n_words);
    if (n_words > 0 && first_word == 0 &&
        options_source(app->options, "model") != OPTION_FROM_COMMAND)
        warn_of_mistyped(words[0]);
    return prompt->failed ? report_fail(PROGRAM, EXIT_INTERNAL, "out of memory for the prompt")
                          : EXIT_DONE;
}

/* ---- files ---- */

#define MODEL_NAME_COLUMNS 60

/* Set the model's name: general.name or the name of the file, safe for a terminal. */
static bool set_model_name(struct app *app, struct bn_error *err)
{
    struct bn_str name = {0};
    struct strbuf clean = {0};
    if (!bn_file_get_str(app->model.file, "general.name", &name) || name.n_bytes == 0)
        name = bn_str_of(path_name(bn_file_path(app->model.file)));
    term_text_brief(name, MODEL_NAME_COLUMNS, &clean); /* model.name may hold even less */
    (void)snprintf(app->model.name, sizeof(app->model.name), "%.*s",
                   bn_str_shown(strbuf_str(&clean), sizeof(app->model.name) - 1),
                   strbuf_text(&clean));
    strbuf_finish(&clean);
    return strbuf_n_failed() == 0 || /* no text of the program has failed so far */
           bn_fail(err, BN_ENOMEM, "out of memory for the name of the model");
}

/* If the value of the option is not from the command line, put its source before the text of err,
 * because the user has not typed it now. Of the options with a path or text, only the model can
 * come from the environment. */
static void name_source(const struct options *o, const char *name, struct bn_error *err)
{
    const enum option_source source = options_source(o, name);
    if (source == OPTION_FROM_ENV)
        (void)bn_fail_prefix(err, "BITNET_CHAT_MODEL");
    else if (source == OPTION_FROM_CONFIG)
        (void)bn_fail_prefix(err, "%s of the config file", name);
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
    name_source(app->options, "model", err);
    return false;
}

enum exit_code app_open_model(struct app *app)
{
    struct bn_error err;
    if (!open_model_file(app, &err))
        return report_error(PROGRAM, STAGE_LOAD, &err);
    if (!model_args_tokenizer(app->options, app->model.file, &app->model.notes,
                              &app->model.tokenizer, &err)) {
        (void)bn_fail_prefix(&err, "%s", bn_file_path(app->model.file));
        return report_error(PROGRAM, STAGE_LOAD, &err);
    }
    /* Of --raw and --template, one may come from the config file. */
    const bool is_raw =
        options_flag(app->options, "raw") && !options_outranks(app->options, "template", "raw");
    if (!is_raw && !model_args_template(app->options, app->model.file, app->model.tokenizer,
                                        &app->model.notes, &app->model.template, &err)) {
        /* EXIT_MODEL (STAGE_LOAD) would blame the model file for a template of the user. */
        const bool is_option = options_given(app->options, "template");
        return report_error(PROGRAM, is_option ? STAGE_RUN : STAGE_LOAD, &err);
    }
    /* A wrong value of an option is an error of the start, not of the first message. */
    struct bias_list biases;
    if (!chat_options_biases(app->options, app->model.tokenizer, &biases, &err))
        return report_error(PROGRAM, STAGE_RUN, &err);
    mem_free(biases.items);
    chat_options_from_model(app->options, app->model.file);
    if (!turn_marks_add(app->model.template, app->options, app->model.tokenizer, &err) ||
        !set_model_name(app, &err))
        return report_error(PROGRAM, STAGE_RUN, &err);
    return EXIT_DONE;
}

/* ---- conversation ---- */

/* Set the system message from the option "system". A loaded conversation with turns keeps its own
 * message, or none, unless --system is on the command line. */
static enum exit_code set_system(struct app *app)
{
    struct strbuf text = {0};
    struct bn_error err;
    if (!options_text(app->options, "system") ||
        (options_source(app->options, "system") != OPTION_FROM_COMMAND &&
         app->chat.transcript.now.n > 0))
        return EXIT_DONE;
    const bool ok = chat_options_system(app->options, &text, &err) &&
                    (transcript_set_system(&app->chat.transcript, strbuf_str(&text)) ||
                     bn_fail(&err, BN_ENOMEM, "out of memory for the system message"));
    strbuf_finish(&text);
    if (ok)
        return EXIT_DONE;
    name_source(app->options, "system", &err);
    return report_error(PROGRAM, STAGE_RUN, &err);
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
                                .session = chat_options_session(app->options),
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
        return EXIT_FILE; /* for every error of the log */
    }
    enum exit_code code = app_open_saved(app);
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
    /* app_run has closed the files and reported errors. Without app_run there is no new turn that
     * an error could lose. */
    struct bn_error ignored;
    worker_close(app->worker);
    (void)store_close(&app->store, &app->store.last, &app->chat.transcript.now, &ignored);
    (void)store_close(&app->store, &app->store.named, &app->chat.transcript.now, &ignored);
    chat_finish(&app->chat);
    ui_terminal_finish(&app->terminal);
    log_file_close(&app->log);
    template_close(app->model.template);
    tokenizer_close(app->model.tokenizer);
    bn_file_close(app->model.file);
    options_close(app->options);
}
