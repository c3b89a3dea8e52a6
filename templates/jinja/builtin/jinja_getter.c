/*
 * Attribute paths. A component that consists of digits is an index.
 */
#include "templates/jinja/builtin/jinja_getter.h"

#include "templates/jinja/builtin/text/jinja_string.h"
#include "templates/jinja/value/jinja_number.h"
#include "templates/jinja/value/jinja_ops.h"
#include "templates/jinja/value/jinja_unicode.h"

/* As in Python: str.isdigit(), then int(), which reads decimal digits of all scripts. */
static bool as_index(struct jvm *vm, struct jval part, struct jval *out)
{
    const struct bn_str text = jstr_text(part.u.s);
    int64_t i;
    *out = part;
    for (size_t at = 0; at < text.n_bytes;) {
        uint32_t cp;
        at += text_next(text, at, &cp);
        if (!uni_is(cp, UNI_DIGIT))
            return true;
    }
    if (text.n_bytes == 0)
        return true;
    const enum number_result result = number_parse_int(text, 10, &i);
    if (result == NUMBER_BAD) /* for example a superscript: a digit, but not a decimal one */
        return jvm_fail(vm, "an index in an attribute path is not a decimal number");
    if (result != NUMBER_OK)
        return jvm_fail(vm, "an index in an attribute path is out of range");
    *out = jint(i);
    return true;
}

bool getter_init(struct jvm *vm, struct jval attribute, bool ignore_case, struct getter *g)
{
    struct jval dot;
    *g = (struct getter){.ignore_case = ignore_case, .fallback = {.kind = J_MISSING}};
    if (attribute.kind == J_MISSING || attribute.kind == J_NONE)
        return jlist_new(vm, J_LIST, 0, &g->parts);
    if (attribute.kind != J_STR)
        return jlist_new(vm, J_LIST, 1, &g->parts) && jlist_push(vm, g->parts, attribute);
    dot = jstr_lit(vm, ".");
    if (dot.kind == J_MISSING || !string_split(vm, attribute.u.s, dot, -1, &g->parts))
        return false;
    for (size_t i = 0; i < g->parts.u.list->n; i++)
        if (!as_index(vm, g->parts.u.list->items[i], &g->parts.u.list->items[i]))
            return false;
    return true;
}

bool getter_get(struct jvm *vm, const struct getter *g, struct jval v, struct jval *out)
{
    const bool has_fallback = g->fallback.kind != J_MISSING && g->fallback.kind != J_NONE;
    *out = v;
    for (size_t i = 0; i < g->parts.u.list->n; i++) {
        if (!jvm_steps(vm, 1) || !vm->ops->get_item(vm, *out, g->parts.u.list->items[i], out))
            return false;
        if (has_fallback && out->kind == J_UNDEF)
            *out = g->fallback;
    }
    if (g->ignore_case && out->kind == J_STR)
        return string_case(vm, out->u.s, CASE_LOWER, out);
    return true;
}
