/*
 * Collects what info shows: file, tensors, model, plan, tokenizer, template, devices.
 */
#include "app/inspect/inspect_info.h"

#include "engine/backend_args.h"
#include "engine/base/size.h"
#include "engine/gguf/gguf_file.h"

const char *info_act_name(const struct info *info)
{
    return info->model->hp.act == FFN_RELU2 ? "ReLU-squared" : "SiLU";
}

const char *info_rope_name(const struct info *info)
{
    return info->model->arch->rope == ROPE_NEOX ? "halves (NeoX)" : "adjacent pairs";
}

const char *info_note_kind(enum bn_note_kind kind)
{
    static const char *const names[] = {
        [BN_NOTE_INFO] = "note", [BN_NOTE_REPAIR] = "repair", [BN_NOTE_WARNING] = "warning"};
    return names[kind];
}

const char *info_kind_name(enum gguf_kind kind)
{
    static const char *const names[] = {"u8",   "i8",  "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "str", "array", "u64", "i64", "f64"};
    return (size_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}

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

static bool plan_memory(struct info *info, const struct bn_model_config *cfg, struct bn_error *err)
{
    struct backend_config backend = backend_args(cfg);
    const struct backend_ops *ops;
    if (!backend_choose(cfg->device, &backend, &ops, err))
        return false;
    info->backend = ops->name;
    return ops->plan(info->model, &backend, &info->plan, err);
}

static void open_model(struct info *info, const struct bn_model_config *cfg)
{
    static const enum i2s_layout layouts[] = {
        [BN_I2S_A] = I2S_A, [BN_I2S_B] = I2S_B, [BN_I2S_C] = I2S_C};
    const struct model_config model = {.i2s_layout = layouts[cfg->i2s_layout],
                                       .no_repair = cfg->no_repair,
                                       .notes = &info->in->notes};
    if (info->gguf->n_tensors == 0) {
        (void)bn_fail(&info->model_error, BN_EFORMAT, "a vocabulary only, no tensors");
        return;
    }
    if (!model_open(info->gguf, &model, &info->model, &info->model_error))
        return;
    const size_t n_asked = (size_t)options_int(info->in->options, "ctx");
    info->n_ctx = n_asked ? n_asked : info->model->hp.n_ctx_train;
    if (!plan_memory(info, cfg, &info->plan_error))
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
    if (model_args_tokenizer(in->options, in->file, &in->notes, &in->tokenizer,
                             &info->tokenizer_error) &&
        !model_args_template(in->options, in->file, in->tokenizer, &in->notes, &in->template,
                             &info->template_error) &&
        options_given(in->options, "template"))
        return report_error(INSPECT, STAGE_RUN, &info->template_error);
    info->n_devices = size_min(bn_device_list(info->devices, INFO_DEVICES), INFO_DEVICES);
    return EXIT_DONE;
}

/* What was shown is right either way; scripts learn by the code that the model does not run. */
static enum exit_code verdict(struct info *info)
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
        code = verdict(&info);
    model_close(info.model);
    return code;
}
