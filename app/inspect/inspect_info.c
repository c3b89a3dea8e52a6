/*
 * The verb info: collects data about the file, its tensors, the model, the memory plan, the
 * tokenizer, the template and the devices, and prints them.
 */
#include "app/inspect/inspect_info.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/engine_internal.h"
#include "engine/file_gguf.h"

#include <string.h>

static void count_types(struct info *info)
{
    for (size_t i = 0; i < TENSOR_N_TYPES; i++)
        info->types[i].name = tensor_geometries[i].name;
    for (size_t i = 0; i < info->gguf->n_tensors; i++) {
        const struct gguf_tensor *t = &info->gguf->tensors[i];
        struct info_type *type = &info->types[t->type];
        type->n_tensors++;
        type->n_elements += (uint64_t)t->n_cols * t->n_rows;
        type->n_bytes += t->n_bytes;
    }
}

/* The context that a chat would get without --ctx. The free memory of a GPU is unknown before the
 * model is loaded, so the result for a GPU is an upper bound. */
static size_t default_ctx(const struct info *info)
{
    const size_t n_free = strcmp(info->backend, "cpu") == 0 ? mem_free_bytes() : SIZE_MAX;
    const size_t n_used = info->plan.weight_bytes + info->plan.scratch_bytes;
    const size_t n_left = n_free == SIZE_MAX ? n_free : n_free - size_min(n_free, n_used);
    return engine_default_ctx(n_left, info->plan.kv_bytes_per_token, info->plan.seq_fixed_bytes,
                              info->model->hp.n_ctx_train);
}

static bool plan_memory(struct info *info, const struct bn_model_config *cfg, struct bn_error *err)
{
    struct backend_config backend = engine_backend_config(cfg);
    const struct backend_ops *ops;
    if (!backend_choose(cfg->device, &backend, &ops, err))
        return false;
    const bool ok = backend_plan_model(cfg->device, info->model, &backend, &ops, &info->plan, err);
    info->backend = ops->name;
    if (ok && info->n_ctx == 0)
        info->n_ctx = default_ctx(info);
    return ok;
}

/* struct info.table_bytes. Needs a model and a plan. */
static uint64_t table_bytes(const struct info *info, const struct bn_model_config *cfg)
{
    const struct model *m = info->model;
    if (strcmp(info->backend, "cpu") != 0)
        return 0;
    /* A ternary head is packed, and --head q8 makes a copy of a float head. */
    const bool has_copy = m->head_linear.source.bytes ||
                          (cfg->head == BN_HEAD_Q8 && tensor_geometries[m->head.type].is_float);
    const bool reads_head = !m->tied && !has_copy;
    return m->embd.n_bytes + (reads_head ? (uint64_t)m->head.n_bytes : 0);
}

static void add_up_memory(struct info *info, const struct bn_model_config *cfg)
{
    const struct backend_plan *p = &info->plan;
    info->table_bytes = table_bytes(info, cfg);
    info->kv_bytes = (uint64_t)p->kv_bytes_per_token * info->n_ctx;
    info->total_bytes = p->weight_bytes + info->table_bytes + info->kv_bytes + p->seq_fixed_bytes +
                        p->scratch_bytes;
}

static void open_model(struct info *info, const struct bn_model_config *cfg)
{
    const struct model_config model = {.i2s_layout = cfg->i2s_layout,
                                       .activations = cfg->activations,
                                       .window_rule = cfg->window_rule,
                                       .no_repair = cfg->no_repair,
                                       .ignored_tensors = cfg->ignored_tensors,
                                       .n_ignored_tensors = cfg->n_ignored_tensors,
                                       .notes = &info->in->notes};
    if (info->gguf->n_tensors == 0) {
        (void)bn_fail(&info->model_error, BN_EFORMAT, "the file has a vocabulary only, no tensors");
        return;
    }
    if (!model_open(info->gguf, &model, &info->model, &info->model_error))
        return;
    info->n_ctx = (size_t)options_int(info->in->options, "ctx");
    if (plan_memory(info, cfg, &info->plan_error))
        add_up_memory(info, cfg);
    else
        info->plan = (struct backend_plan){0};
}

static enum exit_code collect(struct info *info)
{
    struct inspect *in = info->in;
    struct bn_model_config cfg = {0};
    model_args_config(in->options, &cfg);
    info->gguf = bn_file_gguf(in->file);
    count_types(info);
    open_model(info, &cfg);
    /* An error of the model's own template is printed in its section. One of the template that the
     * user has named ends the verb. */
    if (model_args_tokenizer(in->options, in->file, &in->notes, &in->tokenizer,
                             &info->tokenizer_error) &&
        !model_args_template(in->options, in->file, in->tokenizer, &in->notes, &in->template,
                             &info->template_error) &&
        strcmp(options_text(in->options, "template"), "auto") != 0)
        return report_error(INSPECT, STAGE_RUN, &info->template_error);
    info->n_devices = size_min(bn_device_list(info->devices, INFO_DEVICES), INFO_DEVICES);
    return EXIT_DONE;
}

/* The output is complete even if the model cannot run; the exit code reports that. A file with a
 * vocabulary only, and a template of the model that cannot be opened, are no errors. */
static enum exit_code exit_code_of(struct info *info)
{
    if (!info->model && info->gguf->n_tensors > 0)
        return inspect_fail_load(info->in, &info->model_error);
    if (!info->in->tokenizer)
        return inspect_fail_load(info->in, &info->tokenizer_error);
    if (info->plan_error.code != BN_OK)
        return inspect_fail_load(info->in, &info->plan_error);
    return EXIT_DONE;
}

enum exit_code inspect_info(struct inspect *in)
{
    struct info info = {.in = in};
    enum exit_code code = inspect_open_file(in);
    if (code != EXIT_DONE)
        return code;
    code = collect(&info);
    if (code == EXIT_DONE && options_flag(in->options, "json"))
        code = info_print_json(&info);
    else if (code == EXIT_DONE)
        info_print_lines(&info);
    if (code == EXIT_DONE)
        code = exit_code_of(&info);
    model_close(info.model);
    return code;
}
