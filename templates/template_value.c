/*
 * The values that callers make, and marking them: whose words each string holds is decided here,
 * from where it stands in the messages, and not by whoever made it.
 */
#include "templates/template_private.h"

#include "templates/jinja/value/jinja_text.h"

struct template_value {
    struct jval v;
};

struct template_arena *template_arena_open(void)
{
    return arena_open();
}

void template_arena_close(struct template_arena *arena)
{
    arena_close(arena);
}

static struct template_value *boxed(struct template_arena *a, struct jval v)
{
    struct template_value *const box = a ? arena_alloc(a, sizeof *box) : NULL;
    if (box)
        box->v = v;
    return box;
}

struct template_value *template_null(struct template_arena *a)
{
    return boxed(a, jnone());
}

struct template_value *template_bool(struct template_arena *a, bool v)
{
    return boxed(a, jbool(v));
}

struct template_value *template_int(struct template_arena *a, int64_t v)
{
    return boxed(a, jint(v));
}

struct template_value *template_float(struct template_arena *a, double v)
{
    return boxed(a, jfloat(v));
}

/* Bytes that are no UTF-8 become U+FFFD, one for each. */
static struct bn_str cleaned(struct template_arena *a, struct bn_str text)
{
    char *const p = text.n_bytes < SIZE_MAX / 4 ? arena_alloc(a, text.n_bytes * 3 + 1) : NULL;
    size_t n = 0;
    if (!p)
        return (struct bn_str){NULL, 0};
    for (size_t i = 0; i < text.n_bytes;) {
        size_t take = 1;
        for (size_t k = 4; k > 1; k--) { /* the longest valid character here */
            const struct bn_str part = {text.ptr + i, k};
            if (k <= text.n_bytes - i && utf8_valid(part) && utf8_count(part.ptr, k) == 1)
                take = k;
        }
        if (take == 1 && (unsigned char)text.ptr[i] >= 0x80) {
            n += utf8_put(p + n, 0xfffd);
        } else {
            memcpy(p + n, text.ptr + i, take);
            n += take;
        }
        i += take;
    }
    p[n] = '\0';
    return (struct bn_str){p, n};
}

struct template_value *template_string(struct template_arena *a, struct bn_str text, size_t message)
{
    struct bn_error ignored;
    struct jvm vm = {.arena = a, .err = &ignored};
    const uint32_t origin =
        message == SEGMENT_NO_MESSAGE ? ORIGIN_TEMPLATE : origin_of(ORIGIN_MESSAGE, message);
    struct jval v;
    bool ok;
    if (!a)
        return NULL;
    if (utf8_valid(text)) {
        ok = jstr_copy(&vm, text, origin, &v);
    } else {
        const struct bn_str clean = cleaned(a, text);
        ok = clean.ptr && jstr_new(&vm, clean, origin, &v);
    }
    return ok ? boxed(a, v) : NULL;
}

struct template_value *template_list(struct template_arena *a)
{
    struct bn_error ignored;
    struct jvm vm = {.arena = a, .err = &ignored};
    struct jval v;
    return a && jlist_new(&vm, J_LIST, 0, &v) ? boxed(a, v) : NULL;
}

struct template_value *template_dict(struct template_arena *a)
{
    struct bn_error ignored;
    struct jvm vm = {.arena = a, .err = &ignored};
    struct jval v;
    return a && jdict_new(&vm, J_DICT, &v) ? boxed(a, v) : NULL;
}

struct template_value *template_push(struct template_arena *a, struct template_value *list,
                                     struct template_value *item)
{
    struct bn_error ignored;
    struct jvm vm = {.arena = a, .err = &ignored};
    if (!a || !list || !item || list->v.kind != J_LIST)
        return NULL;
    return jlist_push(&vm, list->v, item->v) ? list : NULL;
}

struct template_value *template_set(struct template_arena *a, struct template_value *dict,
                                    const char *key, struct template_value *item)
{
    struct template_value *const name = template_string(a, bn_str_of(key), SEGMENT_NO_MESSAGE);
    struct bn_error ignored;
    struct jvm vm = {.arena = a, .err = &ignored};
    if (!name || !dict || !item || dict->v.kind != J_DICT)
        return NULL;
    return jdict_set(&vm, dict->v.u.dict, name->v, item->v) ? dict : NULL;
}

/* ---- marking ---- */

static bool mark_string(struct jvm *vm, struct jval v, uint32_t origin, struct jval *out)
{
    return jstr_new(vm, jstr_text(v.u.s), origin, out);
}

static bool mark_list(struct jvm *vm, const struct jlist *from, uint32_t origin, struct jval *out)
{
    if (!jlist_new(vm, J_LIST, from->n, out))
        return false;
    for (size_t i = 0; i < from->n; i++) {
        struct jval v;
        if (!mark_value(vm, from->items[i], origin, &v) || !jlist_push(vm, *out, v))
            return false;
    }
    return true;
}

static bool mark_dict(struct jvm *vm, const struct jdict *from, uint32_t origin, struct jval *out)
{
    if (!jdict_new(vm, J_DICT, out))
        return false;
    for (size_t i = 0; i < from->n; i++) {
        struct jval key, v;
        if (!mark_string(vm, from->items[i].key, origin, &key) ||
            !mark_value(vm, from->items[i].val, origin, &v) || !jdict_set(vm, out->u.dict, key, v))
            return false;
    }
    return true;
}

bool mark_value(struct jvm *vm, struct jval v, uint32_t origin, struct jval *out)
{
    bool ok;
    *out = v;
    switch (v.kind) {
    case J_STR:
        return mark_string(vm, v, origin, out);
    case J_LIST:
    case J_DICT:
        ok = jvm_enter(vm) && (v.kind == J_LIST ? mark_list(vm, v.u.list, origin, out)
                                                : mark_dict(vm, v.u.dict, origin, out));
        jvm_leave(vm);
        return ok;
    default:
        return true;
    }
}

static bool is_known_role(struct jval v)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    for (size_t i = 0; v.kind == J_STR && i < sizeof roles / sizeof roles[0]; i++)
        if (jstr_is(v.u.s, roles[i]))
            return true;
    return false;
}

static bool mark_message(struct jvm *vm, const struct jdict *from, size_t index, struct jval *out)
{
    const struct jval *const role = jdict_text(from, "role");
    const bool is_answer = role && role->kind == J_STR && jstr_is(role->u.s, "assistant");
    if (!jdict_new(vm, J_DICT, out))
        return false;
    for (size_t i = 0; i < from->n; i++) {
        const struct jentry *const e = &from->items[i];
        const bool is_content = jstr_is(e->key.u.s, "content");
        uint32_t origin = origin_of(ORIGIN_MESSAGE, index);
        struct jval key, v;
        if (&e->val == role && is_known_role(e->val))
            origin = ORIGIN_TEMPLATE;
        else if (is_content && is_answer)
            origin = origin_of(ORIGIN_ANSWER, index);
        if (!mark_string(vm, e->key, origin_of(ORIGIN_MESSAGE, index), &key) ||
            !mark_value(vm, e->val, origin, &v) || !jdict_set(vm, out->u.dict, key, v))
            return false;
    }
    return true;
}

bool mark_messages(struct jvm *vm, const struct template_value *messages, struct jval *out)
{
    if (!messages || messages->v.kind != J_LIST)
        return bn_fail(vm->err, BN_EARG, "the messages are not a list");
    const struct jlist *const from = messages->v.u.list;
    if (!jlist_new(vm, J_LIST, from->n, out))
        return false;
    for (size_t i = 0; i < from->n; i++) {
        const struct jval v = from->items[i];
        struct jval marked;
        const bool ok = v.kind == J_DICT ? mark_message(vm, v.u.dict, i, &marked)
                                         : mark_value(vm, v, origin_of(ORIGIN_MESSAGE, i), &marked);
        if (!ok || !jlist_push(vm, *out, marked))
            return false;
    }
    return true;
}

bool mark_args(struct jvm *vm, const struct template_value *args, struct jdict *vars)
{
    if (!args)
        return true;
    if (args->v.kind != J_DICT)
        return bn_fail(vm->err, BN_EARG, "the template's arguments are not a dict");
    for (size_t i = 0; i < args->v.u.dict->n; i++) {
        const struct jentry *const e = &args->v.u.dict->items[i];
        struct jval v;
        if (!mark_value(vm, e->val, origin_of(ORIGIN_MESSAGE, SIZE_MAX), &v) ||
            !jdict_set(vm, vars, e->key, v))
            return false;
    }
    return true;
}
