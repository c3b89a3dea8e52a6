/*
 * Chooses a built-in family from the special tokens in the model's template text, from the
 * architecture and from the vocabulary.
 */
#include "templates/template_private.h"

#include "templates/jinja/value/jinja_text.h"

const struct template_family *family_find(const char *name)
{
    for (const struct template_family *f = template_families; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

static bool is_bitnet(const struct template_config *cfg)
{
    return bn_str_is(cfg->arch, "bitnet-b1.58") || bn_str_is(cfg->arch, "bitnet-25");
}

static bool has(struct bn_str text, const char *mark)
{
    return text_find(text, bn_str_of(mark), 0, text.n_bytes) != SIZE_MAX;
}

const struct template_family *family_by_text(const struct template_config *cfg)
{
    static const struct {
        const char *mark, *also, *family;
    } marks[] = {
        {"BITNETAssistant", "", "bitnet"}, {"<|start_header_id|>", "", "llama3"},
        {"<|im_start|>", "", "chatml"},    {"<|assistant|>", "<|user|>", "falcon3"},
        {"Assistant: ", "", "bitnet"},
    };
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (has(cfg->model_text, marks[i].mark) && has(cfg->model_text, marks[i].also))
            return family_find(marks[i].family);
    return family_find(is_bitnet(cfg) ? "bitnet" : "chatml");
}

static struct template_pick pick(const char *name, const char *note_id, const char *note)
{
    const struct template_family *const f = family_find(name);
    return (struct template_pick){
        .name = f->name, .source = bn_str_of(f->source), .note_id = note_id, .note = note};
}

struct template_pick family_pick(const struct template_config *cfg)
{
    const bool blank = text_skip_space(cfg->model_text, 0) == cfg->model_text.n_bytes;
    if (!blank && has(cfg->model_text, "BITNETAssistant") &&
        bn_repair_allowed(cfg->no_repair, "chat-template"))
        return pick("bitnet", "chat-template",
                    "the file's chat template is a known wrong one (BITNETAssistant): "
                    "using the built-in 'bitnet'");
    if (!blank)
        return (struct template_pick){.name = "model", .source = cfg->model_text};
    if (cfg->is_base_model_hint)
        return pick("plain", "base-model", "base model: plain text completion, not chat");
    if (is_bitnet(cfg))
        return pick("bitnet", "no-chat-template",
                    "the file has no chat template: using the built-in 'bitnet'");
    return pick("chatml", "no-chat-template",
                "the file has no chat template: "
                "using the built-in 'chatml', which may not be what the model was trained with");
}
