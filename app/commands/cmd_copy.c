/*
 * /copy: copies the last answer, a code block of it, or the whole conversation to the clipboard.
 */
#include "app/commands/commands.h"
#include "app/terminal/clipboard.h"

/* `name` is what the notice calls the text, such as "the answer". */
static bool copy(struct command_host *host, struct bn_str text, const char *name)
{
    struct bn_error err;
    const char *program;
    if (!clipboard_put(text, &program, &err))
        return command_fail_error(host, &err);
    if (program)
        ui_notice(host->ui, TONE_PLAIN, "%s copied, %zu bytes, by %s", name, text.n_bytes, program);
    else
        ui_notice(
            host->ui, TONE_PLAIN,
            "%s was sent to the clipboard of the terminal (OSC 52), %zu bytes; some terminals do "
            "not accept it",
            name, text.n_bytes);
    return true;
}

/* Append the answer without its thought. False: out of memory; the reason was shown. */
static bool add_answer(struct command_host *host, const struct exchange *e, struct strbuf *out)
{
    struct strbuf thought = {0};
    chat_split_answer(host->chat, e, &thought, out);
    const bool ok = !thought.failed && !out->failed;
    strbuf_finish(&thought);
    return ok || command_fail(host, "out of memory for the answer");
}

static void add_message(struct strbuf *out, const char *role, struct bn_str text)
{
    strbuf_addf(out, "%s%s:\n", out->n_bytes > 0 ? "\n\n" : "", role);
    strbuf_add_str(out, text);
}

static bool copy_all(struct command_host *host)
{
    const struct transcript_state *s = &host->chat->transcript.now;
    struct strbuf text = {0};
    bool ok = true;
    if (s->system.n_bytes > 0)
        add_message(&text, "system", s->system);
    for (size_t i = 0; ok && i < s->n; i++) {
        add_message(&text, "user", s->items[i]->user);
        if (s->items[i]->answer.finish == FINISH_NONE)
            continue;
        add_message(&text, "assistant", (struct bn_str){0});
        ok = add_answer(host, s->items[i], &text);
    }
    if (ok && text.failed)
        ok = command_fail(host, "out of memory for the conversation");
    ok = ok && copy(host, strbuf_str(&text), "the conversation");
    strbuf_finish(&text);
    return ok;
}

static bool copy_code(struct command_host *host, struct bn_str answer, struct bn_str args)
{
    const size_t n_blocks = clipboard_code_count(answer);
    struct bn_str code;
    size_t n;
    while (args.n_bytes > 0 && args.ptr[0] == ' ')
        args = (struct bn_str){args.ptr + 1, args.n_bytes - 1};
    if (n_blocks == 0)
        return command_fail(host, "there is no block of code in the last answer");
    if (!command_number(host, args, n_blocks, n_blocks, &n))
        return false;
    (void)clipboard_code_block(answer, n, &code); /* n is at most the number of blocks */
    return copy(host, code, "the code");
}

bool cmd_copy(struct command_host *host, struct bn_str args)
{
    const struct exchange *last = transcript_last(&host->chat->transcript);
    if (!last)
        return command_fail(host, "nothing was said yet");
    if (bn_str_is(args, "all"))
        return copy_all(host);
    if (last->answer.finish == FINISH_NONE)
        return command_fail(host, "there is no answer yet");
    const bool is_whole = args.n_bytes == 0 || bn_str_is(args, "last");
    const bool is_code = args.n_bytes >= 4 && memcmp(args.ptr, "code", 4) == 0 &&
                         (args.n_bytes == 4 || args.ptr[4] == ' ');
    if (!is_whole && !is_code)
        return command_fail(host, "expected /copy, /copy last, /copy code [N] or /copy all");
    struct strbuf answer = {0};
    const bool ok = add_answer(host, last, &answer) &&
                    (is_whole ? copy(host, strbuf_str(&answer), "the answer")
                              : copy_code(host, strbuf_str(&answer),
                                          (struct bn_str){args.ptr + 4, args.n_bytes - 4}));
    strbuf_finish(&answer);
    return ok;
}
