/*
 * HTML escapes, with the entities of Python's markupsafe. An entity has the origin of its
 * character.
 */
#include "templates/jinja/builtin/text/jinja_markup.h"

#include "templates/jinja/value/jinja_print.h"

static const struct {
    char c;
    const char *entity;
} entities[] = {
    {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"},
};

static bool escape_byte(struct jbuf *b, const struct jstr *s, size_t at)
{
    for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++)
        if (s->ptr[at] == entities[i].c)
            return jbuf_add(b, entities[i].entity, strlen(entities[i].entity), jstr_origin(s, at));
    return jbuf_slice(b, s, at, at + 1);
}

bool markup_escape(struct jvm *vm, struct jval v, struct jval *out)
{
    struct jbuf b = {.vm = vm};
    struct jval text;
    if (!jval_to_str(vm, v, &text))
        return false;
    if (text.u.s->is_markup) {
        *out = text;
        return true;
    }
    if (!jvm_steps(vm, text.u.s->n_bytes / 8))
        return false;
    for (size_t at = 0; at < text.u.s->n_bytes; at++)
        if (!escape_byte(&b, text.u.s, at))
            return false;
    if (!jbuf_done(&b, out))
        return false;
    out->u.s->is_markup = true;
    return true;
}

bool markup_mark(struct jvm *vm, struct jval v, bool is_markup, struct jval *out)
{
    if (v.u.s->is_markup == is_markup) {
        *out = v;
        return true;
    }
    if (!jstr_slice(vm, v.u.s, 0, v.u.s->n_bytes, out))
        return false;
    out->u.s->is_markup = is_markup;
    return true;
}
