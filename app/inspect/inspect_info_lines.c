/*
 * info as text: sections of two columns. report_safe prints all text that comes from the file.
 */
#include "app/inspect/inspect_info.h"

#include "engine/model/act_scheme.h"

#include <inttypes.h>

#define VALUE_MAX 100 /* bytes of a metadata text that are printed */
#define ITEM_MAX 20   /* bytes of an array item that are printed */
#define N_ITEMS_MAX 3 /* items of an array of strings that are printed; of other arrays none */

static void put_bytes(const char *name, uint64_t n_bytes)
{
    char size[REPORT_SIZE_BYTES];
    report_size(n_bytes, size);
    printf("  %-16s %s\n", name, size);
}

static void put_text(const char *name, struct bn_str text)
{
    printf("  %-16s ", name);
    report_safe(stdout, text);
    putchar('\n');
}

static void print_file(const struct info *info)
{
    const struct gguf *g = info->gguf;
    printf("File\n");
    put_text("path", bn_str_of(bn_file_path(info->in->file)));
    if (bn_file_n_parts(info->in->file) > 1)
        printf("  %-16s %zu\n", "parts", bn_file_n_parts(info->in->file));
    put_bytes("size", g->n_bytes);
    printf("  %-16s GGUF version %" PRIu32 ", %zu keys, %zu tensors, alignment %zu\n", "format",
           g->version, g->n_kvs, g->n_tensors, g->alignment);
}

static void print_model(const struct info *info)
{
    const struct model *m = info->model;
    printf("\nModel\n");
    if (!m) {
        put_text("cannot run", bn_str_of(info->model_error.text));
        return;
    }
    const struct hparams *hp = &m->hp;
    struct bn_str name;
    if (bn_file_get_str(info->in->file, "general.name", &name))
        put_text("name", name);
    printf("  %-16s %s\n", "architecture", m->arch->name);
    printf("  %-16s %.2f million\n", "parameters", (double)m->n_params / 1e6);
    printf("  %-16s %zu layers, width %zu, feed-forward %zu\n", "shape", hp->n_layers, hp->n_embd,
           hp->n_ff);
    if (hp->n_experts > 0)
        printf("  %-16s %zu in a layer, %zu used by a token\n", "experts", hp->n_experts,
               hp->n_used_experts);
    printf("  %-16s %zu query heads, %zu key-value heads, %zu elements each\n", "attention",
           hp->n_heads, hp->n_kv_heads, hp->head_dim);
    if (hp->delta.dim > 0)
        printf("  %-16s in %zu layers, %zu value heads, %zu key heads, %zu elements each\n",
               "delta nets", hp->n_layers - hp->n_attn_layers, hp->delta.n_value_heads,
               hp->delta.n_key_heads, hp->delta.dim);
    char window[120];
    model_window_text(m, window, sizeof(window));
    if (window[0])
        printf("  %-16s %s\n", "window", window);
    printf("  %-16s %s, %zu of %zu, base %g, scale %g%s\n", "RoPE",
           m->arch->rope == ROPE_NEOX ? "halves (NeoX)" : "adjacent pairs", hp->n_rot, hp->head_dim,
           hp->rope_base, hp->rope_scale,
           m->arch->windows      ? ", only with a window"
           : m->rope_freqs.bytes ? ", with frequency factors"
                                 : "");
    if (hp->yarn.factor != 0.0)
        printf("  %-16s factor %g, original context %.0f tokens, magnitude %.4g\n", "YaRN",
               hp->yarn.factor, hp->yarn.original_ctx, hp->rope_magnitude);
    printf("  %-16s %s%s%s, epsilon %g\n", "layer",
           hp->ffn_act == FFN_RELU2 ? "ReLU-squared" : "SiLU",
           m->arch->sub_norms ? ", sub-norms" : "", m->arch->qk_norms ? ", QK norm" : "",
           (double)hp->rms_eps);
    printf("  %-16s %s: %s\n", "activations", act_scheme_name(m->act_scheme), m->act_reason);
    if (m->rotation.version) {
        char text[64];
        file_rotation_describe(&m->rotation, text, sizeof(text));
        printf("  %-16s Hadamard transforms, %s\n", "rotated", text);
    }
    printf("  %-16s %zu tokens, %s output head\n", "vocabulary", hp->n_vocab,
           m->tied ? "tied" : "separate");
    printf("  %-16s %zu tokens\n", "trained context", hp->n_ctx_train);
    printf("  %-16s %s", m->ternary_type == TENSOR_Q1_0 ? "binary weights" : "ternary weights",
           tensor_geometries[m->ternary_type].name);
    if (m->ternary_type == TENSOR_I2_S)
        printf(", layout %s (not recorded in the file; see --i2s-layout)",
               options_text(info->in->options, "i2s-layout"));
    putchar('\n');
}

static void print_types(const struct info *info)
{
    if (info->gguf->n_tensors == 0)
        return;
    printf("\nTensors by type\n");
    for (size_t i = 0; i < TENSOR_N_TYPES; i++) {
        const struct info_type *t = &info->types[i];
        if (t->n_tensors)
            printf("  %-16s %5zu tensors %15" PRIu64 " elements %15" PRIu64 " bytes\n", t->name,
                   t->n_tensors, t->n_elements, t->n_bytes);
    }
}

static void print_memory(const struct info *info)
{
    if (!info->model)
        return;
    printf("\nMemory\n");
    if (info->plan_error.code != BN_OK) {
        put_text("unknown", bn_str_of(info->plan_error.text));
        return;
    }
    const struct backend_plan *p = &info->plan;
    printf("  %-16s %s\n", "device", info->backend);
    put_bytes("weights", p->weight_bytes);
    put_bytes("KV per token", p->kv_bytes_per_token);
    const bool is_limited =
        !options_given(info->in->options, "ctx") && info->n_ctx < info->model->hp.n_ctx_train;
    printf("  %-16s %zu tokens%s\n", "context", info->n_ctx,
           is_limited ? ", which fit into half of the free memory" : "");
    put_bytes("KV cache", info->kv_bytes);
    if (p->state_bytes > 0) {
        put_bytes("states in a chat", p->seq_fixed_bytes);
        put_bytes("a saved state", p->state_bytes);
    }
    put_bytes("scratch", p->scratch_bytes);
    put_bytes("tables in file", info->table_bytes);
    put_bytes("total", info->total_bytes);
}

static void put_token(const struct tokenizer *t, const char *name, int32_t id)
{
    if (id == TOKEN_NONE)
        return;
    printf("  %-16s %d ", name, (int)id);
    report_safe(stdout, tokenizer_token_text(t, id));
    putchar('\n');
}

static void print_tokenizer(const struct info *info)
{
    const struct tokenizer *t = info->in->tokenizer;
    printf("\nTokenizer\n");
    if (!t) {
        put_text("cannot open", bn_str_of(info->tokenizer_error.text));
        return;
    }
    const struct tokenizer_info *ti = tokenizer_info(t);
    printf("  %-16s %s%s%s, %zu tokens, %zu merges\n", "kind", ti->model, *ti->pre ? ", " : "",
           ti->pre, ti->n_vocab, ti->n_merges);
    put_token(t, "begin of text", ti->bos);
    put_token(t, "end of text", ti->eos);
    put_token(t, "end of turn", ti->eot);
    for (size_t i = 0; i < ti->n_eog; i++)
        put_token(t, i ? "" : "end of answer", ti->eog[i]);
    printf("  %-16s %s\n", "prompt",
           ti->add_bos ? "starts with the beginning-of-text token"
                       : "no beginning-of-text token is added");
}

static void print_template(const struct info *info)
{
    if (!info->in->tokenizer)
        return;
    printf("\nTemplate\n");
    if (!info->in->template) {
        put_text("cannot open", bn_str_of(info->template_error.text));
        return;
    }
    const struct template_info *t = template_info(info->in->template);
    printf("  %-16s %s\n", "name", t->name);
    printf("  %-16s %s\n", "for",
           t->is_chat ? "chat" : "base model: plain text completion, not chat");
    if (t->has_thoughts)
        printf("  %-16s yes\n", "thoughts");
}

static void print_devices(const struct info *info)
{
    printf("\nDevices\n");
    for (size_t i = 0; i < info->n_devices; i++) {
        printf("  %-16s %s", info->devices[i].name, info->devices[i].usable ? "" : "not usable: ");
        report_safe(stdout, bn_str_of(info->devices[i].text));
        putchar('\n');
    }
}

static void print_notes(const struct info *info)
{
    const struct bn_notes *notes = &info->in->notes;
    if (notes->n == 0)
        return;
    printf("\nRepairs and notes (with the names for --no-repair)\n");
    for (size_t i = 0; i < notes->n; i++) {
        printf("  %-16s %s: ", notes->items[i].id, info_note_kind(notes->items[i].kind));
        report_safe(stdout, bn_str_of(notes->items[i].text));
        putchar('\n');
    }
    if (notes->n_dropped)
        printf("  ... and %zu more\n", notes->n_dropped);
}

/* Print at most `max` bytes of the text in quotes, and the size of a text that was cut. If the cut
 * divides a character, each of its bytes before the cut is printed as U+FFFD. */
static void print_str(struct bn_str text, size_t max)
{
    const bool cut = text.n_bytes > max;
    putchar('"');
    report_safe(stdout, (struct bn_str){text.ptr, cut ? max : text.n_bytes});
    printf(cut ? "\"... (%zu bytes)" : "\"", text.n_bytes);
}

static void print_array(const struct info *info, const char *key, const struct gguf_kv *kv)
{
    struct bn_str_walk walk;
    struct bn_str item;
    size_t n;
    printf("%" PRIu64 " x %s", kv->n_items, info_kind_name(kv->item_kind));
    if (!bn_file_walk_strs(info->in->file, key, &walk, &n))
        return;
    for (size_t i = 0; i < N_ITEMS_MAX && bn_str_walk_next(&walk, &item); i++) {
        printf(i ? ", " : ": ");
        print_str(item, ITEM_MAX);
    }
}

/* Nothing for a key that info_key refuses. */
static void print_value(const struct info *info, const struct gguf_kv *kv, size_t max)
{
    struct bn_str text;
    uint64_t u;
    int64_t i;
    double f;
    bool b;
    char key[INFO_KEY_BYTES];
    if (!info_key(kv, key))
        return;
    const struct bn_file *file = info->in->file;
    if (kv->kind == GGUF_ARRAY)
        print_array(info, key, kv);
    else if (kv->kind == GGUF_STR && bn_file_get_str(file, key, &text))
        print_str(text, max);
    else if (kv->kind == GGUF_BOOL && bn_file_get_bool(file, key, &b))
        printf("%s", b ? "true" : "false");
    else if (kv->kind != GGUF_F32 && kv->kind != GGUF_F64 && bn_file_get_u64(file, key, &u))
        printf("%" PRIu64, u);
    else if (kv->kind != GGUF_F32 && kv->kind != GGUF_F64 && gguf_item_i64(kv, 0, &i))
        printf("%" PRId64, i); /* negative */
    else if (bn_file_get_f64(file, key, &f))
        printf("%.9g", f);
    else
        putchar('?');
}

static void print_metadata(const struct info *info)
{
    printf("\nMetadata\n");
    for (size_t i = 0; i < info->gguf->n_kvs; i++) {
        const struct gguf_kv *kv = &info->gguf->kvs[i];
        printf("  ");
        report_safe(stdout, kv->key);
        printf(" = ");
        print_value(info, kv, VALUE_MAX);
        putchar('\n');
    }
}

void info_print_lines(const struct info *info)
{
    print_file(info);
    print_model(info);
    print_types(info);
    print_memory(info);
    print_tokenizer(info);
    print_template(info);
    print_devices(info);
    print_notes(info);
    print_metadata(info);
}
