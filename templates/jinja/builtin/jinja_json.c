/*
 * The filter tojson: json.dumps as the transformers library calls it. A value without a JSON form,
 * such as undefined, is an error as in Python.
 */
#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/value/jinja_iter.h"
#include "templates/jinja/value/jinja_number.h"

#include <math.h>
#include <stdio.h>

struct json_style {
    bool ensure_ascii, sort_keys, has_indent;
    struct jval indent;            /* J_STR, if has_indent */
    struct jval item_sep, key_sep; /* J_STR */
};

static bool json_char(struct jbuf *b, uint32_t cp, bool ensure_ascii, uint32_t origin)
{
    /* pairs: character, letter of its escape */
    static const char named[] = "\"\"\\\\\nn\rr\tt\ff\bb";
    char text[16]; /* at most two escapes of six characters */
    for (size_t i = 0; i + 1 < sizeof named; i += 2) {
        if (cp == (unsigned char)named[i]) {
            (void)snprintf(text, sizeof text, "\\%c", named[i + 1]);
            return jbuf_add(b, text, 2, origin);
        }
    }
    if (cp >= 0x20 && (cp < 0x7f || !ensure_ascii))
        return jbuf_cp(b, cp, origin);
    if (cp >= 0x10000) /* an escape has four digits, so two write the UTF-16 surrogates */
        (void)snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd800 + ((cp - 0x10000) >> 10),
                       0xdc00 + ((cp - 0x10000) & 0x3ff));
    else
        (void)snprintf(text, sizeof text, "\\u%04x", cp);
    return jbuf_add(b, text, strlen(text), origin);
}

static bool json_string(struct jbuf *b, const struct jstr *s, const struct json_style *style)
{
    if (!jvm_steps(b->vm, s->n_bytes / 8) || !jbuf_text(b, "\""))
        return false;
    for (size_t at = 0; at < s->n_bytes;) {
        uint32_t cp;
        const size_t n = text_next(jstr_text(s), at, &cp);
        if (!json_char(b, cp, style->ensure_ascii, jstr_origin(s, at)))
            return false;
        at += n;
    }
    return jbuf_text(b, "\"");
}

/* v: none, a bool or a number. */
static void json_scalar(struct jval v, char text[NUMBER_CHARS])
{
    if (v.kind == J_NONE)
        (void)snprintf(text, NUMBER_CHARS, "null");
    else if (v.kind == J_BOOL)
        (void)snprintf(text, NUMBER_CHARS, "%s", v.u.b ? "true" : "false");
    else if (v.kind == J_INT)
        number_print_int(v.u.i, text);
    else if (isnan(v.u.f))
        (void)snprintf(text, NUMBER_CHARS, "NaN");
    else if (isinf(v.u.f))
        (void)snprintf(text, NUMBER_CHARS, "%sInfinity", v.u.f < 0 ? "-" : "");
    else
        number_print_float(v.u.f, text);
}

static bool json_value(struct jbuf *b, struct jval v, const struct json_style *style, size_t level);

/* A new line that is indented by `level` levels, if the style has an indent. */
static bool json_break(struct jbuf *b, const struct json_style *style, size_t level)
{
    if (!style->has_indent)
        return true;
    if (!jbuf_text(b, "\n"))
        return false;
    if (style->indent.u.s->n_bytes == 0)
        return true; /* appending an empty text takes no steps, so no limit would end the loop */
    for (size_t i = 0; i < level; i++)
        if (!jbuf_str(b, style->indent.u.s))
            return false;
    return true;
}

static bool json_list(struct jbuf *b, const struct jlist *l, const struct json_style *style,
                      size_t level)
{
    if (l->n == 0)
        return jbuf_text(b, "[]");
    if (!jbuf_text(b, "["))
        return false;
    for (size_t i = 0; i < l->n; i++)
        if ((i && !jbuf_str(b, style->item_sep.u.s)) || !json_break(b, style, level + 1) ||
            !json_value(b, l->items[i], style, level + 1))
            return false;
    return json_break(b, style, level) && jbuf_text(b, "]");
}

static bool json_key(struct jbuf *b, struct jval key, const struct json_style *style)
{
    char text[NUMBER_CHARS];
    if (key.kind == J_STR)
        return json_string(b, key.u.s, style);
    if (key.kind != J_NONE && !jval_is_number(key))
        return jvm_fail(b->vm, "keys must be str, int, float, bool or None, not %s",
                        jkind_name(key));
    json_scalar(key, text);
    return jbuf_text(b, "\"") && jbuf_text(b, text) && jbuf_text(b, "\"");
}

static bool json_dict(struct jbuf *b, const struct jdict *d, const struct json_style *style,
                      size_t level)
{
    struct jval entries;
    if (d->n == 0)
        return jbuf_text(b, "{}");
    if (!jbuf_text(b, "{") || !jdict_pairs(b->vm, d, &entries))
        return false;
    struct jval *const pairs = entries.u.list->items;
    /* Pairs are ordered by their keys. Values are compared only if both keys are NaN, because all
     * other keys differ. */
    if (style->sort_keys && !sort_values(b->vm, pairs, pairs, d->n, false))
        return false;
    for (size_t i = 0; i < d->n; i++) {
        const struct jval *const pair = pairs[i].u.list->items;
        if ((i && !jbuf_str(b, style->item_sep.u.s)) || !json_break(b, style, level + 1) ||
            !json_key(b, pair[0], style) || !jbuf_str(b, style->key_sep.u.s) ||
            !json_value(b, pair[1], style, level + 1))
            return false;
    }
    return json_break(b, style, level) && jbuf_text(b, "}");
}

static bool json_value(struct jbuf *b, struct jval v, const struct json_style *style, size_t level)
{
    char text[NUMBER_CHARS];
    bool ok = jvm_steps(b->vm, 1) && jvm_enter(b->vm);
    switch (ok ? v.kind : J_MISSING) {
    case J_MISSING: /* only after a failure above: a value is never J_MISSING */
        break;
    case J_STR:
        ok = json_string(b, v.u.s, style);
        break;
    case J_NONE:
    case J_BOOL:
    case J_INT:
    case J_FLOAT:
        json_scalar(v, text);
        ok = jbuf_text(b, text);
        break;
    case J_LIST:
    case J_TUPLE:
        ok = json_list(b, v.u.list, style, level);
        break;
    case J_DICT:
        ok = json_dict(b, v.u.dict, style, level);
        break;
    default:
        ok = jvm_fail(b->vm, "Object of type %s is not JSON serializable", jkind_name(v));
    }
    jvm_leave(b->vm);
    return ok;
}

/* indent: a number of spaces, or the text of one level. */
static bool json_indent(struct jvm *vm, struct jval indent, struct json_style *style)
{
    struct jbuf b = {.vm = vm};
    int64_t n;
    if (indent.kind == J_MISSING || indent.kind == J_NONE)
        return true;
    style->has_indent = true;
    style->indent = indent;
    if (indent.kind == J_STR)
        return true;
    if (!arg_int(vm, indent, 0, &n))
        return false;
    return jbuf_repeat(&b, ' ', n > 0 ? (size_t)n : 0, ORIGIN_TEMPLATE) &&
           jbuf_done(&b, &style->indent);
}

static bool json_separators(struct jvm *vm, struct jval pair, struct json_style *style)
{
    struct jval list;
    if (pair.kind == J_MISSING || pair.kind == J_NONE) {
        style->item_sep = jstr_lit(vm, style->has_indent ? "," : ", ");
        style->key_sep = jstr_lit(vm, ": ");
        return style->item_sep.kind == J_STR && style->key_sep.kind == J_STR;
    }
    if (!jval_to_list(vm, pair, &list))
        return false;
    if (list.u.list->n != 2)
        return jvm_fail(vm, "separators must be two strings");
    return arg_string(vm, list.u.list->items[0], &style->item_sep) &&
           arg_string(vm, list.u.list->items[1], &style->key_sep);
}

BUILTIN(do_tojson)
{
    struct json_style style = {.ensure_ascii = arg_flag(c->arg[0]),
                               .sort_keys = arg_flag(c->arg[3])};
    struct jbuf b = {.vm = vm};
    return json_indent(vm, c->arg[1], &style) && json_separators(vm, c->arg[2], &style) &&
           json_value(&b, v, &style, 0) && jbuf_done(&b, out);
}

const struct jbuiltin filters_json[] = {
    {"tojson", "ensure_ascii?,indent?,separators?,sort_keys?", do_tojson, 0},
    {0},
};
