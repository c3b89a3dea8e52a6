/*
 * The options for opening a model and its template, which the programs share, and functions that
 * convert them to a bn_model_config, a tokenizer and a template.
 */
#ifndef APP_MODEL_ARGS_H
#define APP_MODEL_ARGS_H

#include "app/options/options.h"
#include "engine/engine.h"
#include "templates/template.h"
#include "tokenizer/tokenizer.h"

/* --device --threads --pin --ubatch --isa --head --kv --activations --window-rule: how to run a
 * model. */
extern const struct option_table model_run_options;
/* --i2s-layout --no-repair --ignore-tensor: how to read the model file. */
extern const struct option_table model_file_options;
/* --template --template-arg --think: how to write the prompts of the model. */
extern const struct option_table model_template_options;

/* The largest --ctx, 2^22. Ternary models are trained with less. */
#define MAX_CTX 4194304

/* Of --spec in bitnet-chat and bitnet-bench, in the order of enum spec_mode (spec.h). */
#define SPEC_CHOICES "off|on|auto"

/* Fill the fields of `cfg` that model_run_options and model_file_options describe. The fields of a
 * table that `o` does not have, and all other fields, do not change. Texts and lists belong to `o`
 * and are valid until the option changes. */
void model_args_config(const struct options *o, struct bn_model_config *cfg);

/* Set --threads from the variable BITNET_CHAT_THREADS, or if it is not set from OMP_NUM_THREADS.
 * The value counts as one from the environment (OPTION_FROM_ENV), so the command line wins. `o`
 * must have model_run_options. An invalid OMP_NUM_THREADS is ignored and removed from the
 * environment, so call this before other threads start; one that is too large is reduced. BN_EARG:
 * a bad BITNET_CHAT_THREADS. BN_ENOMEM. */
bool model_args_environment(struct options *o, struct bn_error *err);

/* tokenizer_open with the setting of --no-repair, if `o` has this option. Close the result with
 * tokenizer_close. */
bool model_args_tokenizer(const struct options *o, const struct bn_file *file,
                          struct bn_notes *notes, struct tokenizer **out, struct bn_error *err);

/* Open the template of --template auto|NAME|FILE|@FILE for a model; close it with template_close.
 * `o` must have model_template_options. FILE is an existing file or has a slash. Without a model,
 * `file` and `tokenizer` are NULL: bos_token is <s>, eos_token is </s>, and `auto` is refused.
 * BN_EIO: the template file cannot be read. BN_EARG: no such template, or a file that is empty or
 * does not parse. BN_ENOMEM. With `auto`, template_open replaces a template of the model that does
 * not parse. */
bool model_args_template(const struct options *o, const struct bn_file *file,
                         const struct tokenizer *tokenizer, struct bn_notes *notes,
                         struct template **out, struct bn_error *err);

/* Whether --think sets the template variable enable_thinking; if so, *thinks is its value. With
 * `auto` this variable is set, to false, only if the publisher uses the model without thoughts
 * (is_thinking_off of template_info), or if --think-budget is 0. */
bool model_args_thinks(const struct options *o, const struct template *t, bool *thinks);

/* The variables of --think and --template-arg NAME=VALUE as a dict in the arena. A VALUE that is
 * not JSON is text. --think sets enable_thinking; a --template-arg of that name replaces its value.
 * Without variables *out is NULL. BN_EARG: a name of 64 bytes or more. BN_ENOMEM, also for JSON
 * with too many levels for json_to_template_value. */
bool model_args_template_args(const struct options *o, const struct template *t,
                              struct template_arena *arena, struct template_value **out,
                              struct bn_error *err);

#endif
