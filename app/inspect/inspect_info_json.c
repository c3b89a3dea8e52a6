/*
 * info for scripts: one JSON object. Parts that do not open hold {"error": sentence}.
 */
#include "app/common/json_out.h"
#include "app/inspect/inspect_info.h"

static json_t *count(uint64_t n)
{
    return n <= INT64_MAX ? json_integer((json_int_t)n) : json_real((double)n);
}

static json_t *sentence(const struct bn_error *err)
{
    json_t *o = json_object();
    json_out_add(o, "error", json_out_text(bn_str_of(err->text)));
    return o;
}

static json_t *file_object(const struct info *info)
{
    json_t *o = json_object();
    json_out_add(o, "path", json_out_text(bn_str_of(bn_file_path(info->in->file))));
    json_out_add(o, "bytes", count(info->gguf->n_bytes));
    json_out_add(o, "version", count(info->gguf->version));
    json_out_add(o, "alignment", count(info->gguf->alignment));
    json_out_add(o, "n_keys", count(info->gguf->n_kvs));
    json_out_add(o, "n_tensors", count(info->gguf->n_tensors));
    return o;
}

static json_t *model_object(const struct info *info)
{
    const struct model *m = info->model;
    if (!m)
        return sentence(&info->model_error);
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
        json_out_add(o, "name", json_out_text(name));
    json_out_add(o, "architecture", json_string(m->arch->name));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        json_out_add(o, counts[i].key, count(counts[i].value));
    json_out_add(o, "rms_epsilon", json_real((double)hp->rms_eps));
    json_out_add(o, "rope_base", json_real(hp->rope_base));
    json_out_add(o, "rope_scale", json_real(hp->rope_scale));
    json_out_add(o, "rope_freqs", json_boolean(m->rope_freqs.bytes != NULL));
    json_out_add(o, "rope", json_string(m->arch->rope == ROPE_NEOX ? "neox" : "norm"));
    json_out_add(o, "activation", json_string(hp->act == FFN_RELU2 ? "relu2" : "silu"));
    json_out_add(o, "sub_norms", json_boolean(m->arch->sub_norms));
    json_out_add(o, "tied", json_boolean(m->tied));
    json_out_add(o, "ternary_type", json_string(tensor_geometries[m->ternary_type].name));
    json_out_add(o, "i2s_layout", json_string(options_text(info->in->options, "i2s-layout")));
    return o;
}

static json_t *types_object(const struct info *info)
{
    json_t *o = json_object();
    for (size_t i = 0; i < TENSOR_N_TYPES; i++) {
        const struct info_type *t = &info->types[i];
        if (t->n_tensors == 0)
            continue;
        json_t *type = json_object();
        json_out_add(type, "n_tensors", count(t->n_tensors));
        json_out_add(type, "n_elements", count(t->n_elements));
        json_out_add(type, "n_bytes", count(t->n_bytes));
        json_out_add(o, t->name, type);
    }
    return o;
}

static json_t *memory_object(const struct info *info)
{
    if (!info->model)
        return json_null();
    if (info->plan_error.code != BN_OK)
        return sentence(&info->plan_error);
    json_t *o = json_object();
    json_out_add(o, "device", json_string(info->backend));
    json_out_add(o, "weight_bytes", count(info->plan.weight_bytes));
    json_out_add(o, "scratch_bytes", count(info->plan.scratch_bytes));
    json_out_add(o, "kv_bytes_per_token", count(info->plan.kv_bytes_per_token));
    json_out_add(o, "n_ctx", count(info->n_ctx));
    json_out_add(o, "kv_bytes", count((uint64_t)info->plan.kv_bytes_per_token * info->n_ctx));
    return o;
}

static void add_token(json_t *o, const struct tokenizer *t, const char *key, int32_t id)
{
    json_t *token = id == TOKEN_NONE ? json_null() : json_object();
    if (id != TOKEN_NONE) {
        json_out_add(token, "id", json_integer(id));
        json_out_add(token, "text", json_out_text(tokenizer_token_text(t, id)));
    }
    json_out_add(o, key, token);
}

static json_t *tokenizer_object(const struct info *info)
{
    const struct tokenizer *t = info->in->tokenizer;
    if (!t)
        return sentence(&info->tokenizer_error);
    const struct tokenizer_info *ti = tokenizer_info(t);
    json_t *o = json_object(), *eog = json_array();
    json_out_add(o, "model", json_string(ti->model));
    json_out_add(o, "pre", json_out_text(bn_str_of(ti->pre)));
    json_out_add(o, "n_vocab", count(ti->n_vocab));
    json_out_add(o, "n_merges", count(ti->n_merges));
    add_token(o, t, "bos", ti->bos);
    add_token(o, t, "eos", ti->eos);
    add_token(o, t, "eot", ti->eot);
    add_token(o, t, "unk", ti->unk);
    add_token(o, t, "pad", ti->pad);
    for (size_t i = 0; i < ti->n_eog; i++)
        json_array_append_new(eog, json_integer(ti->eog[i]));
    json_out_add(o, "eog", eog);
    json_out_add(o, "add_bos", json_boolean(ti->add_bos));
    json_out_add(o, "add_space_prefix", json_boolean(ti->add_space_prefix));
    return o;
}

static json_t *template_object(const struct info *info)
{
    if (!info->in->tokenizer)
        return json_null();
    if (!info->in->template)
        return sentence(&info->template_error);
    const struct template_info *t = template_info(info->in->template);
    json_t *o = json_object();
    json_out_add(o, "name", json_string(t->name));
    json_out_add(o, "is_chat", json_boolean(t->is_chat));
    json_out_add(o, "has_thoughts", json_boolean(t->has_thoughts));
    json_out_add(o, "source", json_out_text(t->source));
    return o;
}

static json_t *devices_array(const struct info *info)
{
    json_t *list = json_array();
    for (size_t i = 0; i < info->n_devices; i++) {
        json_t *o = json_object();
        json_out_add(o, "name", json_out_text(bn_str_of(info->devices[i].name)));
        json_out_add(o, "usable", json_boolean(info->devices[i].usable));
        json_out_add(o, "text", json_out_text(bn_str_of(info->devices[i].text)));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *notes_array(const struct info *info)
{
    json_t *list = json_array();
    for (size_t i = 0; i < info->in->notes.n; i++) {
        const struct bn_note *note = &info->in->notes.items[i];
        json_t *o = json_object();
        json_out_add(o, "kind", json_string(info_note_kind(note->kind)));
        json_out_add(o, "id", json_string(note->id));
        json_out_add(o, "text", json_out_text(bn_str_of(note->text)));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *value_of(const struct info *info, const struct gguf_kv *kv, const char *key)
{
    const struct bn_file *file = info->in->file;
    struct bn_str text;
    uint64_t u;
    double f;
    bool b;
    if (kv->kind == GGUF_ARRAY) {
        json_t *o = json_object();
        json_out_add(o, "array_of", json_string(info_kind_name(kv->item_kind)));
        json_out_add(o, "n_items", count(kv->n_items));
        return o;
    }
    if (kv->kind == GGUF_STR && bn_file_get_str(file, key, &text))
        return json_out_text(text);
    if (kv->kind == GGUF_BOOL && bn_file_get_bool(file, key, &b))
        return json_boolean(b);
    if (kv->kind != GGUF_F32 && kv->kind != GGUF_F64 && bn_file_get_u64(file, key, &u))
        return count(u);
    if (bn_file_get_f64(file, key, &f))
        return json_real(f); /* NULL for what JSON cannot say: nan, infinity */
    return NULL;
}

static json_t *metadata_object(const struct info *info)
{
    json_t *o = json_object();
    for (size_t i = 0; i < info->gguf->n_kvs; i++) {
        const struct gguf_kv *kv = &info->gguf->kvs[i];
        char raw[256];
        if (kv->key.n_bytes >= sizeof(raw))
            continue;
        (void)snprintf(raw, sizeof(raw), "%.*s", (int)kv->key.n_bytes, kv->key.ptr); /* it fits */
        json_t *clean = json_out_text(kv->key);
        json_t *value = value_of(info, kv, raw);
        if (clean)
            json_out_add(o, json_string_value(clean), value ? value : json_null());
        else
            json_decref(value);
        json_decref(clean);
    }
    return o;
}

enum exit_code info_print_json(const struct info *info)
{
    json_t *o = json_object();
    struct bn_error err;
    const bool whole = json_out_add(o, "file", file_object(info)) &&
                       json_out_add(o, "model", model_object(info)) &&
                       json_out_add(o, "tensor_types", types_object(info)) &&
                       json_out_add(o, "memory", memory_object(info)) &&
                       json_out_add(o, "tokenizer", tokenizer_object(info)) &&
                       json_out_add(o, "template", template_object(info)) &&
                       json_out_add(o, "devices", devices_array(info)) &&
                       json_out_add(o, "notes", notes_array(info)) &&
                       json_out_add(o, "metadata", metadata_object(info));
    if (!whole) {
        json_decref(o);
        return report_fail(INSPECT, EXIT_INTERNAL, "out of memory for JSON output");
    }
    return json_out_write(o, stdout, JSON_OUT_INDENT, &err)
               ? EXIT_DONE
               : report_error(INSPECT, STAGE_RUN, &err);
}
