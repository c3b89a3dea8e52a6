/*
 * info --json: one object. A section that cannot be opened is {"error": sentence}; a section that
 * depends on it (memory on the model, template on the tokenizer) is null.
 *
 * A NULL object means "out of memory". json_pack and the functions of json_out.h turn a NULL
 * argument into a NULL result, so only the final write checks for it.
 */
#include "app/common/json_out.h"
#include "app/inspect/inspect_info.h"
#include "engine/model/act_scheme.h"

#include <math.h>

static json_int_t count(uint64_t n)
{
    return (json_int_t)n;
}

static json_t *error_object(const struct bn_error *err)
{
    return json_pack("{s:o}", "error", json_out_text(bn_str_of(err->text)));
}

static json_t *file_object(const struct info *info)
{
    const struct gguf *g = info->gguf;
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "path",
                     json_out_text(bn_str_of(bn_file_path(info->in->file))), "n_parts",
                     count(bn_file_n_parts(info->in->file)), "bytes", count(g->n_bytes), "version",
                     count(g->version), "alignment", count(g->alignment), "n_keys", count(g->n_kvs),
                     "n_tensors", count(g->n_tensors));
}

static json_t *model_object(const struct info *info)
{
    const struct model *m = info->model;
    if (!m)
        return error_object(&info->model_error);
    const struct hparams *hp = &m->hp;
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {{"n_params", m->n_params},  {"n_layers", hp->n_layers},
                  {"n_embd", hp->n_embd},     {"n_ff", hp->n_ff},
                  {"n_heads", hp->n_heads},   {"n_kv_heads", hp->n_kv_heads},
                  {"head_dim", hp->head_dim}, {"n_rot", hp->n_rot},
                  {"n_vocab", hp->n_vocab},   {"n_ctx_train", hp->n_ctx_train}};
    json_t *o = json_object();
    struct bn_str name;
    if (bn_file_get_str(info->in->file, "general.name", &name))
        json_out_put(&o, "name", json_out_text(name));
    json_out_put(&o, "architecture", json_string(m->arch->name));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        json_out_put(&o, counts[i].key, json_integer(count(counts[i].value)));
    json_t *graph = json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:b, s:s, s:s, s:b, s:b, s:b, s:s, s:s}", "rms_epsilon",
        (double)hp->rms_eps, "rope_base", hp->rope_base, "rope_scale", hp->rope_scale,
        "yarn_factor", hp->yarn.factor, "rope_magnitude", hp->rope_magnitude, "rope_freqs",
        m->rope_freqs.bytes != NULL, "rope", m->arch->rope == ROPE_NEOX ? "neox" : "norm",
        "activation", hp->ffn_act == FFN_RELU2 ? "relu2" : "silu", "sub_norms", m->arch->sub_norms,
        "qk_norms", m->arch->qk_norms, "tied", m->tied, "ternary_type",
        tensor_geometries[m->ternary_type].name, "i2s_layout",
        options_text(info->in->options, "i2s-layout"));
    json_out_merge(&o, graph);
    if (hp->n_experts > 0) {
        json_out_put(&o, "n_experts", json_integer(count(hp->n_experts)));
        json_out_put(&o, "n_used_experts", json_integer(count(hp->n_used_experts)));
    }
    if (hp->window_in_file > 0) {
        json_out_put(&o, "window", json_integer(count(hp->window_in_file)));
        json_out_put(&o, "window_rule", json_string(model_window_rule_name(hp->window_rule)));
    }
    json_out_put(&o, "rotation",
                 m->rotation.version
                     ? json_pack("{s:I, s:I, s:b}", "version", count(m->rotation.version), "block",
                                 count(m->rotation.block), "signs", m->rotation.signs != NULL)
                     : json_null());
    json_out_put(&o, "activations", json_string(act_scheme_name(m->act_scheme)));
    json_out_put(&o, "activations_reason", json_string(m->act_reason));
    return o;
}

static json_t *types_object(const struct info *info)
{
    json_t *o = json_object();
    for (size_t i = 0; i < TENSOR_N_TYPES; i++) {
        const struct info_type *t = &info->types[i];
        if (t->n_tensors > 0)
            json_out_put(&o, t->name,
                         json_pack("{s:I, s:I, s:I}", "n_tensors", count(t->n_tensors),
                                   "n_elements", count(t->n_elements), "n_bytes",
                                   count(t->n_bytes)));
    }
    return o;
}

static json_t *memory_object(const struct info *info)
{
    const struct backend_plan *p = &info->plan;
    if (!info->model)
        return json_null();
    if (info->plan_error.code != BN_OK)
        return error_object(&info->plan_error);
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "device", info->backend,
                     "weight_bytes", count(p->weight_bytes), "scratch_bytes",
                     count(p->scratch_bytes), "kv_bytes_per_token", count(p->kv_bytes_per_token),
                     "chat_bytes", count(p->seq_fixed_bytes), "state_bytes", count(p->state_bytes),
                     "n_ctx", count(info->n_ctx), "kv_bytes", count(info->kv_bytes), "table_bytes",
                     count(info->table_bytes), "total_bytes", count(info->total_bytes));
}

static json_t *token_object(const struct tokenizer *t, int32_t id)
{
    return id == TOKEN_NONE ? json_null()
                            : json_pack("{s:i, s:o}", "id", (int)id, "text",
                                        json_out_text(tokenizer_token_text(t, id)));
}

static json_t *tokenizer_object(const struct info *info)
{
    const struct tokenizer *t = info->in->tokenizer;
    if (!t)
        return error_object(&info->tokenizer_error);
    const struct tokenizer_info *ti = tokenizer_info(t);
    json_t *eog = json_array();
    for (size_t i = 0; i < ti->n_eog; i++)
        json_out_append(&eog, json_integer(ti->eog[i]));
    return json_pack("{s:s, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "model",
                     ti->model, "pre", json_out_text(bn_str_of(ti->pre)), "n_vocab",
                     count(ti->n_vocab), "n_merges", count(ti->n_merges), "bos",
                     token_object(t, ti->bos), "eos", token_object(t, ti->eos), "eot",
                     token_object(t, ti->eot), "unk", token_object(t, ti->unk), "pad",
                     token_object(t, ti->pad), "eog", eog, "add_bos", ti->add_bos,
                     "add_space_prefix", ti->add_space_prefix);
}

static json_t *template_object(const struct info *info)
{
    if (!info->in->tokenizer)
        return json_null();
    if (!info->in->template)
        return error_object(&info->template_error);
    const struct template_info *t = template_info(info->in->template);
    return json_pack("{s:s, s:b, s:b, s:o}", "name", t->name, "is_chat", t->is_chat, "has_thoughts",
                     t->has_thoughts, "source", json_out_text(t->source));
}

static json_t *devices_array(const struct info *info)
{
    json_t *list = json_array();
    for (size_t i = 0; i < info->n_devices; i++) {
        const struct bn_device_line *d = &info->devices[i];
        json_out_append(&list,
                        json_pack("{s:o, s:b, s:o}", "name", json_out_text(bn_str_of(d->name)),
                                  "usable", d->usable, "text", json_out_text(bn_str_of(d->text))));
    }
    return list;
}

static json_t *notes_array(const struct info *info)
{
    json_t *list = json_array();
    for (size_t i = 0; i < info->in->notes.n; i++) {
        const struct bn_note *note = &info->in->notes.items[i];
        json_out_append(&list,
                        json_pack("{s:s, s:s, s:o}", "kind", info_note_kind(note->kind), "id",
                                  note->id, "text", json_out_text(bn_str_of(note->text))));
    }
    return list;
}

/* An array is described by type and length, because those of a vocabulary are long. */
static json_t *value_of(const struct info *info, const struct gguf_kv *kv, const char *key)
{
    const struct bn_file *file = info->in->file;
    struct bn_str text;
    uint64_t u;
    int64_t i;
    double f;
    bool b;
    if (kv->kind == GGUF_ARRAY)
        return json_pack("{s:s, s:I}", "array_of", info_kind_name(kv->item_kind), "n_items",
                         count(kv->n_items));
    if (kv->kind == GGUF_STR && bn_file_get_str(file, key, &text))
        return json_out_text(text);
    if (kv->kind == GGUF_BOOL && bn_file_get_bool(file, key, &b))
        return json_boolean(b);
    const bool is_float = kv->kind == GGUF_F32 || kv->kind == GGUF_F64;
    if (!is_float && bn_file_get_u64(file, key, &u))
        return u <= INT64_MAX ? json_integer(count(u)) /* the range of json_int_t */
                              : json_real((double)u);
    if (!is_float && gguf_item_i64(kv, 0, &i)) /* negative */
        return json_integer(i);
    if (bn_file_get_f64(file, key, &f) && isfinite(f))
        return json_real(f);
    return json_null(); /* NaN or infinity, which JSON does not have */
}

static json_t *metadata_object(const struct info *info)
{
    json_t *o = json_object();
    for (size_t i = 0; i < info->gguf->n_kvs; i++) {
        const struct gguf_kv *kv = &info->gguf->kvs[i];
        char key[INFO_KEY_BYTES];
        if (!info_key(kv, key))
            continue; /* a key that is too long or contains a 0 byte is left out */
        json_t *clean = json_out_text(kv->key);
        json_out_put(&o, json_string_value(clean), value_of(info, kv, key));
        json_decref(clean);
    }
    return o;
}

enum exit_code info_print_json(const struct info *info)
{
    struct bn_error err;
    json_t *o = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "file", file_object(info), "model",
        model_object(info), "tensor_types", types_object(info), "memory", memory_object(info),
        "tokenizer", tokenizer_object(info), "template", template_object(info), "devices",
        devices_array(info), "notes", notes_array(info), "metadata", metadata_object(info));
    return json_out_write(o, stdout, JSON_OUT_INDENT, &err)
               ? EXIT_DONE
               : report_error(INSPECT, STAGE_RUN, &err);
}
