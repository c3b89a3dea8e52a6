/*
 * Shared by the files that implement template.h: origins of strings, and the built-in families.
 */
#ifndef TEMPLATES_TEMPLATE_PRIVATE_H
#define TEMPLATES_TEMPLATE_PRIVATE_H

#include "templates/jinja/value/jinja_vm.h"
#include "templates/template.h"

/* Copy the messages and set the origin of each string: template text for known role names, answer
 * for the content of an assistant message, message text for all others. The copies share the bytes
 * of the strings. BN_EARG: NULL or not a list. BN_EFORMAT: a bound of the interpreter is exceeded.
 * BN_ENOMEM. */
bool messages_with_origin(struct jvm *vm, const struct template_value *messages, struct jval *out);
/* bos_token, eos_token, unk_token, pad_token: the variables with the texts of special tokens. */
#define TEMPLATE_TOKENS 4
extern const char *const template_token_names[TEMPLATE_TOKENS];

/* Add each argument to `vars`. The strings in its value become message text without a message
 * index. But a string for one of the variables above becomes template text, because it has to be
 * encoded as the special token that it names. `args` may be NULL: no arguments. BN_EARG: not a
 * dict. Other errors: as above. */
bool args_with_origin(struct jvm *vm, const struct template_value *args, struct jdict *vars);

/* The built-in families. embed.py generates both lists. The first ends with an entry whose name is
 * NULL, the second with NULL. */
struct template_family {
    const char *name;
    const char *source;
};
extern const struct template_family template_families[];
extern const char *const template_family_names[];

#endif
