/*
 * The values that callers make, and the origin of their strings. The origin of a string depends
 * only on its place in the messages or arguments and on the role of its message. Callers cannot set
 * it, so they cannot mark untrusted text as trusted.
 */
#include "templates/jinja/eval/jinja_eval.h"
#include "templates/template_private.h"

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

/* Constructors report only NULL, so the text of their errors is dropped. */
static struct jvm vm_of(struct template_arena *a, struct bn_error *ignored)
{
    return (struct jvm){.arena = a, .err = ignored, .ops = &jinja_ops};
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

struct template_value *template_string(struct template_arena *a, struct bn_str text)
{
    struct bn_error ignored;
    struct jvm vm = vm_of(a, &ignored);
    struct jval v;
    if (!a)
        return NULL;
    /* The origin is preliminary: messages_with_origin and args_with_origin set it when a template
     * runs. */
    const bool ok =
        text_valid(text) ? jstr_copy(&vm, text, ORIGIN_TEMPLATE, &v) : jstr_repair(&vm, text, &v);
    return ok ? boxed(a, v) : NULL;
}

struct template_value *template_list(struct template_arena *a)
{
    struct bn_error ignored;
    struct jvm vm = vm_of(a, &ignored);
    struct jval v;
    return a && jlist_new(&vm, J_LIST, 0, &v) ? boxed(a, v) : NULL;
}

struct template_value *template_dict(struct template_arena *a)
{
    struct bn_error ignored;
    struct jvm vm = vm_of(a, &ignored);
    struct jval v;
    return a && jdict_new(&vm, J_DICT, &v) ? boxed(a, v) : NULL;
}

struct template_value *template_push(struct template_arena *a, struct template_value *list,
                                     struct template_value *item)
{
    struct bn_error ignored;
    struct jvm vm = vm_of(a, &ignored);
    if (!a || !list || !item || list->v.kind != J_LIST)
        return NULL;
    return jlist_push(&vm, list->v, item->v) ? list : NULL;
}

struct template_value *template_set(struct template_arena *a, struct template_value *dict,
                                    const char *key, struct template_value *item)
{
    struct template_value *const name = template_string(a, bn_str_of(key));
    struct bn_error ignored;
    struct jvm vm = vm_of(a, &ignored);
    if (!name || !dict || !item || dict->v.kind != J_DICT)
        return NULL;
    return jdict_set(&vm, dict->v.u.dict, name->v, item->v) ? dict : NULL;
}

/* ---- origins ---- */

static bool string_with_origin(struct jvm *vm, struct jval v, uint32_t origin, struct jval *out)
{
    return jstr_new(vm, jstr_text(v.u.s), origin, out);
}

/* A copy of the value in which every string has this origin. The bytes are shared. */
static bool value_with_origin(struct jvm *vm, struct jval v, uint32_t origin, struct jval *out);

static bool list_with_origin(struct jvm *vm, const struct jlist *from, uint32_t origin,
                             struct jval *out)
{
    if (!jlist_new(vm, J_LIST, from->n, out))
        return false;
    for (size_t i = 0; i < from->n; i++) {
        struct jval v;
        if (!value_with_origin(vm, from->items[i], origin, &v) || !jlist_push(vm, *out, v))
            return false;
    }
    return true;
}

/* All keys are strings, because template_set takes no others. */
static bool dict_with_origin(struct jvm *vm, const struct jdict *from, uint32_t origin,
                             struct jval *out)
{
    if (!jdict_new(vm, J_DICT, out))
        return false;
    for (size_t i = 0; i < from->n; i++) {
        struct jval key, v;
        if (!string_with_origin(vm, from->items[i].key, origin, &key) ||
            !value_with_origin(vm, from->items[i].val, origin, &v) ||
            !jdict_set(vm, out->u.dict, key, v))
            return false;
    }
    return true;
}

static bool value_with_origin(struct jvm *vm, struct jval v, uint32_t origin, struct jval *out)
{
    bool ok;
    *out = v;
    switch (v.kind) {
    case J_STR:
        return string_with_origin(vm, v, origin, out);
    case J_LIST:
    case J_DICT:
        ok = jvm_enter(vm) && (v.kind == J_LIST ? list_with_origin(vm, v.u.list, origin, out)
                                                : dict_with_origin(vm, v.u.dict, origin, out));
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

static bool message_with_origin(struct jvm *vm, const struct jdict *from, size_t index,
                                struct jval *out)
{
    const struct jval *const role = jdict_text(from, "role");
    const bool is_answer = role && role->kind == J_STR && jstr_is(role->u.s, "assistant");
    if (!jdict_new(vm, J_DICT, out))
        return false;
    for (size_t i = 0; i < from->n; i++) {
        const struct jentry *const e = &from->items[i];
        uint32_t origin = origin_of(ORIGIN_MESSAGE, index);
        struct jval key, v;
        if (&e->val == role && is_known_role(e->val))
            origin = ORIGIN_TEMPLATE;
        else if (is_answer && jstr_is(e->key.u.s, "content"))
            origin = origin_of(ORIGIN_ANSWER, index);
        if (!string_with_origin(vm, e->key, origin_of(ORIGIN_MESSAGE, index), &key) ||
            !value_with_origin(vm, e->val, origin, &v) || !jdict_set(vm, out->u.dict, key, v))
            return false;
    }
    return true;
}

bool messages_with_origin(struct jvm *vm, const struct template_value *messages, struct jval *out)
{
    if (!messages || messages->v.kind != J_LIST)
        return bn_fail(vm->err, BN_EARG, "the messages are not a list");
    const struct jlist *const from = messages->v.u.list;
    if (!jlist_new(vm, J_LIST, from->n, out))
        return false;
    for (size_t i = 0; i < from->n; i++) {
        const struct jval v = from->items[i];
        struct jval copy;
        const bool ok = v.kind == J_DICT
                            ? message_with_origin(vm, v.u.dict, i, &copy)
                            : value_with_origin(vm, v, origin_of(ORIGIN_MESSAGE, i), &copy);
        if (!ok || !jlist_push(vm, *out, copy))
            return false;
    }
    return true;
}

const char *const template_token_names[TEMPLATE_TOKENS] = {"bos_token", "eos_token", "unk_token",
                                                           "pad_token"};

static bool is_token_name(const struct jentry *e)
{
    for (size_t i = 0; i < TEMPLATE_TOKENS; i++)
        if (jstr_is(e->key.u.s, template_token_names[i]))
            return true;
    return false;
}

bool args_with_origin(struct jvm *vm, const struct template_value *args, struct jdict *vars)
{
    if (!args)
        return true;
    if (args->v.kind != J_DICT)
        return bn_fail(vm->err, BN_EARG, "the template's arguments are not a dict");
    for (size_t i = 0; i < args->v.u.dict->n; i++) {
        const struct jentry *const e = &args->v.u.dict->items[i];
        const uint32_t origin =
            is_token_name(e) ? ORIGIN_TEMPLATE : origin_of(ORIGIN_MESSAGE, SIZE_MAX);
        struct jval v;
        if (!value_with_origin(vm, e->val, origin, &v) || !jdict_set(vm, vars, e->key, v))
            return false;
    }
    return true;
}
