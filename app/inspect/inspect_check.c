/*
 * The verb check: is the file intact, and does the model predict text on this machine?
 *
 * A fault of the file ends the check with an error line and EXIT_MODEL. Weights that load and run
 * but do not predict text are only a warning, because a file with random weights is valid.
 */
#include "app/common/check/model_check.h"
#include "app/common/check/sense_check.h"
#include "app/inspect/inspect.h"
#include "engine/file_gguf.h"
#include "engine/gguf/gguf_le.h"

#include <inttypes.h>
#include <stdarg.h>

enum result { RESULT_OK, RESULT_WARNING };

static void print_line(enum result result, const char *title, const char *fmt, ...) BN_PRINTF(3, 4);
static void print_line(enum result result, const char *title, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* cut if too long */
    va_end(args);
    report_progress_erase();
    printf("%-8s %-10s ", result == RESULT_OK ? "ok" : "warning", title);
    report_safe(stdout, bn_str_of(text));
    putchar('\n');
    fflush(stdout); /* the next check may take seconds */
}

static void print_codes(const struct model_check *c)
{
    const size_t n_binary = c->n_binary_tensors, n_others = c->n_ternary_tensors - n_binary;
    char kinds[80], zeros[40] = "";
    if (n_binary > 0 && n_others > 0)
        (void)snprintf(kinds, sizeof(kinds), "%zu binary and %zu ternary", n_binary, n_others);
    else
        (void)snprintf(kinds, sizeof(kinds), "%zu %s", n_binary + n_others,
                       n_binary > 0 ? "binary" : "ternary");
    if (n_binary == 0 || c->n_zero_codes > 0) /* binary weights are 0 only where the scale is 0 */
        (void)snprintf(zeros, sizeof(zeros), ", %.1f %% of them zero",
                       c->n_codes ? 100.0 * (double)c->n_zero_codes / (double)c->n_codes : 0);
    print_line(RESULT_OK, "codes", "%s tensors, %" PRIu64 " weights%s", kinds, c->n_codes, zeros);
}

/* The callback of model_check_file after each step that has passed. */
static void print_step(void *ud, enum model_check_step step, const struct model_check *c)
{
    /* What the next step checks. */
    static const char *const next[] = {[CHECK_STRUCTURE] = "codes",
                                       [CHECK_CODES] = "numbers",
                                       [CHECK_NUMBERS] = "kernels",
                                       [CHECK_ISA] = "kernels"};
    (void)ud;
    switch (step) {
    case CHECK_STRUCTURE:
        print_line(RESULT_OK, "structure", "%zu keys, %zu tensors, %s with %zu layers", c->n_keys,
                   c->n_tensors, c->arch, c->n_layers);
        break;
    case CHECK_CODES:
        print_codes(c);
        break;
    case CHECK_NUMBERS:
        print_line(RESULT_OK, "numbers", "%" PRIu64 " numbers in tables and norms, all finite",
                   c->n_numbers);
        break;
    case CHECK_ISA:
        if (c->isa_warning[0])
            print_line(RESULT_WARNING, "kernels", "%s", c->isa_warning);
        break;
    case CHECK_KERNELS:
        print_line(RESULT_OK, "kernels", "%s computes the reference results on %zu tensors", c->isa,
                   c->n_ternary_tensors);
        return;
    }
    report_progress("checking the %s", next[step]);
}

static enum exit_code check_file(struct inspect *in)
{
    struct bn_model_config cfg = {.notes = &in->notes};
    struct model_check check = {.done = print_step};
    struct bn_error err;
    model_args_config(in->options, &cfg);
    return model_check_file(in->file, &cfg, &check, &err) ? EXIT_DONE : inspect_fail_load(in, &err);
}

static const char *type_name(const struct gguf *g, struct bn_str tensor)
{
    return tensor_geometries[gguf_find_tensor_str(g, tensor)->type].name;
}

/* A tensor with a type that needs less room than the file has for it was probably written with
 * another type. Behind the last tensor there can also be bytes that another program has added. */
static void report_gaps(const struct inspect *in)
{
    const struct gguf *g = bn_file_gguf(in->file);
    if (g->n_gaps > 0)
        print_line(RESULT_WARNING, "gaps",
                   "unused room behind tensors: %zu, the first of %zu bytes behind '%.*s' (%s); "
                   "the types in the file may be wrong",
                   g->n_gaps, g->gap.n_bytes, STR_ARG(g->gap.name), type_name(g, g->gap.name));
    if (g->end.n_bytes > 0)
        print_line(RESULT_WARNING, "gaps",
                   "the file has %zu bytes behind the last tensor, '%.*s' (%s); they were added, "
                   "or the type of this tensor is wrong",
                   g->end.n_bytes, STR_ARG(g->end.name), type_name(g, g->end.name));
}

/* The model must be open. */
static enum exit_code measure_sense(struct inspect *in, struct sense_result *out)
{
    struct bn_error err;
    report_progress("checking the prediction of a short text");
    const bool ok = sense_check(in->model, in->file, in->tokenizer, NULL, out, &err);
    report_progress_erase();
    return ok ? EXIT_DONE : report_error(INSPECT, STAGE_RUN, &err);
}

/* An I2_S file does not record the layout of its weights, so open the model with each of the other
 * layouts and print those that predict text. BN_EFORMAT: the tensors do not fit the layout, or have
 * invalid codes in it, so it is not the layout of the file. The indices of `layouts` are those of
 * the choices of --i2s-layout. */
static enum exit_code try_layouts(struct inspect *in)
{
    static const char *const layouts[] = {"a", "b", "c"};
    const size_t given = options_choice(in->options, "i2s-layout");
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        struct sense_result r;
        struct bn_error err;
        if (i == given)
            continue;
        if (!options_set(in->options, "i2s-layout", layouts[i], OPTION_FROM_COMMAND, &err))
            return report_error(INSPECT, STAGE_RUN, &err);
        inspect_close_model(in);
        if (!inspect_try_model(in, &err)) {
            if (err.code == BN_EFORMAT)
                continue;
            return inspect_fail_load(in, &err);
        }
        const enum exit_code code = measure_sense(in, &r);
        if (code != EXIT_DONE)
            return code;
        if (!r.is_nonsense)
            print_line(RESULT_WARNING, "layout",
                       "--i2s-layout %s predicts text: %.2f nats per token", layouts[i], r.loss);
    }
    return EXIT_DONE;
}

static enum exit_code check_prediction(struct inspect *in)
{
    struct sense_result r;
    enum exit_code code = inspect_open_model(in);
    if (code == EXIT_DONE)
        code = measure_sense(in, &r);
    if (code != EXIT_DONE)
        return code;
    const struct bn_model_info *info = bn_model_info(in->model);
    const bool is_i2s = bn_str_is(bn_str_of(info->quantisation), "I2_S");
    print_line(RESULT_OK, "device", "%s", info->device);
    if (r.why)
        print_line(RESULT_OK, "prediction", "not judged: %s", r.why);
    else
        print_line(r.is_nonsense ? RESULT_WARNING : RESULT_OK, "prediction",
                   "%s: %.2f nats per token on a short text; word frequencies have %.2f",
                   r.is_nonsense ? "the model does not predict text" : "the model predicts text",
                   r.loss, r.bound);
    return is_i2s && r.is_nonsense ? try_layouts(in) : EXIT_DONE;
}

enum exit_code inspect_check(struct inspect *in)
{
    enum exit_code code = inspect_open_file(in);
    if (code == EXIT_DONE)
        code = check_file(in);
    if (code == EXIT_DONE) {
        report_gaps(in);
        code = inspect_open_tokenizer(in);
    }
    if (code == EXIT_DONE)
        code = inspect_open_template(in);
    if (code != EXIT_DONE)
        return code;
    print_line(RESULT_OK, "text", "%zu tokens, template %s", tokenizer_info(in->tokenizer)->n_vocab,
               template_info(in->template)->name);
    /* All warnings: inspect_open_model below only repeats those that check_file has noted. */
    for (size_t i = 0; i < in->notes.n; i++)
        if (in->notes.items[i].kind == BN_NOTE_WARNING)
            print_line(RESULT_WARNING, in->notes.items[i].id, "%s", in->notes.items[i].text);
    return check_prediction(in);
}
