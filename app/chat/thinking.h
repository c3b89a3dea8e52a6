/*
 * Whether the model thinks before its answers with the present settings, and the reason.
 */
#ifndef APP_THINKING_H
#define APP_THINKING_H

#include "app/chat/open_model.h"
#include "app/options/options.h"

struct thinking {
    const char *value; /* "on", "off" or "none" */
    /* The source of the setting as in option_source_name, or "template", "template-arg" or
     * "think-budget". */
    const char *source;
    bool has_switch; /* the template reads enable_thinking, so --think has an effect */
};
struct thinking thinking_of(const struct open_model *m, const struct options *o);

#endif
