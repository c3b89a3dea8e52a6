/*
 * Text and JSON about the open model: see model_sheet.h.
 */
#include "app/chat/model_sheet.h"

#include "app/chat/thinking.h"
#include "app/common/json_out.h"
#include "app/common/report.h"
#include "app/options/chat_options.h"

void model_sheet_repairs(const struct bn_notes *notes, struct strbuf *out)
{
    const size_t n_before = out->n_bytes;
    for (size_t i = 0; i < notes->n; i++)
        if (notes->items[i].kind == BN_NOTE_REPAIR)
            strbuf_addf(out, "%s%s", out->n_bytes > n_before ? ", " : "", notes->items[i].id);
}

static void add_repairs(const struct open_model *m, struct strbuf *text)
{
    struct strbuf names = {0};
    model_sheet_repairs(&m->notes, &names);
    if (names.n_bytes > 0)
        strbuf_addf(text, "\nrepairs     %s (-v explains them)", strbuf_text(&names));
    strbuf_finish(&names);
}

const char *model_sheet_ctx_limit(const struct bn_model_info *info, size_t n_ctx)
{
    const bool is_limited = n_ctx == info->n_ctx_default && n_ctx < info->n_ctx_train;
    return is_limited ? "fits into half of the free memory; " : "";
}

static const char *const sampling_names[] = {"temp", "top-k", "top-p", "min-p"};

/* "temp 0.5 (family), top-k 20 (flag), ..." */
static void add_sampling(const struct options *o, struct strbuf *text)
{
    strbuf_add_text(text, "\nsampling    ");
    for (size_t i = 0; i < sizeof(sampling_names) / sizeof(sampling_names[0]); i++) {
        const char *name = sampling_names[i];
        char value[60];
        options_format(o, name, value, sizeof(value));
        strbuf_addf(text, "%s%s %s (%s)", i > 0 ? ", " : "", name, value,
                    option_source_name(options_source(o, name)));
    }
    if (chat_options_is_greedy(o))
        strbuf_addf(text, "; greedy (%s): temp is 0",
                    option_source_name(options_source(o, "greedy")));
}

/* "off (family)", "on (flag), at most 500 tok (config)" */
static void add_thinking(const struct open_model *m, const struct options *o, struct strbuf *text)
{
    const struct thinking t = thinking_of(m, o);
    const size_t n_budget = chat_options_think_budget(o);
    strbuf_addf(text, "\nthinking    %s (%s)", t.value, t.source);
    if (strcmp(t.value, "on") == 0 && n_budget != THINK_NO_BUDGET)
        strbuf_addf(text, ", at most %zu tok (%s)", n_budget,
                    option_source_name(options_source(o, "think-budget")));
}

void model_sheet_lines(const struct open_model *m, const struct worker *w, const struct options *o,
                       struct strbuf *text)
{
    const struct bn_model_info *info = worker_info(w);
    char size[REPORT_SIZE_BYTES];
    report_size(bn_file_bytes(m->file), size);
    strbuf_addf(text, "model       %s\nfile        %s, %s\n", m->name,
                m->is_demo ? "built in" : bn_file_path(m->file), size);
    if (info) {
        const bool is_large = info->n_params >= 1000000000;
        strbuf_addf(text, "kind        %s, %s, %.2f %s parameters\n", info->arch,
                    info->quantisation, (double)info->n_params / (is_large ? 1e9 : 1e6),
                    is_large ? "billion" : "million");
        strbuf_addf(text,
                    "shape       %zu layers, width %zu, feed-forward %zu, %zu heads (%zu for KV)\n",
                    info->n_layers, info->n_embd, info->n_ff, info->n_heads, info->n_kv_heads);
        strbuf_addf(text, "device      %s\n", info->device);
        if (info->skip_reason[0])
            strbuf_addf(text, "            %s\n", info->skip_reason);
        if (info->n_experts > 0)
            strbuf_addf(text, "experts     %zu in a layer, %zu used by a token\n", info->n_experts,
                        info->n_used_experts);
        if (info->window[0])
            strbuf_addf(text, "window      %s\n", info->window);
        strbuf_addf(text, "activations %s\n", info->activations);
        if (info->rotation[0])
            strbuf_addf(text, "rotated     Hadamard transforms, %s\n", info->rotation);
        strbuf_addf(text, "context     %zu tok (%strained with %zu), %zu bytes a token (%s)\n",
                    worker_n_ctx(w), model_sheet_ctx_limit(info, worker_n_ctx(w)),
                    info->n_ctx_train, info->kv_bytes_per_token, info->kv_type);
        if (info->state_bytes > 0)
            strbuf_addf(text,
                        "states      %.1f MB a chat, %.1f MB for each saved state, "
                        "at most %.1f MB in all\n",
                        (double)info->seq_fixed_bytes / 1e6, (double)info->state_bytes / 1e6,
                        (double)worker_state_memory(w) / 1e6);
    } else {
        strbuf_add_text(text, "            still loading\n");
    }
    const struct tokenizer_info *t = tokenizer_info(m->tokenizer);
    strbuf_addf(text, "vocabulary  %zu tokens, %s%s%s\n", t->n_vocab, t->model,
                t->pre[0] ? ", " : "", t->pre);
    if (m->template)
        strbuf_addf(text, "template    %s%s", template_info(m->template)->name,
                    template_info(m->template)->is_chat
                        ? ""
                        : " (base model: plain text completion, not chat)");
    else
        strbuf_add_text(text, "template    none (--raw)");
    add_thinking(m, o, text);
    add_sampling(o, text);
    add_repairs(m, text);
}

void model_sheet_explain(const struct worker *w, struct strbuf *out)
{
    const struct bn_model_info *info = worker_info(w);
    const struct {
        const char *title;
        size_t n_tokens;
    } passes[] = {{"prompt", info->n_ubatch}, {"answer", 1}};
    char text[2000]; /* enough: a text has at most six lines */
    for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
        (void)worker_explain(w, passes[i].n_tokens, text, sizeof(text)); /* fits */
        strbuf_addf(out, "%s%s\n%s", i > 0 ? "\n" : "", passes[i].title, text);
    }
}

static const char *template_kind(const struct open_model *m)
{
    if (!m->template)
        return "none";
    return template_info(m->template)->is_chat ? "chat" : "base";
}

static void put_text(json_t **o, const char *key, const char *text)
{
    json_out_put(o, key, json_out_text(bn_str_of(text)));
}

/* {"temp": {"value": 0.5, "source": "family"}, ...} */
static json_t *sampling_json(const struct options *options)
{
    json_t *all = json_object();
    for (size_t i = 0; i < sizeof(sampling_names) / sizeof(sampling_names[0]); i++) {
        const char *name = sampling_names[i], *source = name;
        json_t *one = json_object();
        if (strcmp(name, "temp") == 0 && chat_options_is_greedy(options)) {
            json_out_put(&one, "value", json_real(0));
            source = "greedy";
        } else if (options_find(options, name)->kind == OPTION_INT)
            json_out_put_count(&one, "value",
                               (uint64_t)options_int(options, name)); /* not negative */
        else
            json_out_put(&one, "value", json_real(options_real(options, name)));
        put_text(&one, "source", option_source_name(options_source(options, source)));
        json_out_put(&all, name, one);
    }
    return all;
}

/* {"value": "off", "source": "family", "budget": null} */
static json_t *thinking_json(const struct open_model *m, const struct options *options)
{
    const struct thinking t = thinking_of(m, options);
    const size_t n_budget = chat_options_think_budget(options);
    json_t *o = json_object();
    put_text(&o, "value", t.value);
    put_text(&o, "source", t.source);
    if (n_budget == THINK_NO_BUDGET)
        json_out_put(&o, "budget", json_null());
    else
        json_out_put_count(&o, "budget", n_budget);
    return o;
}

json_t *model_sheet_json(const struct open_model *m, const struct worker *w,
                         const struct options *options)
{
    const struct bn_model_info *info = worker_info(w);
    const struct tokenizer_info *t = tokenizer_info(m->tokenizer);
    json_t *o = json_object();
    put_text(&o, "model", m->name);
    put_text(&o, "file", bn_file_path(m->file));
    json_out_put(&o, "built_in", json_boolean(m->is_demo));
    json_out_put_count(&o, "file_bytes", bn_file_bytes(m->file));
    put_text(&o, "architecture", info->arch);
    put_text(&o, "quantisation", info->quantisation);
    json_out_put_count(&o, "parameters", info->n_params);
    json_out_put_count(&o, "layers", info->n_layers);
    json_out_put_count(&o, "width", info->n_embd);
    json_out_put_count(&o, "feed_forward", info->n_ff);
    json_out_put_count(&o, "heads", info->n_heads);
    json_out_put_count(&o, "kv_heads", info->n_kv_heads);
    json_out_put_count(&o, "vocabulary", t->n_vocab);
    put_text(&o, "tokenizer", t->model);
    put_text(&o, "pre_tokenizer", t->pre);
    put_text(&o, "template", m->template ? template_info(m->template)->name : "");
    put_text(&o, "template_kind", template_kind(m));
    put_text(&o, "device", info->device);
    json_out_put_count(&o, "context", worker_n_ctx(w));
    json_out_put_count(&o, "trained_context", info->n_ctx_train);
    json_out_put_count(&o, "weight_bytes", info->weight_bytes);
    json_out_put_count(&o, "kv_bytes_per_token", info->kv_bytes_per_token);
    json_out_put_count(&o, "chat_bytes", info->seq_fixed_bytes);
    json_out_put_count(&o, "state_bytes", info->state_bytes);
    json_out_put_count(&o, "state_memory", worker_state_memory(w));
    put_text(&o, "kv", info->kv_type);
    if (info->n_experts > 0) {
        json_out_put_count(&o, "experts", info->n_experts);
        json_out_put_count(&o, "used_experts", info->n_used_experts);
    }
    if (info->window[0])
        put_text(&o, "window", info->window);
    put_text(&o, "activations", info->activations);
    json_out_put(&o, "thinking", thinking_json(m, options));
    put_text(&o, "rotation", info->rotation);
    json_out_put(&o, "sampling", sampling_json(options));
    json_out_put(&o, "load_s", json_real(info->load_seconds));
    return o;
}
