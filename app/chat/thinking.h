/*
 * Whether the model writes thoughts before its answers with the present settings, and which setting
 * decides this.
 */
#ifndef APP_THINKING_H
#define APP_THINKING_H

#include "app/chat/conversation/chat_prompt.h"
#include "app/chat/open_model.h"
#include "app/options/options.h"

struct thinking {
    const char *value; /* "on", "off", or "none": no template, or one without thoughts */
    /* What decides: the source of --think as in option_source_name, or "template", "template-arg",
     * "family" (is_thinking_off of template_info) or "think-budget" (it is 0). Static text. */
    const char *source;
    bool has_switch; /* the template uses enable_thinking, which --think and --template-arg set */
};
struct thinking thinking_of(const struct open_model *m, const struct options *o);

/* A warning that --think off of the command line has no effect on the answer to this prompt, as
 * static text. NULL: it has an effect, was not given, or the template has no thoughts. */
const char *thinking_off_warning(const struct open_model *m, const struct options *o,
                                 const struct prompt *p);

#endif
