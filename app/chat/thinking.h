/*
 * Whether the model writes thoughts before its answers with the present settings, and which setting
 * decides this.
 */
#ifndef APP_THINKING_H
#define APP_THINKING_H

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

#endif
