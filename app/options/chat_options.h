/*
 * The option rows of bitnet-chat, and their conversion to settings of the sampler and the session.
 */
#ifndef APP_CHAT_OPTIONS_H
#define APP_CHAT_OPTIONS_H

#include "app/common/strbuf.h"
#include "app/options/options.h"
#include "engine/engine.h"
#include "engine/file.h"
#include "engine/sampler/sampler.h"
#include "tokenizer/tokenizer.h"

#define PROGRAM "bitnet-chat"
#define CHAT_BATCH_MAX 64 /* largest N of --batch N */

/* All tables of the program, in the order of --help. */
extern const struct option_table *const chat_tables[];
extern const size_t n_chat_tables;
/* options_open with these tables. */
bool chat_options_open(struct options **out, struct bn_error *err);

/* Set options from six of the keys general.sampling.* of the file, as OPTION_FROM_MODEL. Values
 * that the option refuses are ignored. A file without a usable key gets the values that the
 * publisher uses for its architecture, if they are known, as OPTION_FROM_FAMILY. */
void chat_options_from_model(struct options *o, const struct bn_file *file);

/* Append the text of --system, or of its @FILE, to `out`; nothing without --system. Invalid UTF-8
 * gives a warning on stderr, except with --quiet. Errors of input_text_or_file. */
bool chat_options_system(const struct options *o, struct strbuf *out, struct bn_error *err);

/* The biases of --logit-bias; free with mem_free(list->items). */
struct bias_list {
    struct sampler_bias *items; /* (n) */
    size_t n;
};
/* Whether the vocabulary has the token of ID=X. Another text is accepted: options_set refuses it.
 * BN_EARG. */
bool chat_options_check_bias(const char *text, const struct tokenizer *t, struct bn_error *err);
/* Set *list, whose old value is not freed. BN_EARG: an id that is not in the vocabulary. BN_ENOMEM.
 * After a failure *list is unchanged. */
bool chat_options_biases(const struct options *o, const struct tokenizer *t, struct bias_list *list,
                         struct bn_error *err);

/* The most tokens of a thought: --think-budget, or SIZE_MAX without a budget. */
size_t chat_options_think_budget(const struct options *o);

/* The settings of a session: n_ctx from --ctx, state_memory from --state-memory. */
struct bn_session_config chat_options_session(const struct options *o);

/* Whether --greedy decides the temperature, and not --temp. */
bool chat_options_is_greedy(const struct options *o);
/* Set all fields; there are no biases afterwards. Without --seed the seed is 0. */
void chat_options_sampler(const struct options *o, struct sampler_params *params);

#endif
