/*
 * Between the files behind template.h: marked values, and the built-in families.
 */
#ifndef TEMPLATES_TEMPLATE_PRIVATE_H
#define TEMPLATES_TEMPLATE_PRIVATE_H

#include "templates/jinja/value/jinja_value.h"
#include "templates/template.h"

/* A copy of the value, all of its strings of this origin. Bytes are shared. */
bool mark_value(struct jvm *vm, struct jval v, uint32_t origin, struct jval *out);
/* Messages: roles by name are the template's own text, an assistant's content is an answer, all
 * else is message text, whatever template_string was told. */
bool mark_messages(struct jvm *vm, const struct template_value *messages, struct jval *out);
bool mark_args(struct jvm *vm, const struct template_value *args, struct jdict *vars);

struct template_family {
    const char *name;
    const char *source;
};
extern const struct template_family template_families[]; /* a NULL name ends it; made by embed.py */
extern const char *const template_family_names[];        /* the same names, then NULL */

/* Which template to run, without running it. */
struct template_pick {
    const char *name;
    struct bn_str source;
    const char *note_id; /* why it is not what the file says, NULL: it is */
    const char *note;
};
const struct template_family *family_find(const char *name);
/* What the model's own template looks like, else what its architecture says; chatml. */
const struct template_family *family_by_text(const struct template_config *cfg);
struct template_pick family_pick(const struct template_config *cfg); /* for "auto" */

#endif
