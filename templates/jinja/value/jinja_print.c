/*
 * Python's str() and repr(). Characters of strings keep their origin. All characters of an escape
 * have the origin of the escaped character; everything else, such as quotes, brackets and numbers,
 * is template text.
 */
#include "templates/jinja/value/jinja_print.h"

#include "templates/jinja/value/jinja_iter.h"
#include "templates/jinja/value/jinja_number.h"
#include "templates/jinja/value/jinja_unicode.h"

#include <stdio.h>

/* Append the escape of a code point with its hexadecimal number. */
static bool escape_code(struct jbuf *b, uint32_t cp, uint32_t origin)
{
    char text[12];
    (void)snprintf(text, sizeof text,
                   cp < 0x100     ? "\\x%02x"
                   : cp < 0x10000 ? "\\u%04x"
                                  : "\\U%08x",
                   cp);
    return jbuf_add(b, text, strlen(text), origin);
}

static bool repr_char(struct jbuf *b, uint32_t cp, char quote, uint32_t origin)
{
    char text[4];
    const char *named = cp == '\n' ? "\\n" : cp == '\r' ? "\\r" : cp == '\t' ? "\\t" : NULL;
    if (cp == '\\' || cp == (uint32_t)quote)
        (void)snprintf(text, sizeof text, "\\%c", (char)cp);
    else if (named)
        (void)snprintf(text, sizeof text, "%s", named);
    else if (uni_is(cp, UNI_PRINTABLE))
        return jbuf_cp(b, cp, origin);
    else
        return escape_code(b, cp, origin);
    return jbuf_add(b, text, strlen(text), origin);
}

static bool repr_string(struct jbuf *b, const struct jstr *s)
{
    const bool has_single = memchr(s->ptr, '\'', s->n_bytes) != NULL;
    const bool has_double = memchr(s->ptr, '"', s->n_bytes) != NULL;
    const char quote[2] = {has_single && !has_double ? '"' : '\'', '\0'};
    if ((s->is_markup && !jbuf_text(b, "Markup(")) || !jbuf_text(b, quote))
        return false;
    for (size_t at = 0; at < s->n_bytes;) {
        uint32_t cp;
        const size_t n = text_next(jstr_text(s), at, &cp);
        if (!repr_char(b, cp, quote[0], jstr_origin(s, at)))
            return false;
        at += n;
    }
    return jvm_steps(b->vm, s->n_bytes / 8) && jbuf_text(b, quote) &&
           (!s->is_markup || jbuf_text(b, ")"));
}

static bool repr_items(struct jbuf *b, const struct jlist *l, const char *open, const char *close)
{
    if (!jbuf_text(b, open))
        return false;
    for (size_t i = 0; i < l->n; i++)
        if ((i && !jbuf_text(b, ", ")) || !print_repr(b, l->items[i]))
            return false;
    return jbuf_text(b, close);
}

static bool repr_dict(struct jbuf *b, const struct jdict *d)
{
    if (!jbuf_text(b, "{"))
        return false;
    for (size_t i = 0; i < d->n; i++)
        if ((i && !jbuf_text(b, ", ")) || !print_repr(b, d->items[i].key) || !jbuf_text(b, ": ") ||
            !print_repr(b, d->items[i].val))
            return false;
    return jbuf_text(b, "}");
}

static bool repr_view(struct jbuf *b, const struct jview *v)
{
    static const char *const opens[] = {"dict_keys([", "dict_values([", "dict_items(["};
    if (!jbuf_text(b, opens[v->kind]))
        return false;
    for (size_t i = 0; i < v->dict->n; i++) {
        const struct jentry *const e = &v->dict->items[i];
        const bool is_pair = v->kind == VIEW_ITEMS;
        if ((i && !jbuf_text(b, ", ")) || (is_pair && !jbuf_text(b, "(")) ||
            (v->kind != VIEW_VALUES && !print_repr(b, e->key)) ||
            (is_pair && !jbuf_text(b, ", ")) || (v->kind != VIEW_KEYS && !print_repr(b, e->val)) ||
            (is_pair && !jbuf_text(b, ")")))
            return false;
    }
    return jbuf_text(b, "])");
}

static bool repr_range(struct jbuf *b, const struct jrange *r)
{
    char text[3 * NUMBER_CHARS];
    const long long start = r->start, stop = r->stop, step = r->step;
    (void)snprintf(text, sizeof text, step == 1 ? "range(%lld, %lld)" : "range(%lld, %lld, %lld)",
                   start, stop, step);
    return jbuf_text(b, text);
}

static bool repr_loop(struct jbuf *b, struct jloop *loop)
{
    char text[2 * NUMBER_CHARS];
    size_t length;
    if (!jloop_length(b->vm, loop, &length))
        return false;
    (void)snprintf(text, sizeof text, "<LoopContext %zu/%zu>", loop->index0 + 1, length);
    return jbuf_text(b, text);
}

static bool repr_other(struct jbuf *b, struct jval v)
{
    switch (v.kind) {
    case J_RANGE:
        return repr_range(b, v.u.range);
    case J_VIEW:
        return repr_view(b, v.u.view);
    case J_MACRO:
        if (!v.u.macro->name)
            return jbuf_text(b, "<Macro anonymous>");
        return jbuf_text(b, "<Macro ") && repr_string(b, v.u.macro->name) && jbuf_text(b, ">");
    case J_NAMESPACE:
        return jbuf_text(b, "<Namespace ") && repr_dict(b, v.u.dict) && jbuf_text(b, ">");
    case J_LOOP:
        return repr_loop(b, v.u.loop);
    default:
        return jbuf_text(b, "<") && jbuf_text(b, jkind_name(v)) && jbuf_text(b, " object>");
    }
}

static bool repr_inside(struct jbuf *b, struct jval v)
{
    char text[NUMBER_CHARS];
    switch (v.kind) {
    case J_MISSING:
    case J_UNDEF:
        return jbuf_text(b, "Undefined");
    case J_NONE:
        return jbuf_text(b, "None");
    case J_BOOL:
        return jbuf_text(b, v.u.b ? "True" : "False");
    case J_INT:
        number_print_int(v.u.i, text);
        return jbuf_text(b, text);
    case J_FLOAT:
        number_print_float(v.u.f, text);
        return jbuf_text(b, text);
    case J_STR:
        return repr_string(b, v.u.s);
    case J_LIST:
        return repr_items(b, v.u.list, "[", "]");
    case J_TUPLE:
        return repr_items(b, v.u.list, "(", v.u.list->n == 1 ? ",)" : ")");
    case J_DICT:
        return repr_dict(b, v.u.dict);
    default:
        return repr_other(b, v);
    }
}

bool print_repr(struct jbuf *b, struct jval v)
{
    const bool ok = jvm_steps(b->vm, 1) && jvm_enter(b->vm) && repr_inside(b, v);
    jvm_leave(b->vm);
    return ok;
}

bool print_ascii(struct jbuf *b, struct jval v)
{
    struct jbuf whole = {.vm = b->vm};
    struct jval repr;
    if (!print_repr(&whole, v) || !jbuf_done(&whole, &repr))
        return false;
    const struct jstr *const s = repr.u.s;
    for (size_t at = 0; at < s->n_bytes;) {
        uint32_t cp;
        const size_t n = text_next(jstr_text(s), at, &cp);
        if (!(cp < 0x80 ? jbuf_slice(b, s, at, at + n) : escape_code(b, cp, jstr_origin(s, at))))
            return false;
        at += n;
    }
    return jvm_steps(b->vm, s->n_bytes / 8);
}

bool print_str(struct jbuf *b, struct jval v)
{
    if (v.kind == J_STR)
        return jbuf_str(b, v.u.s);
    if (v.kind == J_UNDEF)
        return true;
    return print_repr(b, v);
}

bool jval_to_str(struct jvm *vm, struct jval v, struct jval *out)
{
    struct jbuf b = {.vm = vm};
    if (v.kind == J_STR) {
        *out = v;
        return true;
    }
    return print_str(&b, v) && jbuf_done(&b, out);
}
