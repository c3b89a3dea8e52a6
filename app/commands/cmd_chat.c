/*
 * Commands that change the conversation: /system /retry /edit /undo /redo /continue /clear /forget.
 *
 * They change the transcript or start a turn, and never touch the KV cache. The cache follows at
 * the next turn, because the engine always gets the whole list of ids.
 */
#include "app/commands/commands.h"

#include "app/common/input_text.h"
#include "app/common/term_text.h"
#include "app/terminal/line/edit_file.h"
#include "engine/base/size.h"

#include <stdio.h>
#include <unistd.h>

/* Call this after a change of the conversation. It shows `action`, which names the change, and the
 * last message, updates the number of tokens in use, and writes the conversation to its files. */
static void finish_change(struct command_host *host, const char *action)
{
    const struct exchange *last = transcript_last(&host->chat->transcript);
    struct strbuf text = {0};
    strbuf_addf(&text, "%s; ", action);
    if (last) {
        strbuf_addf(&text, "%zu turn%s left, the last: ", host->chat->transcript.now.n,
                    host->chat->transcript.now.n == 1 ? "" : "s");
        term_text_brief(exchange_typed(last), COMMAND_BRIEF_COLUMNS, &text);
    } else {
        strbuf_add_text(&text, "the conversation is empty");
    }
    host->ui->ops->notice(host->ui, TONE_PLAIN, strbuf_str(&text));
    strbuf_finish(&text);
    chat_update_n_used(host->chat);
    chat_show_next_drop(host->chat);
    command_save_chat(host);
}

static bool fail_memory(struct command_host *host)
{
    return command_fail(host, "out of memory: nothing was changed");
}

/* The text of /system, or of its @FILE. Refuses standard input, because the user's lines come from
 * it, and any other file that is not regular, such as a FIFO, because reading it might block. */
static bool read_system(struct bn_str args, struct strbuf *out, struct bn_error *err)
{
    struct strbuf arg = {0};
    const bool is_file = args.ptr[0] == '@';
    strbuf_add(&arg, args.ptr, is_file ? 1 : args.n_bytes);
    if (is_file)
        command_path((struct bn_str){args.ptr + 1, args.n_bytes - 1}, &arg);
    const char *path = strbuf_text(&arg) + is_file;
    size_t bad_at; /* not needed: the line editor and ui_pipe have replaced invalid bytes */
    bool ok;
    if (arg.failed)
        ok = bn_fail(err, BN_ENOMEM, "out of memory: nothing was changed");
    else if (is_file && strcmp(path, "-") == 0)
        ok = bn_fail(err, BN_EARG, "'-' is standard input; ./- is a file of this name");
    else if (is_file && access(path, F_OK) == 0 && !path_is_regular(path))
        ok = bn_fail(err, BN_EIO, "'%s' is not a regular file", path);
    else
        ok = input_text_or_file(strbuf_text(&arg), out, &bad_at, err);
    strbuf_finish(&arg);
    return ok;
}

bool cmd_system(struct command_host *host, struct bn_str args)
{
    struct transcript *t = &host->chat->transcript;
    struct strbuf text = {0};
    struct bn_error err;
    const bool has_system = t->now.system.n_bytes > 0, is_off = bn_str_is(args, "off");
    if (!has_system && (args.n_bytes == 0 || is_off)) {
        ui_notice(host->ui, TONE_PLAIN, "there is no system message");
        return true;
    }
    if (args.n_bytes == 0) {
        host->ui->ops->notice(host->ui, TONE_PLAIN, t->now.system);
        return true;
    }
    bool ok = is_off || (read_system(args, &text, &err) &&
                         chat_check_system(host->chat, strbuf_str(&text), &err));
    if (!ok) {
        (void)command_fail_file(host, &err);
    } else if (!transcript_set_system(t, strbuf_str(&text))) {
        ok = fail_memory(host);
    } else {
        const char *done = text.n_bytes == 0 ? "removed" : has_system ? "replaced" : "set";
        chat_update_n_used(host->chat);
        if (t->now.n > 0 && host->chat->n_used > 0)
            ui_notice(host->ui, TONE_PLAIN, "system message %s; %zu tok will be re-read", done,
                      host->chat->n_used);
        else
            ui_notice(host->ui, TONE_PLAIN, "system message %s", done);
        chat_show_next_drop(host->chat);
        command_save_chat(host);
    }
    strbuf_finish(&text);
    return ok;
}

/* Whether the setting has no effect on an answer, so that /retry must not change it. */
static bool has_no_effect_on_answer(const struct option *row)
{
    static const char *const names[] = {"snapshot", "exit-transcript", "color",    "wrap",
                                        "stats",    "history",         "thoughts", NULL};
    return options_list_has(names, row->name);
}

static bool override_one(const struct command_host *host, struct options *o, const char *name,
                         const char *value, struct bn_error *err)
{
    const char *const setting = option_translate_name(name);
    const struct option *row = options_find(o, setting);
    if (!row || !(row->places & OPTION_BY_SET)) {
        char near[OPTION_NEAR_BYTES];
        return options_near(o, bn_str_of(name), OPTION_BY_SET, near)
                   ? bn_fail(err, BN_EARG, "there is no setting '%.60s' - did you mean %s?", name,
                             near)
                   : bn_fail(err, BN_EARG, "'%.60s' is no setting of an answer; /set lists them",
                             name);
    }
    if (has_no_effect_on_answer(row))
        return bn_fail(err, BN_EARG, "%s cannot be set for one answer; use /set", row->name);
    return command_assign(host, o, setting, value, err);
}

/* The length of the first word, NAME=VALUE. In double quotes, VALUE may have blanks. */
static size_t word_bytes(const char *words)
{
    const size_t n = strcspn(words, " \t");
    const char *quote = strstr(words, "=\"");
    const char *end = quote && quote < words + n ? strchr(quote + 2, '"') : NULL;
    return end && end > words + n ? (size_t)(end - words) + strcspn(end, " \t") : n;
}

/* Set the options of `o`, a copy for one answer, to the NAME=VALUE words. */
static bool override(const struct command_host *host, struct options *o, struct bn_str args,
                     struct bn_error *err)
{
    struct strbuf words = {0};
    bool ok = true;
    strbuf_add_str(&words, args);
    for (char *word = words.ptr; ok && word && *word;) {
        const size_t n = word_bytes(word);
        const bool is_last = word[n] == 0;
        word[n] = 0;
        char *equals = strchr(word, '=');
        if (equals)
            *equals = 0;
        if (n > 0)
            ok = equals ? override_one(host, o, word, equals + 1, err)
                        : bn_fail(err, BN_EARG, "'%s': expected NAME=VALUE, such as temp=1", word);
        word = is_last ? NULL : word + n + 1;
    }
    if (words.failed)
        ok = bn_fail(err, BN_ENOMEM, "out of memory");
    strbuf_finish(&words);
    return ok;
}

bool cmd_retry(struct command_host *host, struct bn_str args)
{
    struct options *settings = NULL;
    struct sampler_params sampler;
    struct bn_error err;
    const struct exchange *last = transcript_last(&host->chat->transcript);
    chat_options_sampler(host->options, &sampler);
    if (args.n_bytes == 0 && sampler.temp <= 0 && last && last->answer.finish != FINISH_NONE)
        ui_notice(
            host->ui, TONE_NOTE,
            "temp is 0, so the same question gets the same answer; /retry temp=0.8 varies it");
    const bool ok = (args.n_bytes == 0 || (options_copy(host->options, &settings, &err) &&
                                           override(host, settings, args, &err))) &&
                    chat_retry(host->chat, settings, &err);
    options_close(settings);
    return ok || command_fail_error(host, &err);
}

/* /edit in an empty conversation: write a new message in $VISUAL or $EDITOR. */
static bool begin_in_editor(struct command_host *host)
{
    struct ui *ui = host->ui;
    struct strbuf text = {0};
    struct bn_error err;
    if (!ui->ops->is_terminal) {
        ui_notice(ui, TONE_ERROR, "nothing was said yet");
        return false;
    }
    ui->ops->suspend(ui);
    const bool ok = edit_file_run(&text, &err);
    ui->ops->resume(ui);
    if (ok && text.n_bytes > 0)
        (void)ui->ops->edit(ui, strbuf_str(&text)); /* a notice says where it is */
    else if (!ok)
        ui_notice(ui, TONE_ERROR, "%s", err.text);
    strbuf_finish(&text);
    return ok;
}

bool cmd_edit(struct command_host *host, struct bn_str args)
{
    struct transcript *t = &host->chat->transcript;
    size_t number;
    if (t->now.n == 0)
        return args.n_bytes > 0 ? command_fail(host, "nothing was said yet")
                                : begin_in_editor(host);
    if (!command_number(host, args, t->now.n, t->now.n, &number))
        return false;
    const struct exchange *edited = t->now.items[number - 1]; /* undo keeps a reference to it */
    if (!transcript_rewind(t, number - 1))
        return fail_memory(host);
    if (host->ui->ops->is_terminal) /* else no message is edited: the files lose it at once */
        transcript_begin_edit(t);
    chat_update_n_used(host->chat); /* the space for the files of the message */
    const char *action = chat_edit_again(host->chat, edited)
                             ? "moved back to the editor (/undo restores it)"
                         : host->ui->ops->is_terminal ? "taken back (/undo restores it)"
                                                      : "taken back";
    finish_change(host, action);
    return true;
}

/* Undo or redo. */
struct undo_step {
    enum undo_result (*run)(struct transcript *);
    enum cut_kind (*cut)(const struct transcript *);
    size_t (*chat)(const struct transcript *); /* transcript_state.chat_number after the step */
    const char *verb;                          /* for messages: "undone" or "redone" */
};

/* Run one step. If it changes to another chat, the file of the present chat is closed before, so
 * that the step does not change this file. */
static enum undo_result run_step(struct command_host *host, const struct undo_step *step)
{
    struct transcript *t = &host->chat->transcript;
    const size_t before = t->now.chat_number;
    const bool leaves = step->chat(t) != before;
    if (leaves && !chat_pause_named(host->chat))
        host->write_failed = true;
    const enum undo_result result = step->run(t);
    if (leaves)
        chat_resume_named(host->chat); /* after a failed step it opens the same file again */
    return result;
}

/* Run the step as often as `args` says, once without an argument. Stop early if nothing is left to
 * do or memory runs out. */
static bool repeat_step(struct command_host *host, struct bn_str args, const struct undo_step *step)
{
    static const char *const commands[CUT_N] = {[CUT_CLEAR] = "clear",
                                                [CUT_FORGET] = "forget",
                                                [CUT_EDIT] = "edit",
                                                [CUT_LOAD] = "load",
                                                [CUT_RETRY] = "retry"};
    const struct transcript *t = &host->chat->transcript;
    const char *verb = step->verb;
    size_t n, n_done = 0;
    char action[60]; /* both texts fit */
    enum cut_kind cut = CUT_NONE;
    enum undo_result result = UNDO_NOTHING;
    if (!command_number(host, args, 1, SIZE_MAX / 100, &n)) /* the largest allowed max */
        return false;
    while (n_done < n) {
        const enum cut_kind next = step->cut(t);
        result = run_step(host, step);
        if (result == UNDO_NOTHING || result == UNDO_NO_MEMORY)
            break;
        cut = next;
        n_done++;
    }
    if (n_done == 0 && result == UNDO_NO_MEMORY)
        return fail_memory(host);
    if (n_done == 0) {
        ui_notice(host->ui, TONE_ERROR, "there is nothing to be %s", verb);
        return false;
    }
    chat_detach_returned(host->chat);
    if (n_done == 1 && cut != CUT_NONE)
        (void)snprintf(action, sizeof(action), "the last /%s is %s", commands[cut], verb);
    else
        (void)snprintf(action, sizeof(action), "%zu %s", n_done, verb);
    finish_change(host, action);
    if (result != UNDO_NO_MEMORY)
        return true;
    ui_notice(host->ui, TONE_ERROR, "out of memory after %zu of %zu; the rest was not %s", n_done,
              n, verb);
    return false;
}

bool cmd_undo(struct command_host *host, struct bn_str args)
{
    static const struct undo_step undo = {transcript_undo, transcript_undo_cut,
                                          transcript_undo_chat_number, "undone"};
    return repeat_step(host, args, &undo);
}

bool cmd_redo(struct command_host *host, struct bn_str args)
{
    static const struct undo_step redo = {transcript_redo, transcript_redo_cut,
                                          transcript_redo_chat_number, "redone"};
    return repeat_step(host, args, &redo);
}

bool cmd_continue(struct command_host *host, struct bn_str args)
{
    struct bn_error err;
    (void)args; /* no arguments */
    if (chat_continue(host->chat, &err))
        return true;
    (void)command_fail_error(host, &err);
    if (err.code == BN_ECONTEXT && host->chat->turn.is_too_long) /* no turn is left to be dropped */
        ui_notice(host->ui, TONE_NOTE, "a larger --ctx gives longer answers");
    return false;
}

bool cmd_clear(struct command_host *host, struct bn_str args)
{
    (void)args; /* no arguments */
    const bool has_file = host->chat->store->named.may_have_turns;
    char path[PATH_BYTES];
    memcpy(path, host->chat->store->named.path, sizeof(path));
    /* Detach the saved chat first: its last write needs the conversation, and finish_change would
     * write the empty one to it. */
    const bool is_saved = chat_pause_named(host->chat);
    host->write_failed |= !is_saved;
    if (!transcript_clear(&host->chat->transcript)) {
        chat_resume_named(host->chat);
        return fail_memory(host);
    }
    if (has_file && is_saved)
        ui_notice(host->ui, TONE_PLAIN, "%s keeps the conversation as it was last saved", path);
    finish_change(host, "cleared (/undo brings it back)");
    return true;
}

/* Whether the model no longer reads the first n turns, because they were dropped automatically. */
static bool are_left_out(const struct command_host *host, size_t n)
{
    const struct prompt_window w = chat_window(host->chat);
    return w.n_first == 0 && n <= w.n_skipped;
}

/* The turns that /forget has removed were left out already. Tell how many more have to go until the
 * context has more space. */
static void show_nothing_freed(struct command_host *host)
{
    ui_notice(host->ui, TONE_NOTE,
              "no space was freed, because what was removed was no longer in the context; /forget "
              "%zu also removes the oldest turn that is in it",
              chat_window(host->chat).n_skipped + 1);
}

bool cmd_forget(struct command_host *host, struct bn_str args)
{
    struct transcript *t = &host->chat->transcript;
    size_t n;
    char action[40]; /* fits */
    if (t->now.n == 0)
        return command_fail(host, "there is nothing to forget");
    if (!command_number(host, args, 1, SIZE_MAX / 100, &n)) /* the largest allowed max */
        return false;
    n = size_min(n, t->now.n); /* as /undo, which also stops when nothing is left */
    const bool were_left_out = are_left_out(host, n);
    if (!transcript_forget(t, n))
        return fail_memory(host);
    (void)snprintf(action, sizeof(action), "%zu forgotten", n);
    finish_change(host, action);
    if (were_left_out)
        show_nothing_freed(host);
    return true;
}
