/*
 * /copy: copies the last answer, a code block of it, or the whole conversation to the clipboard.
 */
#include "app/commands/commands.h"
#include "app/terminal/clipboard.h"

/* `name` is what the notice calls the text, such as "the answer". */
static bool copy(struct command_host *host, struct bn_str text, const char *name)
{
    struct bn_error err;
    const char *through; /* the program or method that was used */
    if (!clipboard_put(text, &through, &err))
        return command_fail(host, err.text);
    ui_notice(host->ui, TONE_PLAIN, "%s copied, %zu bytes, by %s", name, text.n_bytes, through);
    return true;
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
    if (s->system.n_bytes > 0)
        add_message(&text, "system", s->system);
    for (size_t i = 0; i < s->n; i++) {
        add_message(&text, "user", s->items[i]->user);
        if (s->items[i]->answer.finish != FINISH_NONE)
            add_message(&text, "assistant", s->items[i]->answer.text);
    }
    const bool ok = text.failed ? command_fail(host, "out of memory for the conversation")
                                : copy(host, strbuf_str(&text), "the conversation");
    strbuf_finish(&text);
    return ok;
}

static bool copy_code(struct command_host *host, struct bn_str args)
{
    const struct exchange *last = transcript_last(&host->chat->transcript);
    const size_t n_blocks = clipboard_code_count(last->answer.text);
    struct bn_str code;
    size_t n;
    while (args.n_bytes > 0 && args.ptr[0] == ' ')
        args = (struct bn_str){args.ptr + 1, args.n_bytes - 1};
    if (n_blocks == 0)
        return command_fail(host, "there is no block of code in the last answer");
    if (!command_number(host, args, n_blocks, n_blocks, &n))
        return false;
    (void)clipboard_code_block(last->answer.text, n, &code); /* n is at most the number of blocks */
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
    if (args.n_bytes == 0 || bn_str_is(args, "last"))
        return copy(host, last->answer.text, "the answer");
    if (args.n_bytes >= 4 && memcmp(args.ptr, "code", 4) == 0 &&
        (args.n_bytes == 4 || args.ptr[4] == ' '))
        return copy_code(host, (struct bn_str){args.ptr + 4, args.n_bytes - 4});
    return command_fail(host, "expected /copy, /copy last, /copy code [N] or /copy all");
}
