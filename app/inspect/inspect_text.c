/*
 * The verbs about text: tokenize, detokenize, prompt.
 */
#include "app/common/file/paths.h"
#include "app/common/json_out.h"
#include "app/inspect/inspect.h"
#include "engine/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STDIN_MAX_BYTES ((size_t)1 << 30)     /* bounds the memory for text and ids */
#define MESSAGES_MAX_BYTES ((size_t)64 << 20) /* far more than a context can hold */

static enum exit_code tokenize(struct inspect *in, struct bn_str text)
{
    const int32_t bos = tokenizer_info(in->tokenizer)->bos;
    const bool is_special = options_flag(in->options, "special");
    struct token_list ids = {0};
    struct bn_error err;
    if (options_flag(in->options, "bos") && bos == TOKEN_NONE)
        return report_fail(INSPECT, EXIT_USAGE,
                           "--bos: this vocabulary has no beginning-of-text token");
    bool ok = !options_flag(in->options, "bos") || token_list_push(&ids, bos, &err);
    ok =
        ok && inspect_encode(in, is_special ? SEGMENT_TEMPLATE : SEGMENT_MESSAGE, text, &ids, &err);
    if (ok)
        inspect_put_ids(ids.ids, ids.n);
    token_list_finish(&ids);
    return ok ? EXIT_DONE : report_error(INSPECT, STAGE_RUN, &err);
}

/* Open the tokenizer and pass all of standard input to `convert`, with a 0 byte after the text. */
static enum exit_code convert_stdin(struct inspect *in,
                                    enum exit_code (*convert)(struct inspect *, struct bn_str))
{
    enum exit_code code = inspect_open_file(in);
    if (code == EXIT_DONE)
        code = inspect_open_tokenizer(in);
    if (code != EXIT_DONE)
        return code;
    report_warnings(INSPECT, &in->notes);
    struct bn_error err;
    char *text;
    size_t n_bytes;
    if (!path_read_all("-", STDIN_MAX_BYTES, &text, &n_bytes, &err))
        return report_error(INSPECT, STAGE_RUN, &err);
    code = convert(in, (struct bn_str){text, n_bytes});
    mem_free(text);
    return code;
}

enum exit_code inspect_tokenize(struct inspect *in)
{
    return convert_stdin(in, tokenize);
}

/* Parse the next id and move *at behind it; white space or commas separate ids. Returns false at
 * the end, or with *bad set and *at at a word that is not an id less than n_vocab. */
static bool next_id(const char **at, size_t n_vocab, int32_t *id, bool *bad)
{
    *at += strspn(*at, " \t\r\n,");
    if (**at == '\0')
        return false;
    char *end;
    errno = 0;
    const unsigned long v = strtoul(*at, &end, 10);
    /* strchr also finds the 0 byte at the end of the text. */
    const bool is_number = **at >= '0' && **at <= '9' && strchr(" \t\r\n,", *end);
    *bad = !is_number || errno || v >= n_vocab;
    if (*bad)
        return false;
    *id = (int32_t)v;
    *at = end;
    return true;
}

/* Check all ids before the first byte is written: a script must not take a part of a text for the
 * whole one. */
static enum exit_code check_ids(struct bn_str text, size_t n_vocab)
{
    const char *at = text.ptr;
    bool bad = false;
    int32_t id;
    while (next_id(&at, n_vocab, &id, &bad))
        ;
    const size_t offset = (size_t)(at - text.ptr);
    if (bad || offset < text.n_bytes) /* the offset: a NUL byte ends the loop, too */
        return report_fail(INSPECT, EXIT_USAGE,
                           "standard input, byte %zu: expected an id from 0 to %zu, got '%.20s'",
                           offset, n_vocab - 1, at);
    return EXIT_DONE;
}

static enum exit_code detokenize(struct inspect *in, struct bn_str text)
{
    const struct detok_config cfg = {
        .special =
            options_flag(in->options, "special") ? TOKENIZER_SPECIAL_SHOW : TOKENIZER_SPECIAL_HIDE,
        .at_start = true,
    };
    const size_t n_vocab = tokenizer_info(in->tokenizer)->n_vocab;
    const enum exit_code code = check_ids(text, n_vocab);
    struct detok *d;
    struct bn_error err;
    if (code != EXIT_DONE)
        return code;
    if (!detok_open(in->tokenizer, &cfg, &d, &err))
        return report_error(INSPECT, STAGE_RUN, &err);
    const char *at = text.ptr;
    bool bad = false, ok = true;
    for (int32_t id; ok && next_id(&at, n_vocab, &id, &bad);) {
        struct bn_str piece;
        bool stopped = false; /* stays false: cfg has no stop strings */
        ok = detok_push(d, id, &piece, &stopped, &err);
        if (ok)
            inspect_put(piece);
    }
    if (ok)
        inspect_put(detok_flush(d));
    detok_close(d);
    return ok ? EXIT_DONE : report_error(INSPECT, STAGE_RUN, &err);
}

enum exit_code inspect_detokenize(struct inspect *in)
{
    return convert_stdin(in, detokenize);
}

static bool read_messages(const char *path, json_t **out, struct bn_error *err)
{
    char *text;
    size_t n_bytes;
    if (!path_read_all(path, MESSAGES_MAX_BYTES, &text, &n_bytes, err))
        return bn_fail_prefix(err, "--messages");
    json_error_t where;
    *out = json_loadb(text, n_bytes, JSON_ALLOW_NUL, &where); /* a message may contain \u0000 */
    mem_free(text);
    if (*out)
        return true;
    json_correct_error(&where);
    return bn_fail(err, BN_EARG, "--messages %s, line %d, column %d: %s", path, where.line,
                   where.column, where.text);
}

static enum exit_code print_prompt(struct inspect *in, const struct template_output *output)
{
    if (!options_flag(in->options, "ids")) {
        for (size_t i = 0; i < output->n_segments; i++)
            inspect_put(output->segments[i].text);
        return EXIT_DONE;
    }
    struct token_list ids = {0};
    struct bn_error err;
    const bool ok = tokenizer_encode(in->tokenizer, output->segments, output->n_segments,
                                     TOKENIZER_BOS_AUTO, &ids, &err);
    if (ok)
        inspect_put_ids(ids.ids, ids.n);
    token_list_finish(&ids);
    return ok ? EXIT_DONE : report_error(INSPECT, STAGE_RUN, &err);
}

static enum exit_code render(struct inspect *in, struct template_arena *arena, const json_t *json)
{
    struct template_value *messages, *args;
    struct template_output output;
    struct bn_error err;
    if (!json_to_template_messages(json, arena, &messages, &err)) {
        (void)bn_fail_prefix(&err, "--messages");
        return report_error(INSPECT, STAGE_RUN, &err);
    }
    if (!model_args_template_args(in->options, in->template, arena, &args, &err))
        return report_error(INSPECT, STAGE_RUN, &err);
    const struct template_input input = {
        .messages = messages,
        .args = args,
        .add_generation_prompt = options_flag(in->options, "generation-prompt"),
        .now = time(NULL),
    };
    if (!template_render(in->template, arena, &input, &output, &err))
        return report_error(INSPECT, STAGE_RUN, &err);
    return print_prompt(in, &output);
}

static enum exit_code open_for_prompt(struct inspect *in)
{
    enum exit_code code = EXIT_DONE;
    if (!options_given(in->options, "messages"))
        return report_fail(INSPECT, EXIT_USAGE, "prompt needs --messages FILE");
    if (in->n_words == 0 && !options_given(in->options, "template"))
        return report_fail(INSPECT, EXIT_USAGE, "prompt needs a model or --template");
    if (in->n_words == 0 && options_flag(in->options, "ids"))
        return report_fail(INSPECT, EXIT_USAGE, "--ids needs a model");
    if (in->n_words > 0)
        code = inspect_open_file(in);
    if (code == EXIT_DONE && in->n_words > 0)
        code = inspect_open_tokenizer(in);
    return code == EXIT_DONE ? inspect_open_template(in) : code;
}

enum exit_code inspect_prompt(struct inspect *in)
{
    enum exit_code code = open_for_prompt(in);
    if (code != EXIT_DONE)
        return code;
    report_warnings(INSPECT, &in->notes);
    struct bn_error err;
    json_t *json;
    if (!read_messages(options_text(in->options, "messages"), &json, &err))
        return report_error(INSPECT, STAGE_RUN, &err);
    struct template_arena *arena = template_arena_open();
    if (arena)
        code = render(in, arena, json);
    else
        code = report_fail(INSPECT, EXIT_INTERNAL, "out of memory for the prompt");
    template_arena_close(arena);
    json_decref(json);
    return code;
}
