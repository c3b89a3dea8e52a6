/*
 * Order and containment. Equality is in jinja_dict.c, arithmetic in builtin/jinja_arith.c.
 */
#include "templates/jinja/value/jinja_compare.h"

#include "templates/jinja/value/jinja_iter.h"
#include "templates/jinja/value/jinja_number.h"
#include "templates/jinja/value/jinja_text.h"

/* Whether `op` holds. `order` is negative, 0 or positive if the left value is less than, equal to
 * or greater than the right one. */
static bool decide(enum jop op, int order)
{
    return op == OP_LT   ? order < 0
           : op == OP_LE ? order <= 0
           : op == OP_GT ? order > 0
                         : order >= 0;
}

static bool order_lists(struct jvm *vm, enum jop op, const struct jval v[2], bool *out)
{
    const struct jlist *const a = v[0].u.list, *const b = v[1].u.list;
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool same;
        if (!jval_same_or_equal(vm, a->items[i], b->items[i], &same))
            return false;
        if (!same)
            return jval_order(vm, op, a->items[i], b->items[i], out);
    }
    *out = decide(op, (a->n > b->n) - (a->n < b->n));
    return true;
}

bool jval_order(struct jvm *vm, enum jop op, struct jval a, struct jval b, bool *out)
{
    static const char *const signs[] = {
        [OP_LT] = "<", [OP_LE] = "<=", [OP_GT] = ">", [OP_GE] = ">="};
    if (jval_is_number(a) && jval_is_number(b)) {
        const int order = jval_compare_numbers(a, b);
        *out = order != JNUM_UNORDERED && decide(op, order);
        return true;
    }
    if (a.kind == J_STR && b.kind == J_STR) {
        *out = decide(op, jstr_compare(a.u.s, b.u.s));
        return jvm_steps(vm, a.u.s->n_bytes / 64);
    }
    if (a.kind == b.kind && (a.kind == J_LIST || a.kind == J_TUPLE)) {
        const struct jval both[2] = {a, b};
        const bool ok = jvm_steps(vm, 1) && jvm_enter(vm) && order_lists(vm, op, both, out);
        jvm_leave(vm);
        return ok;
    }
    if (a.kind == J_UNDEF || b.kind == J_UNDEF)
        return jundef_fail(vm, a.kind == J_UNDEF ? a : b);
    return jvm_fail(vm, "'%s' is not supported between '%s' and '%s'", signs[op], jkind_name(a),
                    jkind_name(b));
}

/* *out is false before the call. */
static bool range_has(struct jvm *vm, struct jval item, const struct jrange *r, bool *out)
{
    for (size_t i = 0; i < r->n && !*out; i++)
        if (!jvm_steps(vm, 1) || !jval_equal(vm, jrange_item(r, i), item, out))
            return false;
    return true;
}

static bool jval_contains(struct jvm *vm, struct jval item, struct jval seq, bool *out)
{
    const struct jdict *const keys = seq.kind == J_DICT ? seq.u.dict
                                     : seq.kind == J_VIEW && seq.u.view->kind == VIEW_KEYS
                                         ? seq.u.view->dict
                                         : NULL;
    struct jval *found;
    struct jiter it;
    *out = false;
    if (keys) {
        if (!jdict_find(vm, keys, item, &found))
            return false;
        *out = found != NULL;
        return true;
    }
    if (seq.kind == J_RANGE)
        return range_has(vm, item, seq.u.range, out);
    if (seq.kind == J_STR) {
        if (item.kind != J_STR)
            return jvm_fail(vm, "'in <string>' requires string as left operand, not %s",
                            jkind_name(item));
        *out = text_find(jstr_text(seq.u.s), jstr_text(item.u.s), 0, seq.u.s->n_bytes) != SIZE_MAX;
        return jvm_steps(vm, seq.u.s->n_bytes / 32);
    }
    if (!jiter_open(vm, seq, &it))
        return false;
    for (bool more = true; !*out;) {
        struct jval v;
        if (!jiter_next(vm, &it, &v, &more))
            return false;
        if (!more)
            break;
        if (!jval_same_or_equal(vm, v, item, out))
            return false;
    }
    return true;
}

bool jval_compare(struct jvm *vm, enum jop op, struct jval a, struct jval b, bool *out)
{
    bool result = false;
    bool ok;
    if (op == OP_EQ || op == OP_NE)
        ok = jval_equal(vm, a, b, &result);
    else if (op == OP_IN || op == OP_NOTIN)
        ok = jval_contains(vm, a, b, &result);
    else
        ok = jval_order(vm, op, a, b, &result);
    *out = (op == OP_NE || op == OP_NOTIN) ? !result : result;
    return ok;
}
