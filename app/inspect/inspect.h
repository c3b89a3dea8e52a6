/*
 * What the verbs of bitnet-inspect share: the parsed command line, opening a file with its error
 * lines, and the verbs themselves.
 *
 * A verb prints its result on stdout, at most one error line on stderr, and returns the exit code.
 */
#ifndef APP_INSPECT_H
#define APP_INSPECT_H

#include "app/common/report.h"
#include "app/options/model_args.h"

#define INSPECT "bitnet-inspect"

struct inspect {
    struct options *options;
    const char *const *words; /* (n_words) after the verb: MODEL, then FILE */
    size_t n_words;
    struct bn_notes notes;
    /* opened on request; inspect_close closes what there is */
    struct bn_file *file;
    struct tokenizer *tokenizer;
    struct template *template;
    struct bn_model *model;
    struct bn_session *session;
};

/* Each says what went wrong and gives the exit code; EXIT_DONE is success. In this order. */
enum exit_code inspect_open_file(struct inspect *in);
enum exit_code inspect_open_tokenizer(struct inspect *in);
enum exit_code inspect_open_template(struct inspect *in);
enum exit_code inspect_open_model(struct inspect *in);
enum exit_code inspect_open_session(struct inspect *in, size_t n_ctx);
void inspect_close(struct inspect *in);
/* Say an error of loading the model, after its path. */
enum exit_code inspect_fail_load(const struct inspect *in, struct bn_error *err);

/* ids for `n` bytes that are the user's own words, or with special tokens recognised. */
bool inspect_encode(const struct inspect *in, enum segment_kind kind, struct bn_str text,
                    struct token_list *out, struct bn_error *err);

/* Bytes to stdout: as they are, but cleaned where stdout is a terminal. */
void inspect_put(struct bn_str text);
/* Ids on one line, space-separated. */
void inspect_put_ids(const int32_t *ids, size_t n_ids);

/* Call `row` with the logits (n_vocab) of ids n_before .. n_before + n_ids - 1, in order, as the
 * session evaluates them. */
struct inspect_rows {
    bool (*row)(void *ud, size_t pos, const float *logits, struct bn_error *err);
    void *ud;
};
bool inspect_eval(struct inspect *in, const int32_t *ids, size_t n_ids,
                  const struct inspect_rows *rows, struct bn_error *err);

/* -log of the probability of `id` under logits (n_vocab), in nats. */
double inspect_loss(const float *logits, size_t n_vocab, int32_t id);

enum exit_code inspect_info(struct inspect *in);
enum exit_code inspect_check(struct inspect *in);
enum exit_code inspect_tokenize(struct inspect *in);
enum exit_code inspect_detokenize(struct inspect *in);
enum exit_code inspect_prompt(struct inspect *in);
enum exit_code inspect_logits(struct inspect *in);
enum exit_code inspect_perplexity(struct inspect *in);

#endif
