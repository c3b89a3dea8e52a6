/*
 * The verbs that evaluate token ids with the model: logits, perplexity.
 */
#include "app/common/logit_rows.h"
#include "app/common/paths.h"
#include "app/inspect/inspect.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define TEXT_MAX_BYTES ((size_t)1 << 30)
#define WINDOW_TOKENS 2048 /* as in the published perplexities of these models */

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

/* The ids of --tokens, checked against the vocabulary. NULL on error. */
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

static bool write_logits(struct inspect *in, const int32_t *ids, size_t n_ids, struct bn_error *err)
{
    const char *path = options_text(in->options, "out");
    const size_t n_first = (size_t)options_int(in->options, "reuse");
    struct row_writer writer = {fopen(path, "wb"), bn_model_info(in->model)->n_vocab};
    const struct logit_rows rows = {write_row, &writer};
    if (!writer.out)
        return bn_fail(err, BN_EIO, "cannot write '%s': %s", path, strerror(errno));
    bool ok = logit_rows_eval(in->model, in->session, ids, n_first, &rows, err) &&
              logit_rows_eval(in->model, in->session, ids + n_first, n_ids - n_first, &rows, err);
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
        code = report_fail(INSPECT, EXIT_USAGE, "--ctx %zu: there are %zu --tokens", n_ctx, n_ids);
    else
        code = inspect_open_session(
            in, n_ctx > 0 ? n_ctx : size_max(n_ids, bn_model_info(in->model)->n_ctx_default));
    if (code == EXIT_DONE && !write_logits(in, ids, n_ids, &err))
        code = report_error(INSPECT, STAGE_RUN, &err);
    mem_free(ids);
    return code;
}

/* Evaluates windows of n_window ids that do not overlap. Each window starts with an empty session,
 * and with bos if the vocabulary requires it. Its last id is predicted but not evaluated. */
static bool score_text(struct inspect *in, const struct token_list *text, size_t n_window,
                       struct loss_sums *sums, struct bn_error *err)
{
    const struct tokenizer_info *info = tokenizer_info(in->tokenizer);
    const size_t n_bos = info->add_bos && info->bos != TOKEN_NONE;
    int32_t *window = mem_alloc(n_window, sizeof(*window));
    if (!window)
        return bn_fail(err, BN_ENOMEM, "out of memory for a window of %zu ids", n_window);
    bool ok = true;
    for (size_t i = 0; ok && i < text->n; i += n_window - n_bos) {
        const size_t n = size_min(n_window - n_bos, text->n - i);
        window[0] = info->bos;
        memcpy(window + n_bos, text->ids + i, n * sizeof(*window));
        bn_session_truncate(in->session, 0);
        ok = logit_rows_add_losses(in->model, in->session, window, n + n_bos, sums, err);
    }
    mem_free(window);
    return ok;
}

static void print_perplexity(const struct loss_sums *s, size_t n_window)
{
    const double n = (double)s->n, mean = s->sum / n;
    const double variance = s->n > 1 ? (s->sum_squares / n - mean * mean) / (n - 1) : 0;
    const double error = exp(mean) * sqrt(variance > 0 ? variance : 0);
    printf("perplexity %.4f +- %.4f (%zu tokens scored, windows of %zu, %.4f nats per token)\n",
           exp(mean), error, s->n, n_window, mean);
}

static enum exit_code measure_perplexity(struct inspect *in, const struct token_list *text)
{
    const size_t n_train = bn_model_info(in->model)->n_ctx_train;
    const size_t n_ctx = (size_t)options_int(in->options, "ctx");
    const size_t n_window = n_ctx ? n_ctx : size_max(size_min(n_train, WINDOW_TOKENS), 2);
    struct loss_sums sums = {0};
    struct bn_error err;
    const enum exit_code code = inspect_open_session(in, n_window);
    if (code != EXIT_DONE)
        return code;
    if (!score_text(in, text, n_window, &sums, &err))
        return report_error(INSPECT, STAGE_RUN, &err);
    if (sums.n == 0)
        return report_fail(INSPECT, EXIT_USAGE, "%s: a text of %zu tokens has no token to predict",
                           in->words[1], text->n);
    print_perplexity(&sums, n_window);
    return EXIT_DONE;
}

enum exit_code inspect_perplexity(struct inspect *in)
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
            code = measure_perplexity(in, &ids);
        else
            code = report_error(INSPECT, STAGE_RUN, &err);
        token_list_finish(&ids);
    }
    mem_free(text);
    return code;
}
