/*
 * The options for opening a model and for its template, the same in every program, and the settings
 * that they give: a bn_model_config, a struct template.
 */
#ifndef APP_MODEL_ARGS_H
#define APP_MODEL_ARGS_H

#include "app/options/options.h"
#include "engine/engine.h"
#include "templates/template.h"
#include "tokenizer/tokenizer.h"

/* --device --threads --pin --ubatch --isa --head --kv: how to run a model. */
extern const struct option_table model_run_options;
/* --i2s-layout --no-repair: how to read its file. */
extern const struct option_table model_file_options;
/* The choices of --spec, in the order of enum spec_mode. */
#define SPEC_CHOICES "off|on|auto"
/* --template --template-arg: how to write its prompts. */
extern const struct option_table model_template_options;

/* Fill device, isa, n_threads, pin, n_ubatch, head, kv, i2s_layout and no_repair from the rows of
 * the first two tables that are in `o`. The other fields of `cfg` do not change. Texts belong to
 * `o`. */
void model_args_config(const struct options *o, struct bn_model_config *cfg);

/* tokenizer_open with the setting of --no-repair. */
bool model_args_tokenizer(const struct options *o, const struct bn_file *file,
                          struct bn_notes *notes, struct tokenizer **out, struct bn_error *err);

/* Open the template of --template auto|NAME|FILE|@FILE for a model. Without a model, `file` and
 * `tokenizer` are NULL: bos_token is <s>, eos_token is </s>, and `auto` is refused. BN_EIO: the
 * template file cannot be read. BN_EARG: no such template, or a file that does not parse.
 * BN_EFORMAT: the template of the model does not parse. */
bool model_args_template(const struct options *o, const struct bn_file *file,
                         const struct tokenizer *tokenizer, struct bn_notes *notes,
                         struct template **out, struct bn_error *err);

/* The values of --template-arg NAME=VALUE as a dict in the arena. VALUE is JSON, or else text. *out
 * is NULL without any. BN_EARG: a name that is too long. */
bool model_args_template_args(const struct options *o, struct template_arena *arena,
                              struct template_value **out, struct bn_error *err);

#endif
