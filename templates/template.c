/*
 * Opens a template (from the user, from the model file or built in) and renders a conversation into
 * segments.
 *
 * The model's own template may be absent, wrong or not supported. Then a built-in family replaces
 * it, chosen by marks in the template's text (strings that are typical of a family), or by the
 * architecture and the special tokens of the vocabulary.
 */
#include "templates/template.h"

#include "engine/base/memory.h"
#include "templates/jinja/eval/jinja_eval.h"
#include "templates/template_private.h"

#include <stdio.h>
#include <string.h>

/* Memory for parsing. The tree has about 100 bytes for each byte of the source, and known templates
 * have up to 20,000 bytes. */
#define PARSE_MAX_BYTES ((size_t)64 << 20)

struct template
{
    struct template_arena *arena; /* owns the tree and all text below */
    struct jprogram program;
    struct template_info info;
    /* bos, eos, unk, pad: J_STR, or J_MISSING: no such token */
    struct jval tokens[TEMPLATE_TOKENS];
};

/* ---- choosing a built-in family ---- */

static const struct template_family *family_find(const char *name)
{
    for (const struct template_family *f = template_families; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

static bool has(struct bn_str text, const char *mark)
{
    return text_find(text, bn_str_of(mark), 0, text.n_bytes) != SIZE_MAX;
}

/* "" is no token that the vocabulary has to contain. */
static bool has_token(const struct template_config *cfg, const char *text)
{
    return !*text || (cfg->has_token && cfg->has_token(cfg->vocab, bn_str_of(text)));
}

/* The families that are chosen by special tokens of the vocabulary. Without its tokens, the marks
 * of a family would be sent as ordinary characters, which the model never saw. The rows with an
 * architecture are before the others. */
static const struct vocab_row {
    const char *arch; /* only models of this architecture use the family; "": all models */
    const char *token, *second_token; /* special tokens that the family writes; "": none */
    const char *family;
} vocab_rows[] = {
    {"bitnet-b1.58", "<|eot_id|>", "", "bitnet"},
    {"bitnet-25", "<|eot_id|>", "", "bitnet"},
    {"", "<|start_header_id|>", "<|eot_id|>", "llama3"},
    {"", "<|im_start|>", "<|im_end|>", "chatml"},
    {"", "<|user|>", "<|assistant|>", "falcon3"},
};

/* The first row that fits the architecture and the vocabulary; NULL: none does, as with a base
 * model. */
static const struct vocab_row *row_of_vocab(const struct template_config *cfg)
{
    for (size_t i = 0; i < sizeof vocab_rows / sizeof vocab_rows[0]; i++) {
        const struct vocab_row *const r = &vocab_rows[i];
        if ((!*r->arch || bn_str_is(cfg->arch, r->arch)) && has_token(cfg, r->token) &&
            has_token(cfg, r->second_token))
            return r;
    }
    return NULL;
}

/* The family that replaces a model's template that parse_source refuses: the family of the first
 * row whose two marks the template contains ("" is in every text), else that of the vocabulary,
 * else plain. The marks need not be tokens: the template shows that the model knows them. */
static const char *family_of_text(const struct template_config *cfg)
{
    static const struct {
        const char *mark, *second_mark, *family;
    } rows[] = {
        {"BITNETAssistant", "", "bitnet"}, {"<|start_header_id|>", "", "llama3"},
        {"<|im_start|>", "", "chatml"},    {"<|assistant|>", "<|user|>", "falcon3"},
        {"Assistant: ", "", "bitnet"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (has(cfg->model_text, rows[i].mark) && has(cfg->model_text, rows[i].second_mark))
            return rows[i].family;
    const struct vocab_row *const row = row_of_vocab(cfg);
    return row ? row->family : "plain";
}

/* ---- opening ---- */

static bool parse_source(struct template *t, struct bn_str source, struct bn_error *err)
{
    struct jvm vm = {.arena = t->arena, .err = err, .ops = &jinja_ops};
    struct jval copy;
    vm.max_bytes = arena_bytes(t->arena) + PARSE_MAX_BYTES;
    if (!jstr_copy(&vm, source, ORIGIN_TEMPLATE, &copy) ||
        !jinja_parse(&vm, jstr_text(copy.u.s), &t->program))
        return false;
    t->info.source = jstr_text(copy.u.s);
    t->info.has_thoughts = has(t->info.source, "</think>");
    return true;
}

static bool open_builtin(struct template *t, const char *name, struct bn_error *err)
{
    const struct template_family *const f = family_find(name);
    if (!f)
        return bn_fail(err, BN_EARG, "no built-in chat template is called '%s'", name);
    t->info.name = f->name;
    t->info.is_chat = strcmp(f->name, "plain") != 0;
    return parse_source(t, bn_str_of(f->source), err);
}

/* Open a built-in template for a model file that has no template. */
static bool open_fallback(struct template *t, const struct template_config *cfg,
                          struct bn_error *err)
{
    const struct vocab_row *const row = row_of_vocab(cfg);
    if (!row) {
        bn_notes_add(cfg->notes, BN_NOTE_WARNING, "base-model",
                     "base model: plain text completion, not chat");
        return open_builtin(t, "plain", err);
    }
    bn_notes_add(cfg->notes, BN_NOTE_WARNING, "no-chat-template",
                 "the file has no chat template: using the built-in '%s'%s", row->family,
                 *row->arch ? "" : ", which may not be what the model was trained with");
    return open_builtin(t, row->family, err);
}

/* Open the model's template, or a built-in one with a note that reports the replacement. */
static bool open_auto(struct template *t, const struct template_config *cfg, struct bn_error *err)
{
    if (text_skip_space(cfg->model_text, 0) == cfg->model_text.n_bytes)
        return open_fallback(t, cfg, err);
    /* The file of BitNet b1.58 2B4T has a placeholder as its template. The placeholder puts the
     * end-of-text token before the answer. */
    if (has(cfg->model_text, "BITNETAssistant") &&
        bn_repair_allowed(cfg->no_repair, "chat-template")) {
        bn_notes_add(cfg->notes, BN_NOTE_REPAIR, "chat-template",
                     "the file's chat template is a known wrong one (BITNETAssistant): "
                     "using the built-in 'bitnet'");
        return open_builtin(t, "bitnet", err);
    }
    t->info.name = "model";
    t->info.is_chat = true;
    if (parse_source(t, cfg->model_text, err))
        return true;
    if (err->code == BN_ENOMEM)
        return false; /* another attempt could succeed, so the template may be fine */
    const char *const family = family_of_text(cfg);
    bn_notes_add(cfg->notes, BN_NOTE_WARNING, "chat-template",
                 "the file's chat template cannot be run, using the built-in '%s': %s", family,
                 err->text);
    return open_builtin(t, family, err);
}

static bool open_tokens(struct template *t, const struct template_config *cfg, struct bn_error *err)
{
    const struct bn_str texts[TEMPLATE_TOKENS] = {cfg->bos_token, cfg->eos_token, cfg->unk_token,
                                                  cfg->pad_token};
    struct jvm vm = {.arena = t->arena, .err = err, .ops = &jinja_ops};
    for (size_t i = 0; i < TEMPLATE_TOKENS; i++) {
        t->tokens[i] = (struct jval){.kind = J_MISSING};
        if (texts[i].n_bytes && text_valid(texts[i]) &&
            !jstr_copy(&vm, texts[i], ORIGIN_TEMPLATE, &t->tokens[i]))
            return false;
        if (t->tokens[i].kind == J_STR)
            jstr_chars(t->tokens[i].u.s); /* caches the count: a template is read-only later */
    }
    return true;
}

bool template_open(const struct template_config *cfg, struct template **out, struct bn_error *err)
{
    struct template *const t = mem_alloc(1, sizeof *t);
    bool ok;
    if (!t || !(t->arena = arena_open())) {
        template_close(t);
        return bn_fail(err, BN_ENOMEM, "out of memory for the chat template");
    }
    if (cfg->user_text.n_bytes) {
        t->info.name = "file";
        t->info.is_chat = true;
        ok = parse_source(t, cfg->user_text, err);
    } else if (!cfg->choice || strcmp(cfg->choice, "auto") == 0) {
        ok = open_auto(t, cfg, err);
    } else {
        ok = open_builtin(t, cfg->choice, err);
    }
    t->info.is_thinking_off =
        ok && bn_str_is(cfg->arch, "qwen3") && has(t->info.source, "enable_thinking");
    if (!ok || !open_tokens(t, cfg, err)) {
        template_close(t);
        return false;
    }
    *out = t;
    return true;
}

void template_close(struct template *t)
{
    if (!t)
        return;
    arena_close(t->arena);
    mem_free(t);
}

const struct template_info *template_info(const struct template *t)
{
    return &t->info;
}

/* ---- rendering ---- */

static bool set_var(struct jvm *vm, struct jdict *vars, const char *name, struct jval v)
{
    const struct jval key = jstr_lit(vm, name);
    return key.kind != J_MISSING && jdict_set(vm, vars, key, v);
}

static bool make_vars(struct jvm *vm, const struct template *t, const struct template_input *in,
                      struct jval *out)
{
    struct jval messages;
    if (!jdict_new(vm, J_DICT, out) || !messages_with_origin(vm, in->messages, &messages))
        return false;
    struct jdict *const vars = out->u.dict;
    for (size_t i = 0; i < TEMPLATE_TOKENS; i++)
        if (t->tokens[i].kind != J_MISSING &&
            !set_var(vm, vars, template_token_names[i], t->tokens[i]))
            return false;
    return set_var(vm, vars, "messages", messages) &&
           set_var(vm, vars, "add_generation_prompt", jbool(in->add_generation_prompt)) &&
           args_with_origin(vm, in->args, vars);
}

/* The segment of run r of the output, by its origin (origin_of in jinja_text.h). */
static struct segment segment_of(const struct jbuf *b, size_t r)
{
    const size_t b0 = r ? b->runs[r - 1].end : 0;
    const uint32_t origin = b->runs[r].origin;
    struct segment s = {.kind = SEGMENT_TEMPLATE,
                        .text = {b->ptr + b0, b->runs[r].end - b0},
                        .message = SEGMENT_NO_MESSAGE};
    if (origin != ORIGIN_TEMPLATE) {
        s.kind = (origin & 3) == ORIGIN_ANSWER ? SEGMENT_ANSWER : SEGMENT_MESSAGE;
        s.message = (size_t)(origin >> 2) - 1; /* 0 becomes SIZE_MAX, SEGMENT_NO_MESSAGE */
    }
    return s;
}

/* The output ends with template text "<think>", which white space may follow. */
static bool ends_in_thought(const struct template_output *out)
{
    static const char tag[] = "<think>";
    if (out->n_segments == 0 || out->segments[out->n_segments - 1].kind != SEGMENT_TEMPLATE)
        return false;
    const struct bn_str text = out->segments[out->n_segments - 1].text;
    const size_t end = text_trim_space(text, text.n_bytes), n = sizeof tag - 1;
    return end >= n && memcmp(text.ptr + end - n, tag, n) == 0;
}

/* Add advice if the error is the use of a token variable that the vocabulary does not define.
 * Always false. */
static bool hint_token(const struct template *t, struct bn_error *err)
{
    for (size_t i = 0; i < TEMPLATE_TOKENS; i++) {
        char message[40];
        (void)snprintf(message, sizeof message, "'%s' is undefined",
                       template_token_names[i]); /* fits */
        if (t->tokens[i].kind == J_MISSING && strstr(err->text, message)) {
            const struct bn_error why = *err;
            return bn_fail(
                err, why.code,
                "%s: the vocabulary defines no such token; set it with --template-arg %s=TEXT",
                why.text, template_token_names[i]);
        }
    }
    return false;
}

bool template_render(const struct template *t, struct template_arena *arena,
                     const struct template_input *in, struct template_output *out,
                     struct bn_error *err)
{
    struct jvm vm = {.arena = arena, .err = err, .ops = &jinja_ops, .now = in->now};
    struct jval vars;
    struct jbuf b = {.vm = &vm};
    vm.max_bytes = arena_bytes(arena) + JVM_MAX_BYTES;
    if (!make_vars(&vm, t, in, &vars) || !jinja_run(&vm, &t->program, vars.u.dict, &b))
        return hint_token(t, err);
    struct template_output made = {.n_segments = b.n_runs};
    made.segments = jvm_alloc(&vm, b.n_runs, sizeof *made.segments);
    if (!made.segments)
        return false;
    for (size_t r = 0; r < b.n_runs; r++)
        made.segments[r] = segment_of(&b, r);
    made.starts_in_thought = in->add_generation_prompt && ends_in_thought(&made);
    *out = made;
    return true;
}

const char *const *template_builtin_names(void)
{
    return template_family_names;
}
