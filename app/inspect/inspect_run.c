/*
 * The verbs that evaluate token ids with the model: logits, perplexity, experts.
 */
#include "app/common/check/logit_rows.h"
#include "app/common/file/paths.h"
#include "app/common/json_out.h"
#include "app/inspect/inspect.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define TEXT_MAX_BYTES ((size_t)1 << 30) /* of FILE; bounds the memory for text and ids */
#define SHOWN_EXPERTS 5                  /* experts shown for each layer, the most used first */
/* Most ids of a window without --ctx, as in the published perplexities of these models. */
#define WINDOW_TOKENS 2048

/* Progress of a text whose ids are evaluated in several calls. */
struct part {
    size_t n_before, n_total; /* ids before those of the running call, and all ids */
};

static void on_ids(void *ud, size_t n_done, size_t n_total)
{
    const struct part *part = ud;
    (void)n_total; /* only of this call */
    report_progress_percent("reading", part->n_before + n_done, part->n_total);
}

struct row_writer {
    FILE *out;
    size_t n_vocab;
};

static bool write_row(void *ud, size_t pos, const float *logits, struct bn_error *err)
{
    const struct row_writer *w = ud;
    if (fwrite(logits, sizeof(*logits), w->n_vocab, w->out) == w->n_vocab)
        return true;
    return bn_fail(err, BN_EIO, "cannot write row %zu: %s", pos, strerror(errno));
}

/* The ids of --tokens, checked against the vocabulary; free them with mem_free. NULL on error. */
static int32_t *read_tokens(struct inspect *in, size_t n_vocab, size_t *n_ids, struct bn_error *err)
{
    const int64_t *given = options_ints(in->options, "tokens", n_ids);
    int32_t *ids = mem_alloc(*n_ids, sizeof(*ids));
    if (!ids) {
        (void)bn_fail(err, BN_ENOMEM, "out of memory for %zu ids", *n_ids);
        return NULL;
    }
    for (size_t i = 0; i < *n_ids; i++) {
        if (given[i] >= (int64_t)n_vocab) {
            (void)bn_fail(err, BN_EARG, "--tokens: id %lld is not in the vocabulary of %zu",
                          (long long)given[i], n_vocab);
            mem_free(ids);
            return NULL;
        }
        ids[i] = (int32_t)given[i];
    }
    return ids;
}

/* Evaluate the first --reuse ids in a call of their own, then the others, and write all rows. After
 * an error the file is incomplete. */
static bool write_logits(struct inspect *in, const int32_t *ids, size_t n_ids, struct bn_error *err)
{
    const char *path = options_text(in->options, "out");
    const size_t n_first = (size_t)options_int(in->options, "reuse");
    struct row_writer writer = {fopen(path, "wb"), bn_model_info(in->model)->n_vocab};
    struct part part = {.n_total = n_ids};
    const struct logit_rows rows = {write_row, &writer, {on_ids, &part}};
    if (!writer.out)
        return bn_fail(err, BN_EIO, "cannot write '%s': %s", path, strerror(errno));
    report_progress("reading");
    bool ok = logit_rows_eval(in->model, in->session, ids, n_first, &rows, err);
    part.n_before = n_first;
    ok = ok && logit_rows_eval(in->model, in->session, ids + n_first, n_ids - n_first, &rows, err);
    report_progress_erase();
    if (fclose(writer.out) != 0 && ok)
        ok = bn_fail(err, BN_EIO, "cannot write '%s': %s", path, strerror(errno));
    return ok;
}

enum exit_code inspect_logits(struct inspect *in)
{
    if (!options_given(in->options, "tokens") || !options_given(in->options, "out"))
        return report_fail(INSPECT, EXIT_USAGE, "logits needs --tokens and --out");
    const size_t n_ctx = (size_t)options_int(in->options, "ctx");
    enum exit_code code = inspect_open_file(in);
    if (code == EXIT_DONE)
        code = inspect_open_model(in);
    if (code != EXIT_DONE)
        return code;
    report_warnings(INSPECT, &in->notes);
    struct bn_error err;
    size_t n_ids;
    int32_t *ids = read_tokens(in, bn_model_info(in->model)->n_vocab, &n_ids, &err);
    if (!ids)
        return report_error(INSPECT, STAGE_RUN, &err);
    const int64_t n_reuse = options_int(in->options, "reuse");
    if (n_reuse > (int64_t)n_ids)
        code = report_fail(INSPECT, EXIT_USAGE, "--reuse %lld: there are only %zu --tokens",
                           (long long)n_reuse, n_ids);
    else if (n_ctx > 0 && n_ctx < n_ids)
        code =
            report_fail(INSPECT, EXIT_CONTEXT, "--ctx %zu: there are %zu --tokens", n_ctx, n_ids);
    else
        code = inspect_open_session(
            in, n_ctx > 0 ? n_ctx : size_max(n_ids, bn_model_info(in->model)->n_ctx_default));
    if (code == EXIT_DONE && !write_logits(in, ids, n_ids, &err))
        code = report_error(INSPECT, STAGE_RUN, &err);
    mem_free(ids);
    return code;
}

/* Evaluate windows of at most n_window ids that do not overlap. Each window starts with an empty
 * session, and with bos if the vocabulary requires it. Its last id is predicted but not evaluated.
 * n_window is at least 2, so a window has an id of the text after the bos. */
static bool score_text(struct inspect *in, const struct token_list *text, size_t n_window,
                       struct loss_sums *sums, struct bn_error *err)
{
    const struct tokenizer_info *info = tokenizer_info(in->tokenizer);
    const size_t n_bos = info->add_bos && info->bos != TOKEN_NONE;
    int32_t *window = mem_alloc(n_window, sizeof(*window));
    if (!window)
        return bn_fail(err, BN_ENOMEM, "out of memory for a window of %zu ids", n_window);
    struct part part = {.n_total = text->n};
    const struct bn_progress progress = {on_ids, &part};
    bool ok = true;
    report_progress("reading");
    for (size_t i = 0; ok && i < text->n; i += n_window - n_bos) {
        part.n_before = i;
        const size_t n = size_min(n_window - n_bos, text->n - i);
        window[0] = info->bos; /* overwritten if n_bos is 0 */
        memcpy(window + n_bos, text->ids + i, n * sizeof(*window));
        (void)bn_session_truncate(in->session, 0); /* every session can become empty */
        ok = logit_rows_add_losses(in->model, in->session, window, n + n_bos, sums, progress, err);
    }
    report_progress_erase();
    mem_free(window);
    return ok;
}

static void print_perplexity(const struct loss_sums *s, size_t n_window)
{
    const double n = (double)s->n, mean = s->sum / n;
    /* Variance of the mean. The error of exp(mean) is exp(mean) times that of the mean, because
     * exp(x) is its own derivative. */
    const double variance = s->n > 1 ? (s->sum_squares / n - mean * mean) / (n - 1) : 0;
    const double error = exp(mean) * sqrt(variance > 0 ? variance : 0);
    printf("perplexity %.4f +- %.4f (%zu tokens scored, windows of %zu, %.4f nats per token)\n",
           exp(mean), error, s->n, n_window, mean);
}

/* Set *n_window, evaluate the text in windows of at most that many ids, and add up the losses.
 * EXIT_USAGE: the text is too short to predict a token. */
static enum exit_code run_text(struct inspect *in, const struct token_list *text, size_t *n_window,
                               struct loss_sums *sums)
{
    const size_t n_train = bn_model_info(in->model)->n_ctx_train;
    const size_t n_ctx = (size_t)options_int(in->options, "ctx");
    struct bn_error err;
    *n_window = n_ctx ? n_ctx : size_max(size_min(n_train, WINDOW_TOKENS), 2);
    const enum exit_code code = inspect_open_session(in, *n_window);
    if (code != EXIT_DONE)
        return code;
    if (!score_text(in, text, *n_window, sums, &err))
        return report_error(INSPECT, STAGE_RUN, &err);
    if (sums->n == 0)
        return report_fail(INSPECT, EXIT_USAGE, "%s: a text of %zu tokens has no token to predict",
                           in->words[1], text->n);
    return EXIT_DONE;
}

static enum exit_code measure_perplexity(struct inspect *in, const struct token_list *text)
{
    struct loss_sums sums = {0};
    size_t n_window;
    const enum exit_code code = run_text(in, text, &n_window, &sums);
    if (code == EXIT_DONE)
        print_perplexity(&sums, n_window);
    return code;
}

/* Print how often the tokens chose the experts of one layer. counts (n_experts). */
static void print_layer(size_t layer, const uint64_t *counts, size_t n_experts)
{
    uint64_t sum = 0;
    size_t n_unused = 0, best[SHOWN_EXPERTS] = {0};
    for (size_t e = 0; e < n_experts; e++) {
        sum += counts[e];
        n_unused += counts[e] == 0;
    }
    const size_t n_best = size_min(n_experts, SHOWN_EXPERTS);
    /* Insert each expert into the list of the n_best best ones, the most used first. Once the list
     * is full, an expert is inserted only if it is used more than the last one, which drops out. */
    for (size_t e = 0, n = 0; e < n_experts; e++) {
        size_t at = n < n_best ? n++ : n_best;
        for (; at > 0 && counts[e] > counts[best[at - 1]]; at--)
            if (at < n_best)
                best[at] = best[at - 1];
        if (at < n_best)
            best[at] = e;
    }
    printf("layer %3zu  %zu of %zu experts unused; most used:", layer, n_unused, n_experts);
    for (size_t i = 0; i < n_best && counts[best[i]] > 0; i++)
        printf(" %zu (%.1f %%)", best[i], 100.0 * (double)counts[best[i]] / (double)sum);
    putchar('\n');
}

static enum exit_code print_experts_json(const struct bn_model_info *info, const uint64_t *counts,
                                         size_t n_tokens)
{
    json_t *o = json_object(), *layers = json_array();
    for (size_t i = 0; i < info->n_layers; i++) {
        json_t *row = json_array();
        for (size_t e = 0; e < info->n_experts; e++)
            json_out_append(&row, json_integer((json_int_t)counts[i * info->n_experts + e]));
        json_out_append(&layers, row);
    }
    json_out_put(&o, "tokens", json_integer((json_int_t)n_tokens));
    json_out_put(&o, "used_experts", json_integer((json_int_t)info->n_used_experts));
    json_out_put(&o, "layers", layers);
    struct bn_error err;
    return json_out_write(o, stdout, JSON_OUT_LINE, &err) ? EXIT_DONE
                                                          : report_error(INSPECT, STAGE_RUN, &err);
}

static enum exit_code count_experts(struct inspect *in, const struct token_list *text)
{
    const struct bn_model_info *info = bn_model_info(in->model);
    struct loss_sums sums = {0};
    size_t n_window;
    const size_t n = bn_model_expert_counts(in->model, NULL, 0);
    if (n == 0)
        return report_fail(INSPECT, EXIT_USAGE, "%s: the layers of this model have no experts",
                           in->words[0]);
    enum exit_code code = run_text(in, text, &n_window, &sums);
    if (code != EXIT_DONE)
        return code;
    uint64_t *counts = mem_alloc(n, sizeof(*counts));
    if (!counts)
        return report_fail(INSPECT, EXIT_INTERNAL, "out of memory for %zu numbers", n);
    (void)bn_model_expert_counts(in->model, counts, n);
    if (options_flag(in->options, "json")) /* each evaluated token gave one loss */
        code = print_experts_json(info, counts, sums.n);
    for (size_t i = 0; i < info->n_layers && !options_flag(in->options, "json"); i++)
        print_layer(i, counts + i * info->n_experts, info->n_experts);
    mem_free(counts);
    return code;
}

/* Run a verb that evaluates the text of FILE: open the model, encode the text and call `run`. FILE
 * is read first, so that an error of it needs no wait for the model. */
static enum exit_code with_text(struct inspect *in,
                                enum exit_code (*run)(struct inspect *, const struct token_list *))
{
    struct bn_error err;
    char *text;
    size_t n_bytes;
    if (options_int(in->options, "ctx") == 1)
        return report_fail(
            INSPECT, EXIT_USAGE,
            "--ctx 1: a window needs at least 2 tokens, to predict one from the other");
    if (!path_read_all(in->words[1], TEXT_MAX_BYTES, &text, &n_bytes, &err))
        return report_error(INSPECT, STAGE_RUN, &err);
    enum exit_code code = inspect_open_file(in);
    if (code == EXIT_DONE)
        code = inspect_open_tokenizer(in);
    if (code == EXIT_DONE)
        code = inspect_open_model(in);
    if (code == EXIT_DONE) {
        report_warnings(INSPECT, &in->notes);
        struct token_list ids = {0};
        if (inspect_encode(in, SEGMENT_MESSAGE, (struct bn_str){text, n_bytes}, &ids, &err))
            code = run(in, &ids);
        else
            code = report_error(INSPECT, STAGE_RUN, &err);
        token_list_finish(&ids);
    }
    mem_free(text);
    return code;
}

enum exit_code inspect_perplexity(struct inspect *in)
{
    return with_text(in, measure_perplexity);
}

enum exit_code inspect_experts(struct inspect *in)
{
    return with_text(in, count_experts);
}
