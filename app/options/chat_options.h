/*
 * The option rows of bitnet-chat beside those of model_args.h, and the sampling settings in them as
 * the sampler wants them.
 */
#ifndef APP_CHAT_OPTIONS_H
#define APP_CHAT_OPTIONS_H

#include "app/options/options.h"
#include "engine/file.h"
#include "engine/sampler.h"
#include "tokenizer/tokenizer.h"

#define PROGRAM "bitnet-chat"

extern const struct option_table chat_sampling_options;
extern const struct option_table chat_options;

/* Every table of the program, for options_open. */
bool chat_options_open(struct options **out, struct bn_error *err);

/* The file's keys general.sampling.* as OPTION_FROM_MODEL; values out of range are ignored. */
void chat_options_from_model(struct options *o, const struct bn_file *file);

/* Biases of --logit-bias with their ids looked up; finish with mem_free(list->items). */
struct bias_list {
    struct sampler_bias *items; /* (n) */
    size_t n;
};
/* BN_EARG: an id that is not in the vocabulary. */
bool chat_options_biases(const struct options *o, const struct tokenizer *t, struct bias_list *list,
                         struct bn_error *err);

/* Everything but the biases and, where --seed is not given, the seed (left 0). */
void chat_options_sampler(const struct options *o, struct sampler_params *params);

#endif
