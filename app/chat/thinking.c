/*
 * The effect of --think, --template-arg and the family on the template: see thinking.h.
 */
#define _GNU_SOURCE /* memmem */
#include "app/chat/thinking.h"

#include "app/chat/conversation/thought_close.h"
#include "app/options/model_args.h"

#define VARIABLE "enable_thinking" /* of templates: false turns thoughts off */

/* Whether --template-arg sets the variable. */
static bool has_argument(const struct options *o)
{
    static const char name[] = VARIABLE "=";
    size_t n;
    const char *const *items = options_list(o, "template-arg", &n);
    for (size_t i = 0; i < n; i++)
        if (strncmp(items[i], name, sizeof(name) - 1) == 0)
            return true;
    return false;
}

/* Whether the name occurs in the source of the template. */
static bool reads_variable(const struct template *t)
{
    const struct bn_str source = template_info(t)->source;
    return memmem(source.ptr, source.n_bytes, VARIABLE, sizeof(VARIABLE) - 1) != NULL;
}

/* The source of a value of enable_thinking that model_args_thinks sets. */
static const char *source_of(const struct open_model *m, const struct options *o)
{
    if (strcmp(options_text(o, "think"), "auto") != 0)
        return option_source_name(options_source(o, "think"));
    return template_info(m->template)->is_thinking_off ? "family" : "think-budget";
}

struct thinking thinking_of(const struct open_model *m, const struct options *o)
{
    const struct prompt_maker maker = {
        .tokenizer = m->tokenizer, .template = m->template, .options = o};
    bool thinks;
    if (!m->template || !template_info(m->template)->has_thoughts)
        return (struct thinking){"none", "template", false};
    if (!reads_variable(m->template))
        return (struct thinking){"on", "template", false};
    if (!has_argument(o) && model_args_thinks(o, m->template, &thinks))
        return (struct thinking){thinks ? "on" : "off", source_of(m, o), true};
    /* The variable comes from --template-arg or is the default of the template. Only a rendered
     * prompt shows the effect. */
    return (struct thinking){thought_is_closed(&maker) ? "off" : "on",
                             has_argument(o) ? "template-arg" : "template", true};
}

const char *thinking_off_warning(const struct open_model *m, const struct options *o,
                                 const struct prompt *p)
{
    /* A config file is for all models, and /set has a warning of its own. A --template-arg with the
     * same variable is stronger. */
    if (options_source(o, "think") != OPTION_FROM_COMMAND || has_argument(o) ||
        strcmp(options_text(o, "think"), "off") != 0)
        return NULL;
    const struct thinking t = thinking_of(m, o);
    if (strcmp(t.value, "none") == 0)
        return NULL;
    if (!t.has_switch)
        return "--think off has no effect: the chat template has no switch for thoughts";
    return p->starts_in_thought
               ? "--think off has no effect: the chat template begins a thought all the same"
               : NULL;
}
