/*
 * Chooses the files of the chat, takes their locks, and reads the conversation to continue. If
 * another program uses the named chat of --session or --continue, this chat continues on a copy, or
 * the program ends. With --continue, if no slot is free for a copy, this chat continues unsaved.
 * --load, and --continue with --private, only read the file, without a lock.
 */
#include "app/app.h"

#include "app/common/env.h"
#include "app/terminal/signals.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The environment can make a chat private, unless the command line says otherwise. */
static bool is_private(const struct app *app)
{
    const char *value = env_get(ENV_PRIVATE);
    if (value && strcmp(value, "0") != 0 &&
        options_source(app->options, "private") != OPTION_FROM_COMMAND)
        return true;
    return options_flag(app->options, "private");
}

/* A ui_show_fn for the time before the painter is open: on stderr, and whatever the tone is, as a
 * warning. An empty text is not shown. */
static void show_warning(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    (void)tone;
    if (text.n_bytes > 0 && !options_flag(ui->options, "quiet"))
        report_line(PROGRAM, "warning: %.*s", (int)text.n_bytes, text.ptr);
}

/* ---- the last conversation ---- */

/* Give the last conversation of this chat the first slot (store_last_path) that no other chat uses.
 * If all are in use, store.last has no file. Without a state directory it has none either, and *err
 * says why. */
static void open_free_slot(struct app *app, struct bn_error *err)
{
    char path[PATH_BYTES];
    for (int slot = 1; slot <= STORE_LAST_SLOTS; slot++)
        if (!store_last_path(slot, path, err) || store_open(&app->store.last, path, NULL))
            return;
}

/* Note for a warning, once, that the chat has no file, because there is no directory for it. */
static void note_no_place(struct app *app, const struct bn_error *why)
{
    for (size_t i = 0; i < app->model.notes.n; i++)
        if (strcmp(app->model.notes.items[i].id, "no_place") == 0)
            return;
    bn_notes_add(&app->model.notes, BN_NOTE_WARNING, "no_place", "%s: this chat is not saved",
                 why->text);
}

/* Set up the store, and choose the files of the last conversation and of the input history. With
 * --private there are none. Without a state directory there are none either, and if this chat needs
 * one of them, a single warning is shown. */
static void choose_paths(struct app *app)
{
    struct bn_error path_error = {0};
    /* A script has no last conversation, unless it continues one. */
    const bool writes_last = app->is_interactive || options_flag(app->options, "continue");
    app->store.tokenizer = app->model.tokenizer;
    app->store.model_name = app->model.name;
    app->store.is_script = !app->is_interactive;
    app->store.is_private = is_private(app);
    if (app->store.is_private)
        return;
    store_clean();
    if (writes_last)
        open_free_slot(app, &path_error);
    chat_show_set_aside(&app->chat, &app->store.last, show_warning);
    if (app->is_interactive && /* also with --no-history: /set can change it */
        !path_of(PATH_STATE, "history", app->terminal.history.path, &path_error))
        app->terminal.history.path[0] = 0;
    if (path_error.code)
        note_no_place(app, &path_error);
}

/* ---- reading ---- */

/* Read a saved chat and make it the conversation. `f` is the store_file of `path` if later turns
 * are written to it, else NULL. EXIT_FILE: any error of store_read. */
static enum exit_code read_conversation(struct app *app, const char *path, struct store_file *f)
{
    struct transcript loaded = {0};
    struct store_reading reading;
    struct bn_error err;
    if (!store_read(&app->store, path, &loaded, &reading, &err)) {
        (void)report_error(PROGRAM, STAGE_RUN, &err);
        return EXIT_FILE;
    }
    transcript_finish(&app->chat.transcript);
    app->chat.transcript = loaded;
    if (f)
        store_continue(f, &loaded.now, &reading);
    chat_use_snapshot(&app->chat, path);
    chat_show_reading(&app->chat, path, &reading, show_warning);
    return EXIT_DONE;
}

/* Read a saved chat that another chat uses. Later turns are written to the copy `f`, if `f` has a
 * path. */
static enum exit_code read_copy(struct app *app, const char *path, struct store_file *f)
{
    const enum exit_code code = read_conversation(app, path, NULL);
    f->is_behind = code == EXIT_DONE; /* the copy is not written yet */
    return code;
}

/* Call this after the last conversation has been read. If it was also saved under a name, open that
 * saved chat, so that later turns are written to it, too. If the saved chat is in use or has other
 * turns now, it stays closed, and a warning says so. Its path comes from a file, so it may be any
 * text, and a saved chat that does not exist is not created. */
static void continue_named(struct app *app)
{
    const char *path = app->store.last.saved_as;
    char holder[FILE_LOCK_HOLDER_BYTES];
    struct store_file *f = &app->store.named;
    struct transcript named = {0};
    struct store_reading reading;
    struct strbuf warning = {0};
    struct bn_error err;
    if (path[0] != '/')
        return;
    if (!path_is_regular(path)) {
        strbuf_addf(&warning, "'%s' was deleted or moved; this chat is not saved there", path);
    } else if (!store_open(f, path, holder)) {
        strbuf_addf(&warning, "'%s' is in use by %s; this chat is not saved there", path, holder);
    } else if (!store_read(&app->store, path, &named, &reading, &err) ||
               !transcript_is_same(&named.now, &app->chat.transcript.now)) {
        store_forget(f); /* nothing was written */
        strbuf_addf(&warning, "'%s' has changed since; this chat is not saved there", path);
    } else {
        store_continue(f, &app->chat.transcript.now, &reading);
        chat_use_snapshot(&app->chat, path);
    }
    show_warning(&app->ui, TONE_WARNING, strbuf_str(&warning));
    strbuf_finish(&warning);
    transcript_finish(&named);
}

/* Continue the newest last conversation, from the file that is store.last. */
static enum exit_code continue_slot(struct app *app)
{
    const enum exit_code code = read_conversation(app, app->store.last.path, &app->store.last);
    if (code == EXIT_DONE)
        continue_named(app);
    return code;
}

/* Continue the newest last conversation. If another chat uses it, continue on a copy in the free
 * slot of store.last, or unsaved if there is no such slot. With --private, only read it. */
static enum exit_code continue_last(struct app *app)
{
    char path[PATH_BYTES], holder[FILE_LOCK_HOLDER_BYTES];
    struct bn_error err;
    if (!store_last_path(1, path, &err)) /* for the message, if there is no last conversation */
        return report_error(PROGRAM, STAGE_RUN, &err);
    if (!store_newest_last(path))
        return report_fail(PROGRAM, EXIT_FILE, "there is no last conversation in '%s'", path);
    if (app->store.is_private)
        return read_conversation(app, path, NULL);
    if (path_is_same(path, app->store.last.path))
        return continue_slot(app);
    struct store_file newest = {0};
    if (store_open(&newest, path, holder)) { /* continue there instead of in the free slot */
        /* This only releases the lock of the free slot: nothing was written to it. */
        (void)store_close(&app->store, &app->store.last, &app->chat.transcript.now, &err);
        app->store.last = newest;
        return continue_slot(app);
    }
    struct strbuf warning = {0};
    strbuf_addf(&warning, "the last conversation is in use by %s; this chat continues %s", holder,
                app->store.last.path[0] ? "on a copy" : "it without saving");
    show_warning(&app->ui, TONE_WARNING, strbuf_str(&warning));
    strbuf_finish(&warning);
    return read_copy(app, path, &app->store.last);
}

/* ---- a named chat in use ---- */

/* Read an answer of one line from the terminal: true for yes or an empty line, false for no, at
 * the end of input and after an error. Reads single bytes, so that later lines stay for the line
 * editor. */
static bool read_yes(void)
{
    for (;;) {
        char first = '\n', c = 0;
        ssize_t got;
        while ((got = read(STDIN_FILENO, &c, 1)) == 1 && c != '\n')
            if (first == '\n')
                first = c;
        if (got != 1) {
            (void)fputc('\n', stderr); /* the shell's prompt must begin on a new row */
            return false;
        }
        if (first == '\n' || first == 'y' || first == 'Y')
            return true;
        if (first == 'n' || first == 'N')
            return false;
        (void)fprintf(stderr, "y or n? ");
    }
}

/* Another program uses the named chat. At a terminal, offer a copy and make it store.named.
 * EXIT_DONE: the user accepted. EXIT_FILE: no terminal, declined, or the copy is in use, too. */
static enum exit_code offer_copy(struct app *app, const char *path, const char *holder)
{
    char copy[PATH_BYTES], other[FILE_LOCK_HOLDER_BYTES];
    struct strbuf question = {0};
    store_copy_path(path, copy);
    if (!app->ui.ops->is_terminal)
        return report_fail(PROGRAM, EXIT_FILE,
                           "'%s' is in use by %s; --load '%s' continues without saving it", path,
                           holder, path);
    strbuf_addf(&question, "%s: '%s' is in use by %s.\nContinue on a copy, '%s'? [Y/n] ", PROGRAM,
                path, holder, copy);
    report_words(stderr, strbuf_str(&question), TERM_KEEP_LINES, 0);
    strbuf_finish(&question);
    if (!read_yes())
        return EXIT_FILE;
    if (!store_open(&app->store.named, copy, other))
        return report_fail(PROGRAM, EXIT_FILE, "'%s' is in use by %s", copy, other);
    return EXIT_DONE;
}

/* There is no directory for the named chat of --session. A user can chat nevertheless; a script
 * must not lose its conversation. */
static enum exit_code continue_without_place(struct app *app, const struct bn_error *why)
{
    if (!app->is_interactive)
        return report_error(PROGRAM, STAGE_RUN, why);
    note_no_place(app, why);
    return EXIT_DONE;
}

/* Open or create the named chat of --session. --load takes any path, but --session might create a
 * file, so a path must end in .json. */
static enum exit_code open_named(struct app *app, const char *name)
{
    char path[PATH_BYTES], holder[FILE_LOCK_HOLDER_BYTES];
    struct store_file *f = &app->store.named;
    enum exit_code code = EXIT_DONE;
    struct bn_error err;
    if (strchr(name, '/') && !path_ends_with(name, ".json"))
        return report_fail(PROGRAM, EXIT_USAGE,
                           "--session '%s': a name has no slash, and a file ends in .json", name);
    if (!store_path(name, path, &err))
        return err.code == BN_EIO ? continue_without_place(app, &err)
                                  : report_error(PROGRAM, STAGE_RUN, &err);
    if (!store_has_folder(path, &err))
        return report_error(PROGRAM, STAGE_RUN, &err);
    const bool is_free = store_open(f, path, holder);
    if (!is_free)
        code = offer_copy(app, path, holder);
    chat_show_set_aside(&app->chat, f, show_warning);
    if (code != EXIT_DONE || access(path, F_OK) != 0) /* a new chat has nothing to read */
        return code;
    return is_free ? read_conversation(app, path, f) : read_copy(app, path, f);
}

/* --load NAME, but there is no saved chat of this name. The path of its file would not help a user
 * who means a file in the working directory. */
static enum exit_code fail_name(const char *name)
{
    if (access(name, F_OK) == 0)
        return report_fail(PROGRAM, EXIT_FILE,
                           "there is no saved chat '%s'; the file of this name is ./%s", name,
                           name);
    return report_fail(PROGRAM, EXIT_FILE,
                       "there is no saved chat '%s'; --list-sessions lists them", name);
}

/* Read the file of --load, which later turns do not change. */
static enum exit_code load_chat(struct app *app, const char *name)
{
    char path[PATH_BYTES];
    struct bn_error err;
    if (!store_path(name, path, &err))
        return report_error(PROGRAM, STAGE_RUN, &err);
    if (strcmp(path, name) != 0 && access(path, F_OK) != 0) /* `name` is no path */
        return fail_name(name);
    return read_conversation(app, path, NULL);
}

enum exit_code app_open_saved(struct app *app)
{
    const char *load = options_text(app->options, "load");
    const char *session = options_text(app->options, "session");
    signals_ignore_size_limit(); /* before choose_paths writes the first files: the locks */
    choose_paths(app);
    if (session)
        return open_named(app, session);
    if (load)
        return load_chat(app, load);
    return options_flag(app->options, "continue") ? continue_last(app) : EXIT_DONE;
}
