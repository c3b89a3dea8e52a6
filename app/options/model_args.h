/*
 * The options that say how a model is opened and which template is used, the same rows in every
 * program, and what they become: a bn_model_config, a struct template.
 *
 * Exit codes and error lines are in report.h.
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
/* Words of --spec, in the order of enum spec_mode. */
#define SPEC_CHOICES "off|on|auto"
/* --template --template-arg: how to speak to it. */
extern const struct option_table model_template_options;

/* Fill device, isa, n_threads, pin, n_ubatch, head, kv, i2s_layout and no_repair from those rows of
 * the first two tables that `o` has; the rest of `cfg` is the caller's. Texts belong to `o`. */
void model_args_config(const struct options *o, struct bn_model_config *cfg);

/* tokenizer_open with --no-repair. */
bool model_args_tokenizer(const struct options *o, const struct bn_file *file,
                          struct bn_notes *notes, struct tokenizer **out, struct bn_error *err);

/* --template auto|NAME|FILE|@FILE for a model. `file` and `tokenizer` may both be NULL: no model,
 * then bos_token is <s>, eos_token </s>, and `auto` is refused. BN_EIO: the template's file cannot
 * be read; BN_EARG: no such template; BN_EFORMAT: it does not parse. */
bool model_args_template(const struct options *o, const struct bn_file *file,
                         const struct tokenizer *tokenizer, struct bn_notes *notes,
                         struct template **out, struct bn_error *err);

/* --template-arg NAME=VALUE (VALUE is JSON, or text where it is no JSON) as a dict in the arena;
 * NULL in *out where there is none. BN_EARG: no '='. */
bool model_args_template_args(const struct options *o, struct template_arena *arena,
                              struct template_value **out, struct bn_error *err);

#endif
