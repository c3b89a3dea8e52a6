/*
 * The verbs (subcommands) of bitnet-inspect, the functions that they share, and their table, which
 * is used for parsing, --help and the check of the man page.
 *
 * A verb prints its result on stdout (logits writes it to the file of --out) and returns the exit
 * code. Warnings, except for the verbs info and check, whose results contain them, and at most one
 * error line are printed on stderr.
 */
#ifndef APP_INSPECT_H
#define APP_INSPECT_H

#include "app/common/report.h"
#include "app/options/model_args.h"

#define INSPECT "bitnet-inspect"

struct inspect {
    struct options *options;
    const char *const *words; /* (n_words) words after the verb: none, MODEL, or MODEL and FILE */
    size_t n_words;
    struct bn_notes notes; /* about the tokenizer, the template and the model, once they are open */
    /* Each is NULL until it is open; inspect_close closes them. */
    struct bn_file *file;
    struct tokenizer *tokenizer;
    struct template *template;
    struct bn_model *model;
    struct bn_session *session;
};

/* Each returns EXIT_DONE, or prints an error line and returns its exit code. Call those that a verb
 * needs in this order: tokenizer and model need the file, the session needs the model.
 * inspect_open_template needs the file and the tokenizer, or neither of them and --template. */
enum exit_code inspect_open_file(struct inspect *in);
enum exit_code inspect_open_tokenizer(struct inspect *in);
enum exit_code inspect_open_template(struct inspect *in);
enum exit_code inspect_open_model(struct inspect *in);
/* As inspect_open_model, but prints no error. No model may be open. Errors of bn_model_open. */
bool inspect_try_model(struct inspect *in, struct bn_error *err);
enum exit_code inspect_open_session(struct inspect *in, size_t n_ctx); /* 0: n_ctx_default */
void inspect_close_model(struct inspect *in);                          /* closes the session too */
void inspect_close(struct inspect *in);                                /* closes all that is open */
/* Put the path of the model before the message of `err`, print it as an error line, and return the
 * exit code of STAGE_LOAD (report.h). */
enum exit_code inspect_fail_load(const struct inspect *in, struct bn_error *err);

/* Append the ids of a text, without a beginning-of-text token. `kind` is SEGMENT_MESSAGE, or
 * SEGMENT_TEMPLATE to recognise special tokens. The tokenizer must be open. Errors of
 * tokenizer_encode. */
bool inspect_encode(const struct inspect *in, enum segment_kind kind, struct bn_str text,
                    struct token_list *out, struct bn_error *err);

/* Write bytes to stdout, cleaned as in term_text.h if stdout is a terminal. report_flush reports
 * bytes that could not be written. */
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
enum exit_code inspect_experts(struct inspect *in);

struct inspect_verb {
    const char *name;
    const char *usage;               /* the words after the name */
    const char *help;                /* one line */
    size_t n_words_min, n_words_max; /* words after the name */
    const char *const *options; /* names of the options that the verb accepts; NULL ends the list */
    enum exit_code (*run)(struct inspect *in);
};

/* All verbs; a NULL name ends the list. */
extern const struct inspect_verb inspect_verbs[];

/* The tables of the program's options, in the order of --help. */
extern const struct option_table *const inspect_tables[];
extern const size_t n_inspect_tables;

#endif
