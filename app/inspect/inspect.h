/*
 * The verbs of bitnet-inspect and the helpers that they share.
 *
 * A verb prints its result on stdout and at most one error line on stderr, and returns the exit
 * code.
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
    /* NULL until opened; inspect_close closes them */
    struct bn_file *file;
    struct tokenizer *tokenizer;
    struct template *template;
    struct bn_model *model;
    struct bn_session *session;
};

/* Each prints an error line and returns its exit code, or EXIT_DONE. Call them in this order. */
enum exit_code inspect_open_file(struct inspect *in);
enum exit_code inspect_open_tokenizer(struct inspect *in);
enum exit_code inspect_open_template(struct inspect *in);
enum exit_code inspect_open_model(struct inspect *in);
enum exit_code inspect_open_session(struct inspect *in, size_t n_ctx);
void inspect_close_model(struct inspect *in); /* and its session */
void inspect_close(struct inspect *in);
/* Print an error of loading the model, after its path. */
enum exit_code inspect_fail_load(const struct inspect *in, struct bn_error *err);

/* Append the ids of a text. `kind`: SEGMENT_MESSAGE, or SEGMENT_TEMPLATE to recognise special
 * tokens. */
bool inspect_encode(const struct inspect *in, enum segment_kind kind, struct bn_str text,
                    struct token_list *out, struct bn_error *err);

/* Write bytes to stdout. If stdout is a terminal, control characters are replaced. */
void inspect_put(struct bn_str text);
/* Write ids on one line, separated by spaces. */
void inspect_put_ids(const int32_t *ids, size_t n_ids);

enum exit_code inspect_info(struct inspect *in);
enum exit_code inspect_check(struct inspect *in);
enum exit_code inspect_tokenize(struct inspect *in);
enum exit_code inspect_detokenize(struct inspect *in);
enum exit_code inspect_prompt(struct inspect *in);
enum exit_code inspect_logits(struct inspect *in);
enum exit_code inspect_perplexity(struct inspect *in);

#endif
