/*
 * Functions that the verbs share: opening files and models, encoding, output. See inspect.h.
 */
#include "app/common/term_text.h"
#include "app/inspect/inspect.h"

#include <string.h>
#include <unistd.h>

enum exit_code inspect_fail_load(const struct inspect *in, struct bn_error *err)
{
    (void)bn_fail_prefix(err, "%s", in->words[0]);
    return report_error(INSPECT, STAGE_LOAD, err);
}

enum exit_code inspect_open_file(struct inspect *in)
{
    struct bn_error err;
    /* The errors of this call already name the path. */
    return bn_file_open(in->words[0], &in->file, &err) ? EXIT_DONE
                                                       : report_error(INSPECT, STAGE_LOAD, &err);
}

enum exit_code inspect_open_tokenizer(struct inspect *in)
{
    struct bn_error err;
    return model_args_tokenizer(in->options, in->file, &in->notes, &in->tokenizer, &err)
               ? EXIT_DONE
               : inspect_fail_load(in, &err);
}

enum exit_code inspect_open_template(struct inspect *in)
{
    struct bn_error err;
    if (model_args_template(in->options, in->file, in->tokenizer, &in->notes, &in->template, &err))
        return EXIT_DONE;
    /* A file of --template that cannot be read is EXIT_FILE. EXIT_MODEL is for the model file. */
    const bool is_of_model = in->file && strcmp(options_text(in->options, "template"), "auto") == 0;
    return is_of_model ? inspect_fail_load(in, &err) : report_error(INSPECT, STAGE_RUN, &err);
}

static void on_load(void *ud, size_t n_done, size_t n_total)
{
    (void)ud;
    report_progress_percent("loading", n_done, n_total);
}

bool inspect_try_model(struct inspect *in, struct bn_error *err)
{
    struct bn_model_config cfg = {.notes = &in->notes, .progress = {.report = on_load}};
    model_args_config(in->options, &cfg);
    report_progress("loading");
    const bool ok = bn_model_open(in->file, &cfg, &in->model, err);
    report_progress_erase();
    return ok;
}

enum exit_code inspect_open_model(struct inspect *in)
{
    struct bn_error err;
    return inspect_try_model(in, &err) ? EXIT_DONE : inspect_fail_load(in, &err);
}

enum exit_code inspect_open_session(struct inspect *in, size_t n_ctx)
{
    const struct bn_session_config cfg = {.n_ctx = n_ctx};
    struct bn_error err;
    return bn_session_open(in->model, &cfg, &in->session, &err) ? EXIT_DONE
                                                                : inspect_fail_load(in, &err);
}

void inspect_close_model(struct inspect *in)
{
    bn_session_close(in->session);
    bn_model_close(in->model);
    in->session = NULL;
    in->model = NULL;
}

void inspect_close(struct inspect *in)
{
    inspect_close_model(in);
    template_close(in->template);
    tokenizer_close(in->tokenizer);
    bn_file_close(in->file);
}

bool inspect_encode(const struct inspect *in, enum segment_kind kind, struct bn_str text,
                    struct token_list *out, struct bn_error *err)
{
    const struct segment segment = {.kind = kind, .text = text, .message = SEGMENT_NO_MESSAGE};
    return tokenizer_encode(in->tokenizer, &segment, 1, TOKENIZER_BOS_NEVER, out, err);
}

void inspect_put(struct bn_str text)
{
    if (isatty(STDOUT_FILENO))
        report_text(stdout, text, TERM_KEEP_LINES);
    else
        fwrite(text.ptr, 1, text.n_bytes, stdout);
}

void inspect_put_ids(const int32_t *ids, size_t n_ids)
{
    for (size_t i = 0; i < n_ids; i++)
        printf("%s%d", i ? " " : "", (int)ids[i]);
    putchar('\n');
}
