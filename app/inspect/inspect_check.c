/*
 * check: is this file whole, and do its weights speak on this machine?
 *
 * What is broken ends with an error line and the code of a model that cannot be loaded; weights
 * that load and run but foresee nothing are a warning, since random weights are a legitimate file.
 */
#include "app/inspect/inspect_check.h"

#include "engine/base/memory.h"
#include "engine/gguf/gguf_file.h"

#include <math.h>
#include <stdarg.h>

/* Plain English that any language model has met the like of; about 60 tokens. */
static const char canned_text[] =
    "The sun rises in the east and sets in the west. Water is made of hydrogen and oxygen, and it "
    "freezes when the temperature falls below zero degrees. Most people drink a cup of coffee or "
    "tea "
    "in the morning before they go to work.";

/* Guessing every token alike loses log(n_vocab); knowing only how frequent each is loses about 0.65
 * of that with a vocabulary of a hundred thousand. A model of language does far better. */
#define SPEAKS_BELOW 0.6

void check_say(enum check_result result, const char *title, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* cut if too long */
    va_end(args);
    printf("%-8s %-10s ", result == CHECK_OK ? "ok" : "warning", title);
    report_safe(stdout, bn_str_of(text));
    putchar('\n');
    fflush(stdout); /* the next part may take seconds */
}

static bool check_parts(const struct inspect *in, const struct model *m, struct bn_error *err)
{
    check_say(CHECK_OK, "structure", "%zu keys, %zu tensors, %s with %zu layers", m->gguf->n_kvs,
              m->gguf->n_tensors, m->arch->name, m->hp.n_layers);
    if (!check_codes(m, err) || !check_numbers(m, err))
        return false;
    return check_kernels(m, options_text(in->options, "isa"), err);
}

static enum exit_code check_file(struct inspect *in)
{
    static const enum i2s_layout layouts[] = {
        [BN_I2S_A] = I2S_A, [BN_I2S_B] = I2S_B, [BN_I2S_C] = I2S_C};
    struct bn_model_config cfg = {0};
    model_args_config(in->options, &cfg);
    const struct model_config model = {.i2s_layout = layouts[cfg.i2s_layout],
                                       .no_repair = cfg.no_repair};
    struct bn_error err;
    struct model *m = NULL;
    const bool ok =
        model_open(bn_file_gguf(in->file), &model, &m, &err) && check_parts(in, m, &err);
    model_close(m);
    return ok ? EXIT_DONE : inspect_fail_load(in, &err);
}

/* ---- does it speak? ---- */

struct listener {
    const int32_t *ids;
    size_t n_ids, n_vocab;
    double sum;
};

static bool hear_row(void *ud, size_t pos, const float *logits, struct bn_error *err)
{
    struct listener *l = ud;
    (void)err; /* nothing here fails */
    if (pos + 1 < l->n_ids)
        l->sum += inspect_loss(logits, l->n_vocab, l->ids[pos + 1]);
    return true;
}

static bool encode_canned(struct inspect *in, struct token_list *ids, struct bn_error *err)
{
    const struct tokenizer_info *info = tokenizer_info(in->tokenizer);
    if (info->add_bos && info->bos != TOKEN_NONE && !token_list_push(ids, info->bos, err))
        return false;
    return inspect_encode(in, SEGMENT_MESSAGE, bn_str_of(canned_text), ids, err);
}

static bool mean_loss(struct inspect *in, const struct token_list *ids, double *out,
                      struct bn_error *err)
{
    struct listener l = {ids->ids, ids->n, bn_model_info(in->model)->n_vocab, 0};
    const struct inspect_rows rows = {hear_row, &l};
    if (ids->n < 2)
        return bn_fail(err, BN_EFORMAT, "the vocabulary makes %zu tokens of a sentence", ids->n);
    if (!inspect_eval(in, ids->ids, ids->n - 1, &rows, err))
        return false;
    *out = l.sum / (double)(ids->n - 1);
    return true;
}

/* Open the model in one I2_S layout, hear it, close it. */
static enum exit_code hear(struct inspect *in, const struct token_list *ids, const char *layout,
                           double *loss)
{
    struct bn_error err;
    if (layout && !options_set(in->options, "i2s-layout", layout, OPTION_FROM_COMMAND, &err))
        return report_error(INSPECT, STAGE_RUN, &err);
    enum exit_code code = inspect_open_model(in);
    if (code == EXIT_DONE)
        code = inspect_open_session(in, ids->n);
    if (code == EXIT_DONE && !mean_loss(in, ids, loss, &err))
        code = report_error(INSPECT, STAGE_RUN, &err);
    return code;
}

static void close_model(struct inspect *in)
{
    bn_session_close(in->session);
    bn_model_close(in->model);
    in->session = NULL;
    in->model = NULL;
}

/* I2_S files do not say in which order their weights lie: would another order speak? */
static enum exit_code try_layouts(struct inspect *in, const struct token_list *ids, double limit)
{
    static const char *const layouts[] = {"a", "b", "c"};
    const size_t given = options_choice(in->options, "i2s-layout");
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        double loss;
        if (i == given)
            continue;
        close_model(in);
        const enum exit_code code = hear(in, ids, layouts[i], &loss);
        if (code != EXIT_DONE)
            return code;
        if (loss < limit)
            check_say(CHECK_WARNING, "layout", "--i2s-layout %s speaks: %.2f nats a token",
                      layouts[i], loss);
    }
    return EXIT_DONE;
}

static enum exit_code check_speech(struct inspect *in, const struct token_list *ids)
{
    double loss;
    const enum exit_code code = hear(in, ids, NULL, &loss);
    if (code != EXIT_DONE)
        return code;
    const double blind = log((double)bn_model_info(in->model)->n_vocab);
    const bool is_i2s =
        strcmp(bn_model_info(in->model)->quantisation, tensor_geometries[TENSOR_I2_S].name) == 0;
    check_say(CHECK_OK, "device", "%s", bn_model_info(in->model)->device);
    if (loss < SPEAKS_BELOW * blind) {
        check_say(CHECK_OK, "speech", "%.2f nats a token on a short text; guessing blindly is %.2f",
                  loss, blind);
        return EXIT_DONE;
    }
    check_say(
        CHECK_WARNING, "speech",
        "these weights do not speak: %.2f nats a token on a short text; guessing blindly is %.2f",
        loss, blind);
    return is_i2s ? try_layouts(in, ids, SPEAKS_BELOW * blind) : EXIT_DONE;
}

enum exit_code inspect_check(struct inspect *in)
{
    enum exit_code code = inspect_open_file(in);
    if (code == EXIT_DONE)
        code = check_file(in);
    if (code == EXIT_DONE)
        code = inspect_open_tokenizer(in);
    if (code == EXIT_DONE)
        code = inspect_open_template(in);
    if (code != EXIT_DONE)
        return code;
    check_say(CHECK_OK, "text", "%zu tokens, template %s", tokenizer_info(in->tokenizer)->n_vocab,
              template_info(in->template)->name);
    for (size_t i = 0; i < in->notes.n; i++)
        if (in->notes.items[i].kind == BN_NOTE_WARNING)
            check_say(CHECK_WARNING, in->notes.items[i].id, "%s", in->notes.items[i].text);
    struct bn_error err;
    struct token_list ids = {0};
    code = encode_canned(in, &ids, &err) ? check_speech(in, &ids)
                                         : report_error(INSPECT, STAGE_RUN, &err);
    token_list_finish(&ids);
    return code;
}
